"""Sod's shock tube (1978), Euler's equations: a rarefaction, a contact and a shock from two gases at rest.

(ρ, u, p) = (1, 0, 1) | (0.125, 0, 0.1) meet at x = ½; t ≤ 0.2, before a wave reaches an end. The network sees the ray
from the jump (`euler.rays`) and gives log ρ and log p. In a shock no differential equation holds: residuals are divided
by 1 + κ (|u_x| − u_x), which is 1 but where the gas is compressed (Liu et al. 2024), so that they neither smear the
shock nor keep the others waiting.
"""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from angd.problems.pinn import euler
from angd.problems.pinn.derivatives import Field, d
from angd.problems.pinn.domains import Box, Faces
from angd.problems.pinn.equations import riemann
from angd.problems.pinn.networks import Network
from angd.problems.pinn.problem import Condition, Problem

LEFT, RIGHT, MIDDLE = (1.0, 0.0, 1.0), (0.125, 0.0, 0.1), 0.5
DOMAIN = Box((0.0, 0.2), (0.0, 1.0))
KAPPA = 0.2


def residual(field: Field, z: Float[Array, "2"]) -> Float[Array, "3"]:
    """Euler's residual, t/T times, and less where the gas is compressed."""
    slope = d(field, 1)(z)[1]
    return euler.scale_free(field, z) / (1 + KAPPA * (jnp.abs(slope) - slope))


def undisturbed(field: Field, z: Float[Array, "2"]) -> Float[Array, "3"]:
    """The state of the start."""
    return field(z) - jnp.where(z[1] < MIDDLE, jnp.asarray(LEFT), jnp.asarray(RIGHT))


def sod(network: Any = None, weight: float = 10.0) -> Problem:
    """The problem.

    **Arguments:**

    - `network`: a model of (log ρ, u, log p) in place of the default one.
    - `weight`: of start and ends, against the equation's 1.
    """
    conditions = {
        "initial": Condition(DOMAIN.face(0, "lower"), undisturbed, weight),
        "ends": Condition(Faces((DOMAIN.face(1, "lower"), DOMAIN.face(1, "upper"))), undisturbed, weight),
    }
    made = network or Network((20, 20, 20), 3, embed=euler.rays)
    return Problem(made, DOMAIN, residual, conditions, euler.positive)


def reference(places: int = 401, t: float = 0.2) -> tuple[np.ndarray, np.ndarray]:
    """Points of an even grid at one time, and (ρ, u, p) there."""
    x = np.linspace(0, 1, places)
    return np.stack([np.full(places, t), x], axis=1), riemann.solution(LEFT, RIGHT, (x - MIDDLE) / t)


def known() -> dict[str, Any]:
    """What a `Task` needs."""

    def values(counts: Sequence[int] | None = None) -> Any:
        z, states = reference(*(counts or ()))
        return z, dict(zip(euler.FIELDS, states.T, strict=True))

    return {"problem": sod(), "reference": values, "coordinates": ("t", "x")}
