"""The Kuramoto–Sivashinsky equation in its usual scaling, from cos x (1 + sin x) on a circle.

    u_t + α u u_x + β u_xx + γ u_xxxx = 0,   α = 100/16, β = 100/16², γ = 100/16⁴,   [0, T] × [0, 2π]

It is Kassam & Trefethen's example on 32π with time and length in units of 100 and 16 (Wang, Sankaran & Perdikaris
2022). Until T = 0.5, their 50, patterns form out of long waves; later it is chaotic.
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

ALPHA, BETA, GAMMA = 100 / 16, 100 / 16**2, 100 / 16**4
END = 0.5
DOMAIN = Box((0.0, END), (0.0, 2 * np.pi))
POINTS, STEP = 512, END / 16000  # of the reference


def residual(u: Field, z: Float[Array, "2"]) -> Float[Array, ""]:
    """u_t + α u u_x + β u_xx + γ u_xxxx at z = (t, x)."""
    return d(u, 0)(z) + ALPHA * u(z) * d(u, 1)(z) + BETA * d(u, 1, 1)(z) + GAMMA * d(u, 1, 1, 1, 1)(z)


def initial(x: Array) -> Array:
    """cos x (1 + sin x)."""
    return jnp.cos(x) * (1 + jnp.sin(x))


def start(u: Field, z: Float[Array, "2"]) -> Float[Array, ""]:
    """u(0, x) = cos x (1 + sin x)."""
    return u(z) - initial(z[1])


def kuramoto_sivashinsky(network: Any = None, weight: float = 1000.0) -> Problem:
    """The problem; the start weighs `weight` times the equation, whose time runs a hundred times as fast.

    **Arguments:**

    - `network`: a model in place of the default one.
    - `weight`: of the initial value, against the equation's 1.
    """
    made = network or Network((24, 24, 24), embed=Periodic(axis=1, period=2 * np.pi))
    return Problem(made, DOMAIN, residual, {"start": Condition(DOMAIN.face(0, "lower"), start, weight)})


@lru_cache(maxsize=4)
def reference(times: int = 101, places: int = 257, points: int = POINTS, h: float = STEP) -> tuple[Any, np.ndarray]:
    """Points (t, x) of a grid and u there.

    **Arguments:**

    - `times`: even ones from 0 to 0.5.
    - `places`: 1 more than a divisor of `points`.
    - `points`: of the Fourier series.
    - `h`: the longest step in time.
    """
    spectral.check_places("kuramoto-sivashinsky", points, places)
    k, keep = spectral.wave_numbers(points, 2 * np.pi), spectral.dealiased(points)
    x = 2 * np.pi * np.arange(points) / points

    def nonlinear(v: np.ndarray) -> np.ndarray:
        return -0.5j * ALPHA * k * keep * np.fft.rfft(np.fft.irfft(v, points) ** 2)

    t = np.linspace(0, END, times)
    first = np.fft.rfft(np.cos(x) * (1 + np.sin(x)))
    states = spectral.evolve(BETA * k**2 - GAMMA * k**4, nonlinear, first, t, h)
    u = np.stack([spectral.on_points(v, points, places - 1) for v in states])
    return grid(t, np.linspace(0, 2 * np.pi, places)), u.ravel()


def known() -> dict[str, Any]:
    """What a `Task` needs."""

    def values(counts: Sequence[int] | None = None) -> Any:
        z, u = reference(*(counts or ()))
        return z, {"u": u}

    return {"problem": kuramoto_sivashinsky(), "reference": values, "coordinates": ("t", "x")}
