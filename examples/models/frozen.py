"""Train the last layer alone: the direction is that of a model which has nothing
else.

python examples/models/frozen.py
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp

import angd

jax.config.update("jax_enable_x64", True)


def model(params, x):
    return jnp.tanh(x @ params["body"]["W"] + params["body"]["b"]) @ params["head"]


class Fit(eqx.Module):
    model: Callable

    def residual(self, params, x):
        return self.model(params, x) - jnp.sin(x[0]) * x[1]


W, head = jax.random.normal(jax.random.key(0), (2, 6)), jnp.linspace(-1.0, 1.0, 6)
params = {"body": {"W": W, "b": jnp.zeros(6)}, "head": head}
samples = angd.Samples(jax.random.normal(jax.random.key(1), (30, 2)))
opt = angd.ANGD(angd.ARGFlow.gradient(1.0), angd.Energy(), angd.Normal(1e-3))

frozen = angd.Frozen(model, params, {"body": False, "head": True})
fit = angd.fit(
    Fit(frozen), opt, params=frozen.init(), samples=samples, steps=1, progress=False
)
trained = frozen.whole(fit.params)
assert jnp.array_equal(trained["body"]["W"], W)

# Least squares with damping, for the columns of the last layer alone.
O = jnp.tanh(samples.x @ W)
r = O @ head - jnp.sin(samples.x[:, 0]) * samples.x[:, 1]
expected = head - jnp.linalg.solve(O.T @ O / 30 + 1e-3 * jnp.eye(6), O.T @ r / 30)
assert jnp.allclose(trained["head"], expected, rtol=0, atol=1e-10)
print("only the last layer moved, as least squares says")
