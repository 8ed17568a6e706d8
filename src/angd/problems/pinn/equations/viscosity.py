"""An inverse problem: u_t + λ u u_x = ν u_xx with λ and ν unknown, from 500 values with noise of one per cent.

The values are those of a front that moves at speed ½ (λ = 1, ν = 0.05); neither initial nor boundary values are given.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from angd.problems.pinn.derivatives import Field, d
from angd.problems.pinn.domains import Box
from angd.problems.pinn.networks import Network
from angd.problems.pinn.problem import Problem, observed
from angd.problems.pinn.unknowns import Coefficient

NU, SPEED = 0.05, 1.0
DOMAIN = Box((0.0, 1.0), (-1.0, 1.0))
VALUES, NOISE = 500, 0.01


def exact(z: Float[Array, "2"]) -> Float[Array, ""]:
    """The front at (t, x)."""
    t, x = z
    return (1 - jnp.tanh((x - t / 2) / (4 * NU))) / 2


def residual(u: Field, z: Float[Array, "2"], c: Any) -> Float[Array, ""]:
    """u_t + λ u u_x − ν u_xx at z = (t, x)."""
    return d(u, 0)(z) + c["speed"] * u(z) * d(u, 1)(z) - c["nu"] * d(u, 1, 1)(z)


def measured(draw: int = 0, values: int = VALUES) -> tuple[np.ndarray, np.ndarray]:
    """Points and noisy values.

    **Arguments:**

    - `draw`: the seed of the noise.
    - `values`: how many.
    """
    t, x = np.random.default_rng(7).uniform((0, -1), (1, 1), (values, 2)).T
    noise = NOISE * np.random.default_rng(draw).standard_normal(values)
    return np.stack([t, x], axis=1), (1 - np.tanh((x - t / 2) / (4 * NU))) / 2 + noise


def viscosity(network: Any = None, draw: int = 0) -> Problem:
    """The problem.

    **Arguments:**

    - `network`: a model in place of the default one.
    - `draw`: the seed of the noise.
    """
    conditions = {"measured": observed(*measured(draw), noise=NOISE)}
    unknowns = {"nu": Coefficient(0.5, lower=0), "speed": Coefficient(0.5)}
    return Problem(network or Network((12, 12)), DOMAIN, residual, conditions, unknowns=unknowns)


def known() -> dict[str, Any]:
    """What a `Task` needs."""
    return {"problem": viscosity(), "exact": exact, "coordinates": ("t", "x")}
