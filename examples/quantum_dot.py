"""Two electrons in a quantum dot, a harmonic trap in two dimensions.

The exact energy of this trap is 3 Hartree.
Run it: `angd run examples/quantum_dot.py angd-fr --mu 0.8 --rate 0.05 --steps 200`.
"""

import jax
import jax.numpy as jnp

import angd
from angd.problems.vmc import GaussianStart, GroundState, Metropolis


def distance(x):
    return jnp.sqrt(jnp.sum((x[0] - x[1]) ** 2))


def log_psi(
    params, x
):  # singlet: symmetric under exchange, with the cusp of two electrons
    r = distance(x)
    features = jnp.stack([jnp.sum(x**2), r**2, jnp.sum(x**2) ** 2 / 100])
    hidden = jnp.tanh(params["w"] @ features + params["b"])
    cusp = r / (1 + jnp.exp(params["range"]) * r)
    return jnp.ones(()), cusp - jnp.sum(x**2) / 2 + hidden @ params["a"]


def potential(x):
    return jnp.sum(x**2) / 2 + 1 / distance(x)


w, b, a = (
    0.1 * jax.random.normal(key, shape)
    for key, shape in zip(
        jax.random.split(jax.random.key(0), 3), ((8, 3), (8,), (8,)), strict=True
    )
)
start = {"w": w, "b": b, "a": a, "range": jnp.array(-0.5)}
chain = Metropolis(
    GaussianStart(particles=2, dimension=2), walkers=400, burn_in=100, moves=10
)
problem = GroundState(log_psi, potential)
task = angd.Task(
    problem, name="quantum-dot", params=start, samples=chain, energy=3.0
)
