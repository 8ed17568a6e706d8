"""A loss of one's own, trained in L² inside optax: gradients are clipped before,
steps are shortened after.

    python examples/guests/optax_chain.py

The loss is no sum of squares, so the metric gets its gradient from optax, as Adam
does; of the model it needs to know only `field`. Damping is an injected
hyper-parameter, which may be changed between steps without compiling again.
"""

import jax
import jax.numpy as jnp
import optax

import angd

jax.config.update("jax_enable_x64", True)


class Model:
    """A network with one layer."""

    def field(self, params, x):
        return jnp.tanh(params["w"] * x + params["b"]) @ params["a"]


def loss(params, x):
    """Some points are wrong: an error counts by its size, not by its square."""
    u = jax.vmap(model.field, (None, 0))(params, x)
    wrong = jnp.sin(3 * x) + 2.0 * (jnp.arange(x.size) % 10 == 5)
    return jnp.mean(optax.losses.huber_loss(u, wrong, delta=0.05))


def accelerated(damping):
    opt = angd.ANGD(
        angd.ARGFlow.momentum(mu=0.8, rate=1.0), angd.L2(), angd.Normal(damping)
    )
    return angd.compat.optax.angd(opt, model, samples)


model, x = Model(), jnp.linspace(-1.0, 1.0, 60)
samples = angd.Samples(x)
w, b, a = jax.random.normal(jax.random.key(0), (3, 12))
start = params = {"w": 3 * w, "b": b, "a": a / 4}

optimiser = optax.chain(
    optax.clip_by_global_norm(1.0),
    optax.inject_hyperparams(accelerated)(damping=1e-3),
    optax.scale_by_schedule(optax.cosine_decay_schedule(1.0, 200)),
)
state = optimiser.init(params)


@jax.jit
def train(params, state):
    value, grads = jax.value_and_grad(loss)(params, x)
    updates, state = optimiser.update(
        grads, state, params, samples=samples, value=value
    )
    return optax.apply_updates(params, updates), state, value


values = []
for _ in range(200):
    params, state, value = train(params, state)
    values.append(float(value))
error = float(
    jnp.mean(jnp.abs(jax.vmap(model.field, (None, 0))(params, x) - jnp.sin(3 * x)))
)

if __name__ == "__main__":
    print(
        f"loss {values[0]:.4f} → {values[-1]:.4f}; "
        f"mean distance to the function without wrong points {error:.3f}"
    )
