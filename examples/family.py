"""All solutions at once: u_t = κ u_xx for every κ from 0.1 to 1, a coordinate.

Nothing is differentiated along it. The start is built into the field.
Run it: `angd run examples/family.py --seconds 30`.
"""

import jax.numpy as jnp

import angd
from angd.problems.pinn import Box, Condition, Faces, Network, Problem, d

box = Box((0.0, 1.0), (0.0, 1.0), (-1.0, 0.0))  # t, x, log₁₀ κ


def exact(z):
    return jnp.exp(-(10 ** z[2]) * jnp.pi**2 * z[0]) * jnp.sin(jnp.pi * z[1])


def equation(u, z):
    return d(u, 0)(z) - 10 ** z[2] * d(u, 1, 1)(z)


def from_the_start(z, value):
    return jnp.sin(jnp.pi * z[1]) + z[0] * value


ends = Faces((box.face(1, "lower"), box.face(1, "upper")))
conditions = {"ends": Condition(ends, lambda u, z: u(z), 100.0)}
problem = Problem(Network((16, 16)), box, equation, conditions, from_the_start)
names = ("t", "x", "log10(kappa)")
task = angd.Task(problem, name="family", exact=exact, coordinates=names)
