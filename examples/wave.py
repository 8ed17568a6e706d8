"""A string that swings: the wave equation u_tt = 4 u_xx, with two harmonics.

Second order in time needs two conditions at the start, for u and for its velocity.
Run it: `angd run examples/wave.py --seconds 60`.
"""

import jax.numpy as jnp

import angd
from angd.problems.pinn import Box, Condition, Faces, Network, Problem, d

box = Box((0.0, 1.0), (0.0, 1.0))  # t, x


def exact(z):
    t, x = z
    first = jnp.sin(jnp.pi * x) * jnp.cos(2 * jnp.pi * t)
    return first + jnp.sin(3 * jnp.pi * x) * jnp.cos(6 * jnp.pi * t) / 2


def equation(u, z):
    return d(u, 0, 0)(z) - 4 * d(u, 1, 1)(z)


ends = Faces((box.face(1, "lower"), box.face(1, "upper")))
conditions = {
    "shape": Condition(
        box.face(0, "lower"), lambda u, z: u(z) - exact(z), weight=1000.0
    ),
    "velocity": Condition(
        box.face(0, "lower"), lambda u, z: d(u, 0)(z), weight=10.0
    ),
    "ends": Condition(ends, lambda u, z: u(z), weight=1000.0),
}
problem = Problem(Network((24, 24), activation="sin"), box, equation, conditions)
task = angd.Task(problem, name="wave", exact=exact, coordinates=("t", "x"))
