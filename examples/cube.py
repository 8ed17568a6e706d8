"""Laplace's equation in ten dimensions, with its values on the twenty faces.

`laplacian` is one pass forward with 12 channels, whatever the number of layers.
Run it: `angd run examples/cube.py --seconds 60`.
"""

import jax.numpy as jnp

import angd
from angd.problems.pinn import Box, Condition, Faces, Network, Problem, laplacian

box = Box(*[(0.0, 1.0)] * 10)


def exact(z):
    return jnp.sum(z[::2] * z[1::2])


faces = [box.face(axis, side) for axis in range(10) for side in ("lower", "upper")]
edge = Condition(Faces(tuple(faces)), lambda u, z: u(z) - exact(z), weight=100.0)
problem = Problem(Network((32,)), box, lambda u, z: laplacian(u)(z), {"edge": edge})
task = angd.Task(problem, name="cube", exact=exact)
