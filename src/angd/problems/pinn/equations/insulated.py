"""A problem that needs an integral: −Δu = f on a square without flux through its edge, and the mean of u is 1.

Without the mean u is known up to a constant only. The exact solution is 1 + cos πx cos 2πy.
"""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from angd.problems.pinn.derivatives import Field, d
from angd.problems.pinn.domains import Box, Faces
from angd.problems.pinn.integrals import Integral, Nodes
from angd.problems.pinn.laplacian import laplacian
from angd.problems.pinn.networks import Network
from angd.problems.pinn.problem import Condition, Problem

DOMAIN = Box((0.0, 1.0), (0.0, 1.0))
MEAN = 1.0


def exact(z: Float[Array, "2"]) -> Float[Array, ""]:
    """The solution."""
    return MEAN + jnp.cos(jnp.pi * z[0]) * jnp.cos(2 * jnp.pi * z[1])


def residual(u: Field, z: Float[Array, "2"]) -> Float[Array, ""]:
    """Δu + f."""
    return laplacian(u)(z) + 5 * jnp.pi**2 * (exact(z) - MEAN)


def mean(u: Field, nodes: Nodes) -> Float[Array, ""]:
    """How far off the mean is."""
    return nodes.mean(u) - MEAN


def flux_x(u: Field, z: Float[Array, "2"]) -> Float[Array, ""]:
    """∂u/∂x = 0."""
    return d(u, 0)(z)


def flux_y(u: Field, z: Float[Array, "2"]) -> Float[Array, ""]:
    """∂u/∂y = 0."""
    return d(u, 1)(z)


def insulated(network: Any = None) -> Problem:
    """The problem, by default with two layers of sixteen."""
    sides = [Faces((DOMAIN.face(axis, "lower"), DOMAIN.face(axis, "upper"))) for axis in (0, 1)]
    conditions = {
        "mean": Condition(Integral(DOMAIN), mean, 10.0),
        "left and right": Condition(sides[0], flux_x, 10.0),
        "below and above": Condition(sides[1], flux_y, 10.0),
    }
    return Problem(network or Network((16, 16)), DOMAIN, residual, conditions)


def known() -> dict[str, Any]:
    """What a `Task` needs."""
    return {"problem": insulated(), "exact": exact, "coordinates": ("x", "y")}
