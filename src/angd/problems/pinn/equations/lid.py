"""The flow in a square whose lid slides, to spectral accuracy: the stream function in Shen's Legendre basis, by Newton.

With u = ψ_y, v = −ψ_x the steady Navier–Stokes equations say, for every φ that is clamped at the walls,

    ν ∫ Δψ Δφ + ∫ Δψ (ψ_y φ_x − ψ_x φ_y) = 0.

ψ is a polynomial with the speed of the lid plus a sum of products φ_j(x) φ_k(y) of clamped combinations of Legendre
polynomials, for which the first term is well conditioned (Shen 1994). On [−1, 1]², where ν = 2/Re.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial import Legendre, Polynomial
from scipy.sparse.linalg import LinearOperator, gmres

NEWTON, ENOUGH = 12, 1e-11
ORDERS = (((2, 0), (0, 2)), ((1, 0),), ((0, 1),))  # derivatives of which Δ, ∂x and ∂y consist


class Flow(NamedTuple):
    """A flow: what its lid does, and the coefficients of the clamped part of ψ."""

    lid: Polynomial
    coefficients: np.ndarray

    def velocity(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """u and v on a grid, each of shape (len(x), len(y)).

        **Arguments:**

        - `x`: in [0, 1].
        - `y`: in [0, 1], 1 at the lid.
        """
        across, up = (np.asarray(part) * 2 - 1 for part in (x, y))
        u, v = (_lift(self.lid, across, up, *order) for order in ((0, 1), (1, 0)))
        n = len(self.coefficients)
        f, f1, g, g1 = (_basis(n, points, order) for points in (across, up) for order in (0, 1))
        return u + f @ self.coefficients @ g1.T, -(v + f1 @ self.coefficients @ g.T)


def smooth(power: int = 1) -> Polynomial:
    """The speed (1 − x^{2 power})² of a lid that is at rest at its ends: 16 x² (1 − x)² on [0, 1] for 1, which is the
    usual regularised one; a large power makes it nearly constant."""
    return (1 - Polynomial([0, 1]) ** (2 * power)) ** 2


@lru_cache(maxsize=4)
def solve(re: float = 100.0, n: int = 96, power: int = 1) -> Flow:
    """The steady flow.

    **Arguments:**

    - `re`: the Reynolds number, of the lid's length and largest speed; up to a few hundred Newton's method finds it
      from rest.
    - `n`: basis functions along each side.
    - `power`: of the lid's speed, see `smooth`.
    """
    lid, nu = smooth(power), 2 / re
    x, w = np.polynomial.legendre.leggauss(n + n // 2 + 4 * power)
    f, weight = [_basis(n, x, order) for order in range(3)], np.outer(w, w)
    lift = [sum(_lift(lid, x, x, *o) for o in orders) for orders in ORDERS]
    values, vectors = np.linalg.eigh(f[0].T @ (w[:, None] * f[0]))

    def on_points(c: np.ndarray) -> list[np.ndarray]:
        c = c.reshape(n, n)
        return [np.sum([f[i] @ c @ f[j].T for i, j in orders], axis=0) for orders in ORDERS]

    def tested(*parts: np.ndarray) -> np.ndarray:
        pairs = zip(parts, ORDERS, strict=True)
        terms = [f[i].T @ (weight * part) @ f[j] for part, orders in pairs for i, j in orders]
        return np.sum(terms, axis=0).ravel()

    def stokes(r: np.ndarray) -> np.ndarray:  # its inverse but for the mixed derivatives, which at most double it
        inner = vectors.T @ r.reshape(n, n) @ vectors / (values[:, None] + values[None, :])
        return (vectors @ inner @ vectors.T).ravel() / nu

    c = np.zeros(n * n)
    for _ in range(NEWTON):
        lap, along, up = (a + b for a, b in zip(on_points(c), lift, strict=True))

        def slope(change: np.ndarray, lap: Any = lap, along: Any = along, up: Any = up) -> np.ndarray:
            d_lap, d_x, d_y = on_points(change)
            return tested(nu * d_lap, d_lap * up + lap * d_y, -d_lap * along - lap * d_x)

        r = tested(nu * lap, lap * up, -lap * along)
        shape = (n * n, n * n)
        change, _ = gmres(
            LinearOperator(shape, slope), r, rtol=1e-6, restart=100, M=LinearOperator(shape, stokes), maxiter=3
        )
        c = c - change
        if np.abs(change).max() < ENOUGH:
            return Flow(lid, c.reshape(n, n))
    raise RuntimeError(f"lid: Newton's method has not converged at Re = {re}.")


def _basis(n: int, x: np.ndarray, order: int) -> np.ndarray:
    """Derivatives of the clamped functions at points, one column for each."""
    return np.stack([_clamped(k).deriv(order)(x) if order else _clamped(k)(x) for k in range(n)], axis=1)


@lru_cache(maxsize=512)
def _clamped(k: int) -> Legendre:
    """Zero with its derivative at ±1; ∫ φ_j″ φ_k″ is 1 for j = k, else 0."""
    c = np.zeros(k + 5)
    c[[k, k + 2, k + 4]] = 1, -2 * (2 * k + 5) / (2 * k + 7), (2 * k + 3) / (2 * k + 7)
    return Legendre(c) / np.sqrt(2 * (2 * k + 3) ** 2 * (2 * k + 5))


def _lift(lid: Polynomial, x: np.ndarray, y: np.ndarray, along: int, up: int) -> np.ndarray:
    """Derivatives of lid(x) (1 + y)² (y − 1)/4, whose ∂_y at y = 1 is lid(x)."""
    height = Polynomial([1, 1]) ** 2 * Polynomial([-1, 1]) / 4
    first, second = (p.deriv(k) if k else p for p, k in ((lid, along), (height, up)))
    return np.outer(first(x), second(y))
