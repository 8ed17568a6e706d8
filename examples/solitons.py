"""Waves that break into solitons: the Korteweg–de Vries equation, μ = 0.022.

Later times hang on earlier ones, so that the time is cut into slabs.
Run it: `angd run examples/solitons.py energy --slabs 5 --seconds 120`.
"""

import jax.numpy as jnp

import angd
from angd.problems.pinn import Box, Condition, Network, Periodic, Problem, d

box = Box((0.0, 1.0), (-1.0, 1.0))  # t, x


def equation(u, z):
    return d(u, 0)(z) + u(z) * d(u, 1)(z) + 0.022**2 * d(u, 1, 1, 1)(z)


def start(u, z):
    return u(z) - jnp.cos(jnp.pi * z[1])


network = Network((20, 20), embed=Periodic(axis=1, period=2.0))
begin = Condition(box.face(0, "lower"), start, weight=100.0)
problem = Problem(network, box, equation, {"start": begin})
task = angd.Task(problem, name="solitons", coordinates=("t", "x"))
