"""One network in four frameworks: from the same numbers, the same direction.

    python examples/models/frameworks.py

`angd.as_model` makes a model of a module of Equinox, Flax NNX or Linen; a function
of (params, x) is one already.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from flax import linen, nnx

import angd

jax.config.update("jax_enable_x64", True)

W1, b1 = jax.random.normal(jax.random.key(0), (2, 8)), jnp.linspace(-0.5, 0.5, 8)
W2, b2 = jax.random.normal(jax.random.key(1), (8, 1)), jnp.zeros(1)


def of_equinox():
    """Its matrices stand the other way round."""
    mlp = eqx.nn.MLP(
        in_size=2,
        out_size=1,
        width_size=8,
        depth=1,
        activation=jnp.tanh,
        key=jax.random.key(0),
    )
    model = angd.as_model(mlp)

    def read(m):
        return [
            m.layers[0].weight,
            m.layers[0].bias,
            m.layers[1].weight,
            m.layers[1].bias,
        ]

    params = eqx.tree_at(read, model.init(), [W1.T, b1, W2.T, b2])
    return model, params, lambda d: [leaf.T for leaf in read(d)]


def of_nnx():
    rngs = nnx.Rngs(0)
    first, last = (
        nnx.Linear(2, 8, param_dtype=float, rngs=rngs),
        nnx.Linear(8, 1, param_dtype=float, rngs=rngs),
    )
    model = angd.as_model(nnx.Sequential(first, jnp.tanh, last))
    params = {
        "layers": {0: {"kernel": W1, "bias": b1}, 2: {"kernel": W2, "bias": b2}}
    }
    return (
        model,
        params,
        lambda d: [
            d["layers"][i][name] for i in (0, 2) for name in ("kernel", "bias")
        ],
    )


def of_linen():
    model = angd.as_model(
        linen.Sequential(
            [
                linen.Dense(8, param_dtype=float),
                jnp.tanh,
                linen.Dense(1, param_dtype=float),
            ]
        )
    )
    params = {
        "layers_0": {"kernel": W1, "bias": b1},
        "layers_2": {"kernel": W2, "bias": b2},
    }
    assert jax.tree.structure(
        model.init(jax.random.key(0), 2)
    ) == jax.tree.structure(params)
    return (
        model,
        params,
        lambda d: [
            d[layer][name]
            for layer in ("layers_0", "layers_2")
            for name in ("kernel", "bias")
        ],
    )


def of_a_function():
    def model(params, x):
        W1, b1, W2, b2 = params
        return jnp.tanh(x @ W1 + b1) @ W2 + b2

    return model, [W1, b1, W2, b2], lambda d: d


class Fit(eqx.Module):
    """u(x) = sin(x₀) x₁ by a model with one output."""

    model: Callable

    def residual(self, params, x):
        return self.model(params, x)[0] - jnp.sin(x[0]) * x[1]


samples = angd.Samples(jax.random.normal(jax.random.key(2), (40, 2)))
opt = angd.ANGD(angd.ARGFlow.momentum(0.5, 0.5), angd.Energy(), angd.Normal(1e-3))


def direction(model, params, read):
    """After two steps, so that momentum has its part."""
    problem = Fit(model)
    state = opt.init(problem, params, samples)
    for _ in range(2):
        params, _, state, _ = eqx.filter_jit(opt.step)(
            problem, params, samples, state
        )
    return read(state.previous.d)


directions = [
    direction(*make()) for make in (of_a_function, of_equinox, of_nnx, of_linen)
]
for other in directions[1:]:
    assert all(
        jnp.allclose(a, b, rtol=0, atol=1e-10)
        for a, b in zip(directions[0], other, strict=True)
    )
print("the same direction from four frameworks")
