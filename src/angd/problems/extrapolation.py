"""From the energies and variances of several states to the ground state's: E → E₀ as σ² → 0."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

ROUNDS = 20  # of refining the weights, which need the slope
FLOOR = 1e-12  # relative to the energy: no state weighs infinitely


@dataclass(frozen=True)
class Extrapolation:
    """The straight line through energies and variances, at variance 0.

    **Attributes:**

    - `energy`: E₀, where the line ends.
    - `error`: its standard error; where points lie further from the line than their errors allow, larger by as much.
    - `slope`: dE/dσ².
    - `misfit`: √(χ²/(m − 2)) of m states, near 1 where a line describes them; NaN for two.
    - `states`: how many there were, m.
    """

    energy: float
    error: float
    slope: float
    misfit: float
    states: int


def extrapolate(states: Sequence[Any]) -> Extrapolation:
    """Fit E = E₀ + c σ² to several states: a better estimate of the ground state than the best of them.

    An eigenstate has no variance, and close to one, energy and variance grow together while errors are of one kind: E −
    E₀ = Σ |c_k|² (E_k − E₀), σ² ≈ Σ |c_k|² (E_k − E₀)². The line is no bound, and bends where states are far away. A
    state weighs 1/(δE² + c² δσ²²).

    **Arguments:**

    - `states`: estimates of `evaluate`, two at least, or anything with `energy`, `error`, `variance` and
      `variance_error`; states of different variance, such as those of several stages of training.

    **Returns:** an `Extrapolation`.

    **References:** Kwon, Ceperley and Martin, Phys. Rev. B 48 (1993) 12037; Fu, Ren and Chen, Mach. Learn.: Sci.
    Technol. 5 (2024) 015016, who take the states along the training of a network.
    """
    columns = [[float(getattr(s, name)) for s in states] for name in ("energy", "error", "variance", "variance_error")]
    E, dE, V, dV = np.array(columns).reshape(4, -1)
    if len(set(V)) < 2 or not np.isfinite(columns).all():
        raise ValueError("extrapolate: at least two states of different variance are needed, all of them finite.")
    dE = np.maximum(dE, FLOOR * (1 + np.abs(E)))
    weights = 1 / dE**2
    for _ in range(ROUNDS):
        weights = 1 / (dE**2 + _line(E, V, weights)[0][1] ** 2 * dV**2)
    (energy, slope), covariance = _line(E, V, weights)
    freedom = len(E) - 2
    misfit = np.sqrt(np.sum(weights * (E - energy - slope * V) ** 2) / freedom) if freedom else np.nan
    error = np.sqrt(covariance[0, 0]) * max(1.0, np.nan_to_num(misfit))
    return Extrapolation(float(energy), float(error), float(slope), float(misfit), len(E))


def _line(y: np.ndarray, x: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Intercept and slope, and their covariance; x and y are measured from their means, to lose no digits."""
    total = weights.sum()
    x0, y0 = weights @ x / total, weights @ y / total
    spread = weights @ (x - x0) ** 2
    slope = weights @ ((x - x0) * (y - y0)) / spread
    cross = -x0 / spread
    covariance = np.array([[1 / total + x0**2 / spread, cross], [cross, 1 / spread]])
    return np.array([y0 - slope * x0, slope]), covariance
