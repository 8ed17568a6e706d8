"""A particle in a double well, V = (x² − 2)²/2: its ground state by Monte Carlo.

Any function that returns a sign and log|ψ| is a wave function.
Run it: `angd run examples/double_well.py angd-fr --mu 0.8 --rate 0.05 --steps 200`.
"""

import jax
import jax.numpy as jnp

import angd
from angd.problems.vmc import GaussianStart, GroundState, Metropolis


def log_psi(params, x):
    hidden = jnp.tanh(params["w"] * jnp.sum(x) ** 2 + params["b"])
    return jnp.ones(()), hidden @ params["a"] - jnp.exp(params["s"]) * jnp.sum(x**4)


def potential(x):
    return jnp.sum((x**2 - 2) ** 2) / 2


w, b, a = 0.3 * jax.random.normal(jax.random.key(0), (3, 8))
start = {"w": w, "b": b, "a": a, "s": jnp.array(-2.0)}
chain = Metropolis(
    GaussianStart(particles=1, dimension=1), walkers=400, burn_in=100, moves=10
)
problem = GroundState(log_psi, potential)
known = {"params": start, "samples": chain, "energy": 1.144816}
task = angd.Task(problem, name="double-well", **known)
