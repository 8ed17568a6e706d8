"""Poisson's equation on a square, −Δu = f with u = 0 around it.

The exact solution is known, so errors are measured and drawn.
Run it: `angd run examples/poisson.py --seconds 30`.
"""

import jax.numpy as jnp

import angd
from angd.problems.pinn import Box, Condition, Faces, Network, Problem, d

box = Box((0.0, 1.0), (0.0, 1.0))  # x, y


def exact(z):
    return jnp.sin(jnp.pi * z[0]) * jnp.sin(2 * jnp.pi * z[1])


def equation(u, z):
    return d(u, 0, 0)(z) + d(u, 1, 1)(z) + 5 * jnp.pi**2 * exact(z)


faces = Faces(
    tuple(box.face(axis, side) for axis in (0, 1) for side in ("lower", "upper"))
)
edge = Condition(faces, lambda u, z: u(z), weight=100.0)
problem = Problem(Network((16, 16)), box, equation, {"edge": edge})
task = angd.Task(problem, name="poisson", exact=exact, coordinates=("x", "y"))
