"""A front that burns through a medium which is denser on one side.

u_t = 0.05 u_xx + 5 x u (1 − u), no solution known: `angd run examples/front.py`.
"""

import jax.numpy as jnp

from angd.problems.pinn import Box, Condition, Faces, Network, Problem, d

box = Box((0.0, 1.0), (0.0, 2.0))  # t, x
walls = Faces((box.face(1, "lower"), box.face(1, "upper")))


def equation(u, z):
    return d(u, 0)(z) - 0.05 * d(u, 1, 1)(z) - 5 * z[1] * u(z) * (1 - u(z))


def start(u, z):
    return u(z) - jnp.exp(-20 * z[1] ** 2)


def no_flux(u, z):
    return d(u, 1)(z)


conditions = {
    "start": Condition(box.face(0, "lower"), start, weight=10.0),
    "walls": Condition(walls, no_flux, weight=10.0),
}
problem = Problem(Network((16, 16)), box, equation, conditions)
