"""A family of solutions: Burgers' equation from −sin πx for every viscosity from 0.1 to 0.01, in one network.

The viscosity is a third coordinate, s = log₁₀ ν, along which nothing is differentiated: u_t + u u_x = 10^s u_xx. The
initial value is built in; the field is odd, and periodic by its features.
"""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from angd.problems.pinn import burgers
from angd.problems.pinn.derivatives import Field, d
from angd.problems.pinn.domains import Box
from angd.problems.pinn.networks import Mirrored, Network
from angd.problems.pinn.problem import Problem

HALF = Box((0.0, 1.0), (0.0, 1.0), (-2.0, -1.0))  # t, x, log₁₀ ν


def residual(u: Field, z: Float[Array, "3"]) -> Float[Array, ""]:
    """u_t + u u_x − 10^s u_xx at z = (t, x, s)."""
    return d(u, 0)(z) + u(z) * d(u, 1)(z) - 10 ** z[2] * d(u, 1, 1)(z)


def from_the_start(z: Float[Array, "3"], value: Float[Array, ""]) -> Float[Array, ""]:
    """−sin πx at t = 0."""
    return z[0] * value - jnp.sin(jnp.pi * z[1])


def family(network: Any = None) -> Problem:
    """The problem on the right half, by default with three layers of twenty."""
    made = network or Mirrored(Network((20, 20, 20), embed=burgers.PERIODIC), axis=1)
    return Problem(made, HALF, residual, {}, from_the_start)


def reference(places: int = 101, viscosities: int = 21) -> tuple[np.ndarray, np.ndarray]:
    """Points (1, x, s), x from −1 to 1, and u there, by the map of Cole and Hopf."""
    x, s = np.linspace(-1, 1, places), np.linspace(*HALF.intervals[2], viscosities)
    z = np.stack([np.ones((places, 1)) * np.ones((1, viscosities)), *np.meshgrid(x, s, indexing="ij")], axis=2)
    columns = [burgers.solution("-sin", z[:, i, :2], nu=10**each) for i, each in enumerate(s)]
    return z.reshape(-1, 3), np.stack(columns, axis=1).ravel()


def known() -> dict[str, Any]:
    """What a `Task` needs."""

    def values(counts: Sequence[int] | None = None) -> Any:
        z, u = reference(*(counts or ()))
        return z, {"u": u}

    return {"problem": family(), "reference": values, "coordinates": ("t", "x", "log10(nu)")}
