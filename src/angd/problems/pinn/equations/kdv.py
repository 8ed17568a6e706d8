"""The Korteweg–de Vries equation u_t + u u_x + μ² u_xxx = 0 on [0, 1] × [−1, 1], μ = 0.022, from cos πx.

Zabusky & Kruskal's experiment (1965): the wave steepens, then breaks into solitons. Periodic.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from angd.problems.pinn.derivatives import Field, d
from angd.problems.pinn.domains import Box
from angd.problems.pinn.equations import spectral
from angd.problems.pinn.equations.allen_cahn import grid
from angd.problems.pinn.networks import Network, Periodic
from angd.problems.pinn.problem import Condition, Problem

MU = 0.022
DOMAIN = Box((0.0, 1.0), (-1.0, 1.0))
POINTS, STEP = 768, 1 / 16000  # of the reference


def residual(u: Field, z: Float[Array, "2"]) -> Float[Array, ""]:
    """u_t + u u_x + μ² u_xxx at z = (t, x)."""
    return d(u, 0)(z) + u(z) * d(u, 1)(z) + MU**2 * d(u, 1, 1, 1)(z)


def start(u: Field, z: Float[Array, "2"]) -> Float[Array, ""]:
    """u(0, x) = cos πx."""
    return u(z) - jnp.cos(jnp.pi * z[1])


def kdv(network: Any = None, weight: float = 100.0) -> Problem:
    """The problem; the start weighs `weight` times the equation.

    **Arguments:**

    - `network`: a model in place of the default one.
    - `weight`: of the initial value, against the equation's 1.
    """
    made = network or Network((24, 24, 24), embed=Periodic(axis=1, period=2.0))
    return Problem(made, DOMAIN, residual, {"start": Condition(DOMAIN.face(0, "lower"), start, weight)})


@lru_cache(maxsize=4)
def reference(times: int = 101, places: int = 257, points: int = POINTS, h: float = STEP) -> tuple[Any, np.ndarray]:
    """Points (t, x) of a grid and u there.

    **Arguments:**

    - `times`: even ones from 0 to 1.
    - `places`: 1 more than a divisor of `points`.
    - `points`: of the Fourier series.
    - `h`: the longest step in time.
    """
    spectral.check_places("kdv", points, places)
    k, keep = spectral.wave_numbers(points, 2.0), spectral.dealiased(points)
    x = -1 + 2 * np.arange(points) / points

    def nonlinear(v: np.ndarray) -> np.ndarray:
        return -0.5j * k * keep * np.fft.rfft(np.fft.irfft(v, points) ** 2)

    t = np.linspace(0, 1, times)
    states = spectral.evolve(1j * MU**2 * k**3, nonlinear, np.fft.rfft(np.cos(np.pi * x)), t, h)
    u = np.stack([spectral.on_points(v, points, places - 1) for v in states])
    return grid(t, np.linspace(-1, 1, places)), u.ravel()


def known() -> dict[str, Any]:
    """What a `Task` needs."""

    def values(counts: Sequence[int] | None = None) -> Any:
        z, u = reference(*(counts or ()))
        return z, {"u": u}

    return {"problem": kdv(), "reference": values, "coordinates": ("t", "x")}
