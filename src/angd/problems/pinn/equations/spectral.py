"""References on a circle: Fourier in space, exponential time differencing of fourth order (ETDRK4) in time.

For u_t = L u + N(u) with L diagonal in Fourier space. L is treated exactly; the coefficients, which cancel badly for
small hL, are means over a circle around it (Cox & Matthews 2002, Kassam & Trefethen 2005).
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

Hat = np.ndarray  # of rfft
Times = np.ndarray | Sequence[float]
CIRCLE = np.exp(1j * np.pi * (np.arange(1, 33) - 0.5) / 16)[None, :]  # points on the circle


class Scheme(NamedTuple):
    """Coefficients for one length of step h: e^{hL}, e^{hL/2}, and the four of Kassam & Trefethen."""

    whole: Hat
    half: Hat
    q: Hat
    first: Hat
    middle: Hat
    last: Hat


def scheme(linear: Hat, h: float) -> Scheme:
    """ETDRK4 with steps h.

    **Arguments:**

    - `linear`: the eigenvalues of L, by wave number.
    - `h`: the step.
    """
    z = h * linear[:, None] + CIRCLE
    e = np.exp(z)
    q = h * np.mean((np.exp(z / 2) - 1) / z, axis=1)
    first = h * np.mean((-4 - z + e * (4 - 3 * z + z**2)) / z**3, axis=1)
    middle = h * np.mean((2 + z + e * (z - 2)) / z**3, axis=1)
    last = h * np.mean((-4 - 3 * z - z**2 + e * (4 - z)) / z**3, axis=1)
    return Scheme(np.exp(h * linear), np.exp(h * linear / 2), q, first, middle, last)


def step(by: Scheme, nonlinear: Callable[[Hat], Hat], v: Hat) -> Hat:
    """One step.

    **Arguments:**

    - `by`: coefficients.
    - `nonlinear`: N in Fourier space.
    - `v`: the state, in Fourier space.
    """
    n = nonlinear(v)
    a = by.half * v + by.q * n
    n_a = nonlinear(a)
    b = by.half * v + by.q * n_a
    n_b = nonlinear(b)
    c = by.half * a + by.q * (2 * n_b - n)
    return by.whole * v + by.first * n + 2 * by.middle * (n_a + n_b) + by.last * nonlinear(c)


def evolve(linear: Hat, nonlinear: Callable[[Hat], Hat], start: Hat, times: Times, h: float) -> Iterator[Hat]:
    """States at increasing times, of which the first is that of the start.

    **Arguments:**

    - `linear`: the eigenvalues of L.
    - `nonlinear`: N in Fourier space.
    - `start`: in Fourier space.
    - `times`: evenly spaced.
    - `h`: the longest step.

    **Returns:** the states, in Fourier space.
    """
    yield start
    v, gap = start, (times[-1] - times[0]) / (len(times) - 1)
    count = int(np.ceil(gap / h - 1e-9))
    by = scheme(linear, gap / count)
    for _ in times[1:]:
        for _ in range(count):
            v = step(by, nonlinear, v)
        yield v


def wave_numbers(n: int, period: float) -> np.ndarray:
    """Those of rfft on n points."""
    return 2 * np.pi / period * np.arange(n // 2 + 1)


def dealiased(n: int) -> np.ndarray:
    """1 for the lower two thirds of the wave numbers, 0 for the others, whose products would alias."""
    return (np.arange(n // 2 + 1) < n / 3).astype(float)


def on_points(v: Hat, n: int, places: int) -> np.ndarray:
    """A state on `places` even points of one period and the first one of the next.

    **Arguments:**

    - `v`: in Fourier space.
    - `n`: its number of points.
    - `places`: of which every (n / places)-th point of the grid is one, or fewer than it has.
    """
    u = np.fft.irfft(v, n)[:: n // places]
    return np.append(u, u[0])


def check_places(name: str, n: int, places: int) -> None:
    """Refuse a grid that is no part of the reference's own."""
    if places < 2 or n % (places - 1):
        raise ValueError(f"{name}: its reference has {n} points; ask for 1 more than a divisor of that, got {places}.")
