"""Two phases that separate: the Allen–Cahn equation, u_t = 0.001 u_xx + 5 (u − u³).

The period is built into the network by features, so it costs no points.
Run it: `angd run examples/allen_cahn.py --seconds 60`.
"""

import jax.numpy as jnp

import angd
from angd.problems.pinn import Box, Condition, Network, Periodic, Problem, d

box = Box((0.0, 1.0), (-1.0, 1.0))  # t, x


def equation(u, z):
    return d(u, 0)(z) - 0.001 * d(u, 1, 1)(z) - 5 * (u(z) - u(z) ** 3)


def start(u, z):
    return u(z) - jnp.sin(jnp.pi * z[1])


network = Network((20, 20), embed=Periodic(axis=1, period=2.0))
begin = Condition(box.face(0, "lower"), start, weight=100.0)
problem = Problem(network, box, equation, {"start": begin})
task = angd.Task(problem, name="allen-cahn", coordinates=("t", "x"))
