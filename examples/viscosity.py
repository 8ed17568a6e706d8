"""An inverse problem: the viscosity of Burgers' equation, from noisy measurements.

The run ends with the coefficient and its error bar.
Run it: `angd run examples/viscosity.py --seconds 30`.
"""

import jax
import jax.numpy as jnp

import angd
from angd.problems.pinn import Box, Coefficient, Network, Problem, d, observed

NU = 0.05  # what should be found
box = Box((0.0, 1.0), (-1.0, 1.0))  # t, x


def front(z):  # a front that moves at speed ½
    t, x = z
    return (1 - jnp.tanh((x - t / 2) / (4 * NU))) / 2


def equation(u, z, c):
    return d(u, 0)(z) + u(z) * d(u, 1)(z) - c["nu"] * d(u, 1, 1)(z)


keys = jax.random.split(jax.random.key(0), 2)
points = box.place(jax.random.uniform(keys[0], (200, 2)))
values = jax.vmap(front)(points) + 0.01 * jax.random.normal(keys[1], (200,))
problem = Problem(
    Network((12, 12)),
    box,
    equation,
    {"measured": observed(points, values, noise=0.01)},
    unknowns={"nu": Coefficient(0.5, lower=0)},
)
task = angd.Task(problem, name="viscosity", fields=("u",), coordinates=("t", "x"))
