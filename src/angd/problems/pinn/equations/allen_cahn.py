"""The Allen–Cahn equation u_t = 10⁻⁴ u_xx + 5 (u − u³) on [0, 1] × [−1, 1], periodic, from x² cos πx.

The usual benchmark (Raissi, Perdikaris & Karniadakis 2019). The solution is even, so the field is mirrored and periodic
by its features; the initial value is built in.
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
from angd.problems.pinn.networks import Mirrored, Network, Periodic
from angd.problems.pinn.problem import Problem

D, RATE = 1e-4, 5.0
HALF = Box((0.0, 1.0), (0.0, 1.0))
POINTS, STEP = 4096, 1 / 2000  # of the reference


def initial(x: Float[Array, ""]) -> Float[Array, ""]:
    """x² cos πx."""
    return x**2 * jnp.cos(jnp.pi * x)


def residual(u: Field, z: Float[Array, "2"]) -> Float[Array, ""]:
    """u_t − D u_xx − 5 (u − u³) at z = (t, x)."""
    return d(u, 0)(z) - D * d(u, 1, 1)(z) - RATE * (u(z) - u(z) ** 3)


def from_the_start(z: Float[Array, "2"], value: Float[Array, ""]) -> Float[Array, ""]:
    """x² cos πx at t = 0."""
    return initial(z[1]) + z[0] * value


def start(u: Field, z: Float[Array, "2"]) -> Float[Array, ""]:
    """u(0, x) = x² cos πx."""
    return u(z) - initial(z[1])


def allen_cahn(network: Any = None) -> Problem:
    """The problem on the right half, by default with three layers of twenty."""
    made = network or Mirrored(Network((20, 20, 20), embed=Periodic(axis=1, period=2.0)), axis=1, parity=1)
    return Problem(made, HALF, residual, {}, from_the_start)


@lru_cache(maxsize=4)
def reference(times: int = 101, places: int = 257, points: int = POINTS, h: float = STEP) -> tuple[Any, np.ndarray]:
    """Points (t, x) of a grid and u there.

    **Arguments:**

    - `times`: even ones from 0 to 1.
    - `places`: 1 more than a divisor of `points`.
    - `points`: of the Fourier series.
    - `h`: the longest step in time.
    """
    spectral.check_places("allen-cahn", points, places)
    k = spectral.wave_numbers(points, 2.0)

    def nonlinear(v: np.ndarray) -> np.ndarray:
        return -RATE * np.fft.rfft(np.fft.irfft(v, points) ** 3)

    t, at = np.linspace(0, 1, times), np.linspace(-1, 1, places)
    states = spectral.evolve(RATE - D * k**2, nonlinear, points * _coefficients(points // 2 + 1), t, h)
    u = np.stack([spectral.on_points(v, points, places - 1) for v in states])
    u[0] = at**2 * np.cos(np.pi * at)
    return grid(t, at), u.ravel()


def _coefficients(count: int) -> np.ndarray:
    """Fourier coefficients of x² cos πx by x = −1; samples would alias, because its period has a kink."""
    m = np.arange(-1, count + 1)
    squares = np.where(m == 0, 2 / 3, 4 * (-1.0) ** m / (np.pi * np.where(m == 0, 1, m)) ** 2)
    return (-1.0) ** np.arange(count) * (squares[2:] + squares[:-2]) / 4


def grid(t: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Points (t, x)."""
    return np.stack([part.ravel() for part in np.meshgrid(t, x, indexing="ij")], axis=1)


def known() -> dict[str, Any]:
    """What a `Task` needs."""

    def values(counts: Sequence[int] | None = None) -> Any:
        z, u = reference(*(counts or ()))
        return z, {"u": u}

    return {"problem": allen_cahn(), "reference": values, "coordinates": ("t", "x")}
