"""Sobolev spaces H^s on a bounded interval, for every integer s, on Gauss–Legendre nodes.

The bilinear form k(σ, τ) = Σ_{i ≤ |s|} ∫ ∂ⁱσ ∂ⁱτ needs no boundary condition. It is the metric for s ≥ 0, and its dual
is the metric for s < 0. Either way one of G, G⁻¹ solves Σ (−∂²)ⁱ u = f with the *natural* boundary conditions, those of
Neumann for |s| = 1. The measure is normalised, ∫ dm = 1. Functions are polynomials of degree below n, and n nodes
integrate their products exactly.
"""

import math

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.polynomial import legendre

from angd.flow.manifolds.flat import AbstractFlatManifold


class SobolevIntervalManifold(AbstractFlatManifold):
    """H^s on [low, high], functions by their values at n Gauss–Legendre nodes.

    s ≥ 0: g(σ, σ) = Σ_{i ≤ s} ∫ (∂ⁱσ)². s < 0: its dual, with natural boundary conditions (∂u = 0 for s = −1).

    **Arguments:**

    - `s`: any integer below n in size; 0 is L², s > 0 smooths the gradient, s < 0 sharpens it.
    - `n`: how many nodes, 8 to 64; rounding grows like n^(2|s|).
    - `low`, `high`: the ends, −1 and 1 by default.

    **Example:** `angd.SobolevIntervalManifold(1, 24, 0.0, 1.0)`
    """

    s: int = eqx.field(static=True)
    n: int = eqx.field(static=True)
    low: float = eqx.field(static=True)
    high: float = eqx.field(static=True)

    def __init__(self, s: int | float, n: int | float, low: float = -1.0, high: float = 1.0):
        if isinstance(s, bool) or not isinstance(s, int) or not isinstance(n, int) or not abs(s) < n:
            raise ValueError(f"SobolevIntervalManifold: s and n must be integers with |s| < n, got {s!r} and {n!r}.")
        if not -math.inf < low < high < math.inf:
            raise ValueError(f"SobolevIntervalManifold: the interval [{low}, {high}] must satisfy low < high.")
        self.s, self.n, self.low, self.high = s, n, float(low), float(high)

    @property
    def shape(self) -> tuple[int]:
        """Shape of a point."""
        return (self.n,)

    def grid(self) -> tuple[np.ndarray]:
        """The nodes, shape (n,), in a tuple as for tori."""
        return (self.low + (self.high - self.low) * (legendre.leggauss(self.n)[0] + 1) / 2,)

    @property
    def omega(self) -> np.ndarray:
        """Weights of the nodes, which sum to 1."""
        return legendre.leggauss(self.n)[1] / 2

    def pairing(self, Phi: Array, sigma: Array) -> Float[Array, ""]:
        return jnp.sum(jnp.asarray(self.omega, Phi.dtype) * Phi * sigma)

    def cotangent(self, partials: Array) -> Float[Array, "n"]:
        return partials / jnp.asarray(self.omega, partials.dtype)

    def G(self, rho: Array, sigma: Array) -> Float[Array, "n"]:
        return self._form(sigma) if self.s >= 0 else self._solve(sigma)

    def G_inv(self, rho: Array, Phi: Array) -> Float[Array, "n"]:
        return self._solve(Phi) if self.s >= 0 else self._form(Phi)

    def time_to_boundary(self, rho: Array, rho_dot: Array) -> Float[Array, ""]:
        return jnp.full((), jnp.inf)

    def check(self, rho: Array, name: str) -> None:
        if jnp.shape(rho) != self.shape:
            raise ValueError(f"{name} must have one value per node, shape {self.shape}, got {jnp.shape(rho)}.")

    def derivatives(self, rho: Array) -> Float[Array, "terms n"]:
        """ρ, ∂ρ, …, ∂^|s|ρ at the nodes."""
        values, to_modes = self._modes()
        stack = np.stack([values @ D @ to_modes for D in self._powers()])
        return jnp.asarray(stack, rho.dtype) @ rho

    def factor(self, sigma: Array) -> Float[Array, "n"]:
        """Numbers whose squares sum to g(σ, σ), linear in σ."""
        root, (_, to_modes) = self._root(), self._modes()
        change = root if self.s >= 0 else np.linalg.inv(root).T
        return jnp.asarray(change @ to_modes, sigma.dtype) @ sigma

    def _form(self, u: Array) -> Float[Array, "n"]:
        """K u with ∫ σ K u = k(σ, u)."""
        values, to_modes = self._modes()
        root = self._root()
        return jnp.asarray(values @ (root.T @ root) @ to_modes, u.dtype) @ u

    def _solve(self, f: Array) -> Float[Array, "n"]:
        """u with k(σ, u) = ∫ σf for all σ."""
        values, to_modes = self._modes()
        inverse = np.linalg.inv(self._root())
        return jnp.asarray(values @ (inverse @ inverse.T) @ to_modes, f.dtype) @ f

    def _modes(self) -> tuple[np.ndarray, np.ndarray]:
        """Orthonormal Legendre polynomials at the nodes, and the map from values to their coefficients."""
        nodes, weights = legendre.leggauss(self.n)
        values = legendre.legvander(nodes, self.n - 1) * np.sqrt(2 * np.arange(self.n) + 1)
        return values, values.T * weights / 2

    def _powers(self) -> list[np.ndarray]:
        """The matrices of ∂ⁱ, i ≤ |s|, on those coefficients."""
        scale = np.sqrt(2 * np.arange(self.n) + 1)
        slope = np.zeros((self.n, self.n))
        slope[:-1] = legendre.legder(np.diag(scale)) if self.n > 1 else 0
        slope = slope / scale[:, None] * 2 / (self.high - self.low)
        return [np.linalg.matrix_power(slope, i) for i in range(abs(self.s) + 1)]

    def _root(self) -> np.ndarray:
        """An upper triangular matrix whose square RᵀR is the form k on those coefficients."""
        return np.linalg.qr(np.concatenate(self._powers()))[1]
