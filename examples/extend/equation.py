"""An equation of your own, whose solution is known: advection, u_t + u_x = 0 from sin(πx), with period 2.

    angd run examples/extend/equation.py --steps 60
    angd compare examples/extend/equation.py energy,adam --budget "60 steps"

`exact` is optional. With it errors are measured and drawn, without it the held-out loss is the judge.
"""

import jax.numpy as jnp

import angd
from angd.problems.pinn import Box, Condition, Network, Periodic, Problem, d

box = Box((0.0, 1.0), (-1.0, 1.0))  # t, x


def equation(u, z):
    return d(u, 0)(z) + d(u, 1)(z)


def start(u, z):
    return u(z) - jnp.sin(jnp.pi * z[1])


def exact(z):
    return jnp.sin(jnp.pi * (z[1] - z[0]))


network = Network((12, 12), embed=Periodic(axis=1, period=2.0))
problem = Problem(network, box, equation, {"start": Condition(box.face(0, "lower"), start, 10.0)})
task = angd.Task(problem, about="advection of a sine", exact=exact, coordinates=("t", "x"), cpu_seconds=30.0)
