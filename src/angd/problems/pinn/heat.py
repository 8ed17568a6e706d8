"""The heat equation u_t = κ u_xx on [0, 1] × [−1, 1] from sin(πx): a problem of seconds, for trying things out."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from angd.problems.pinn.derivatives import Field, d
from angd.problems.pinn.domains import Box, Faces
from angd.problems.pinn.networks import Model, Network
from angd.problems.pinn.problem import Condition, Problem

KAPPA = 0.1
DOMAIN = Box((0.0, 1.0), (-1.0, 1.0))


def residual(u: Field, z: Float[Array, "2"]) -> Float[Array, ""]:
    """u_t − κ u_xx at z = (t, x)."""
    return d(u, 0)(z) - KAPPA * d(u, 1, 1)(z)


def start(u: Field, z: Float[Array, "2"]) -> Float[Array, ""]:
    """u(0, x) = sin(πx)."""
    return u(z) - jnp.sin(jnp.pi * z[1])


def wall(u: Field, z: Float[Array, "2"]) -> Float[Array, ""]:
    """u = 0."""
    return u(z)


def heat(network: Model | None = None) -> Problem:
    """The problem; by default with two layers of eight."""
    conditions = {
        "initial": Condition(DOMAIN.face(0, "lower"), start, 10.0),
        "walls": Condition(Faces((DOMAIN.face(1, "lower"), DOMAIN.face(1, "upper"))), wall, 10.0),
    }
    return Problem(network or Network((8, 8)), DOMAIN, residual, conditions)


def reference(nx: int = 101, nt: int = 26) -> tuple[np.ndarray, np.ndarray]:
    """Points (t, x) of a grid and the solution there, exp(−κπ²t) sin(πx)."""
    t, x = (part.ravel() for part in np.meshgrid(np.linspace(0, 1, nt), np.linspace(-1, 1, nx), indexing="ij"))
    return np.stack([t, x], 1), np.exp(-KAPPA * np.pi**2 * t) * np.sin(np.pi * x)
