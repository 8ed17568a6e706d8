"""The heat equation u_t = ¼ Δu in four dimensions and time, from Σ sin 2x_i: u = e^{−t} Σ sin 2x_i.

The initial values are built into the field; u is given on the faces (Müller & Zeinhofer 2023). One layer of sines: see
`poisson`.
"""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from angd.problems.pinn.derivatives import Field, d
from angd.problems.pinn.domains import Box, Faces
from angd.problems.pinn.laplacian import laplacian
from angd.problems.pinn.networks import Network
from angd.problems.pinn.problem import Condition, Problem

DOMAIN = Box(*[(0.0, 1.0)] * 5)  # t, x1 … x4


def exact(z: Float[Array, "5"]) -> Float[Array, ""]:
    """The solution."""
    return jnp.exp(-z[0]) * jnp.sum(jnp.sin(2 * z[1:]))


def residual(u: Field, z: Float[Array, "5"]) -> Float[Array, ""]:
    """u_t − ¼ Δu."""
    return d(u, 0)(z) - laplacian(u, range(1, 5))(z) / 4


def edge(u: Field, z: Float[Array, "5"]) -> Float[Array, ""]:
    """u is known on the faces of the cube."""
    return u(z) - exact(z)


def from_the_start(z: Float[Array, "5"], value: Float[Array, ""]) -> Float[Array, ""]:
    """Σ sin 2x_i at t = 0."""
    return jnp.sum(jnp.sin(2 * z[1:])) + z[0] * value


def heat(network: Any = None) -> Problem:
    """The problem, by default with one layer of sines."""
    faces = Faces(tuple(DOMAIN.face(axis, side) for axis in range(1, 5) for side in ("lower", "upper")))
    conditions = {"edge": Condition(faces, edge, 100.0)}
    return Problem(network or Network((64,), activation="sin"), DOMAIN, residual, conditions, from_the_start)


def known() -> dict[str, Any]:
    """What a `Task` needs."""
    return {"problem": heat(), "exact": exact, "coordinates": ("t", "x1", "x2", "x3", "x4")}
