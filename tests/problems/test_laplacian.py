"""The Laplacian in one pass forward: the trace of the Hessian, and cheaper than second derivatives one by one."""

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from angd.method.jacobian import Dense, jacobian
from angd.problems.pinn import Box, Mirrored, Network, Periodic, Problem, d, laplacian

KEY = jax.random.key(0)
FIELDS = {
    "products": lambda z: jnp.sin(z[0] * z[1]) * jnp.exp(z[2]) / (1 + z[0] ** 2),
    "vector": lambda z: jnp.stack([z[0] ** 3 * z[1], jnp.linalg.norm(z), jnp.tanh(z) @ z]),
    "norm": lambda z: jnp.exp(-jnp.sum(z**2)) + jnp.where(z[0] > 0, z[1] ** 4, z[2] ** 3),
    "constant": lambda z: jnp.sum(jnp.ones(3)),
    "linear": lambda z: z @ jnp.arange(3.0) + jnp.concatenate([z, z])[4],
    "inner": lambda z: jax.jit(jax.nn.softplus)(jax.nn.relu(z[0]) * z[1]) + jax.nn.silu(z[2]),
    "power": lambda z: (
        jnp.abs(z[0]) ** 2.5 + (2.0 + z[1]) ** z[2] + jax.lax.fori_loop(0, 3, lambda _, y: y * z[1], z[0])
    ),
}


@pytest.mark.parametrize("name", FIELDS)
def test_it_is_the_trace_of_the_hessian(name):
    u, z = FIELDS[name], jnp.array([0.3, 0.7, -0.2])
    hessian = jnp.atleast_3d(jax.jacfwd(jax.jacfwd(u))(z).reshape(-1, 3, 3))
    assert np.allclose(jnp.ravel(laplacian(u)(z)), jnp.trace(hessian, axis1=1, axis2=2), atol=1e-12)
    assert np.allclose(jnp.ravel(laplacian(u, (0, 2))(z)), hessian[:, 0, 0] + hessian[:, 2, 2], atol=1e-12)


def test_axes_that_are_none_are_refused():
    for axes in ((), (0, 0), (3,), (-1,)):
        with pytest.raises(ValueError, match="different coordinates below 3"):
            laplacian(FIELDS["linear"], axes)(jnp.zeros(3))


def problem(equation, dimension=3):
    inner = Network((6, 5), embed=Periodic(axis=1, period=2.0), activation="sin")
    return Problem(
        Mirrored(inner, axis=1), Box(*[(0.0, 1.0)] * dimension), equation, {}, lambda z, u: z[0] * (1 - z[0]) * u
    )


@pytest.mark.filterwarnings("error")
def test_the_jacobian_of_a_laplacian_is_that_of_plain_reverse_mode():
    """Through a mirror, features and a constraint, beside other derivatives, by the layers' factors."""
    made = problem(lambda u, z: d(u, 0)(z) + u(z) * laplacian(u, (1, 2))(z))
    params = made.init(KEY)
    z, f = jax.random.uniform(KEY, (4, 3)), made.residuals["interior"]
    rows = jax.jit(jax.vmap(jax.jacrev(f), (None, 0)))(params, z)
    plain = np.concatenate([np.asarray(leaf).reshape(4, -1) for leaf in jax.tree.leaves(rows)], axis=1)
    found = eqx.filter_jit(partial(jacobian, f, form=Dense))(params, z)
    assert np.allclose(found.kernel(), plain @ plain.T, atol=1e-10 * np.abs(plain @ plain.T).max())


def operations(equation, dimension):
    """Of a residual and its gradient at many points, as XLA counts them."""
    made = Problem(Network((32, 32)), Box(*[(0.0, 1.0)] * dimension), equation)
    params, z = made.init(KEY), jnp.ones((64, dimension)) / 2
    rows = jax.jit(jax.vmap(jax.grad(made.residuals["interior"]), (None, 0)))
    cost: Any = rows.lower(params, z).compile().cost_analysis()
    return cost["flops"]


def test_ten_dimensions_cost_much_less_than_ten_times_one():
    def one_by_one(u, z):
        return sum(d(u, i, i)(z) for i in range(z.shape[0]))

    single, ten, plain = (
        operations(one_by_one, 1),
        operations(lambda u, z: laplacian(u)(z), 10),
        operations(one_by_one, 10),
    )
    assert ten < 5.5 * single
    assert ten < 0.75 * plain
