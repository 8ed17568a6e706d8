"""A plate that is insulated all around, with its mean temperature given.

Without the mean the solution is known up to a constant: an integral is a condition.
Run it: `angd run examples/insulated.py --seconds 30`.
"""

import jax.numpy as jnp

import angd
from angd.problems.pinn import (
    Box,
    Condition,
    Faces,
    Integral,
    Network,
    Problem,
    d,
    laplacian,
)

box = Box((0.0, 1.0), (0.0, 1.0))  # x, y


def exact(z):
    return 1 + jnp.cos(jnp.pi * z[0]) * jnp.cos(2 * jnp.pi * z[1])


def equation(u, z):
    return laplacian(u)(z) + 5 * jnp.pi**2 * (exact(z) - 1)


sides = [Faces((box.face(i, "lower"), box.face(i, "upper"))) for i in (0, 1)]
conditions = {
    "mean": Condition(Integral(box), lambda u, nodes: nodes.mean(u) - 1, 10.0),
    "left and right": Condition(sides[0], lambda u, z: d(u, 0)(z), 10.0),
    "below and above": Condition(sides[1], lambda u, z: d(u, 1)(z), 10.0),
}
problem = Problem(Network((16, 16)), box, equation, conditions)
task = angd.Task(problem, name="insulated", exact=exact, coordinates=("x", "y"))
