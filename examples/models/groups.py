"""Groups of parameters with dampings of their own: (G + Λ) δ = v with Λ = diag(λ of
each group).

    python examples/models/groups.py

Damping acts on parameters in their units. A group that is written as θ = s φ, and
trained in φ, has the damping λ/s².
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

import angd

jax.config.update("jax_enable_x64", True)

DAMPING = {"body": 1e-2, "head": 1e-5}
SCALE = {
    name: DAMPING[name] ** -0.5 for name in DAMPING
}  # with λ = 1 in the solver


def to_params(phi):
    return {name: SCALE[name] * phi[name] for name in phi}


class Fit(eqx.Module):
    def residual(self, phi, x):
        params = to_params(phi)
        return jnp.tanh(x @ params["body"]) @ params["head"] - jnp.sin(x[0]) * x[1]


start = {
    "body": jax.random.normal(jax.random.key(0), (2, 6)),
    "head": jnp.linspace(-1.0, 1.0, 6),
}
samples = angd.Samples(jax.random.normal(jax.random.key(1), (30, 2)))
opt = angd.ANGD(angd.ARGFlow.gradient(1.0), angd.Energy(), angd.Normal(1.0))
phi = {name: start[name] / SCALE[name] for name in start}
fit = angd.fit(Fit(), opt, params=phi, samples=samples, steps=1, progress=False)
found = to_params(fit.params)

# The same by dense linear algebra, in the parameters themselves.
flat, unravel = ravel_pytree(start)


def residuals(vector):
    params = unravel(vector)
    return (
        jnp.tanh(samples.x @ params["body"]) @ params["head"]
        - jnp.sin(samples.x[:, 0]) * samples.x[:, 1]
    )


O, r = jax.jacobian(residuals)(flat), residuals(flat)
damping, _ = ravel_pytree(
    {name: jnp.full(leaf.shape, DAMPING[name]) for name, leaf in start.items()}
)
expected = unravel(
    flat - jnp.linalg.solve(O.T @ O / 30 + jnp.diag(damping), O.T @ r / 30)
)
assert all(
    jnp.allclose(found[name], expected[name], rtol=0, atol=1e-10) for name in start
)
print("each group has its own damping")
