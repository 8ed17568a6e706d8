"""Flow in a square cavity whose lid slides, Re = 100: the steady Navier–Stokes equations.

The lid moves with 16 x² (1 − x)², the usual regularisation: with a constant speed the velocity jumps in two corners.
Velocities at all walls are built into the field. The pressure is known up to a constant; its error is not measured.
"""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from angd.problems.pinn.derivatives import Field
from angd.problems.pinn.domains import Box
from angd.problems.pinn.equations import lid
from angd.problems.pinn.equations.allen_cahn import grid
from angd.problems.pinn.equations.kovasznay import FIELDS
from angd.problems.pinn.equations.kovasznay import residual as navier_stokes
from angd.problems.pinn.networks import Network
from angd.problems.pinn.problem import Problem

RE = 100.0
DOMAIN = Box((0.0, 1.0), (0.0, 1.0))


def residual(f: Field, z: Float[Array, "2"]) -> Float[Array, "3"]:
    """Momentum along x and y, and mass."""
    return navier_stokes(f, z, RE)


def within_walls(z: Float[Array, "2"], value: Float[Array, "3"]) -> Float[Array, "3"]:
    """At rest at three walls, with the lid at the fourth."""
    x, y = z
    inside = 16 * x * (1 - x) * y * (1 - y)
    speed = 16 * x**2 * (1 - x) ** 2 * y**2
    return jnp.stack([speed + inside * value[0], inside * value[1], value[2]])


def cavity(network: Any = None) -> Problem:
    """The problem, by default with two layers of twenty-four."""
    return Problem(network or Network((24, 24), outputs=3), DOMAIN, residual, {}, within_walls)


def reference(along: int = 65, up: int = 65) -> tuple[np.ndarray, np.ndarray]:
    """Points (x, y) of an even grid, and (u, v) there."""
    x, y = np.linspace(0, 1, along), np.linspace(0, 1, up)
    u, v = lid.solve(RE).velocity(x, y)
    return grid(x, y), np.stack([u.ravel(), v.ravel()], axis=1)


def known() -> dict[str, Any]:
    """What a `Task` needs."""

    def values(counts: Sequence[int] | None = None) -> Any:
        z, found = reference(*(counts or ()))
        return z, dict(zip(FIELDS, found.T, strict=False))

    return {"problem": cavity(), "reference": values, "fields": FIELDS, "coordinates": ("x", "y")}
