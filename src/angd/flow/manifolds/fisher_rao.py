"""Fisher–Rao: densities on a grid or on the simplex, g(σ, σ) = ∫ σ²/ρ.

    G⁻¹Φ = ρ [Φ]_ρ,      R = ½ [Φ]_ρ [Φ + βf]_ρ,      [u]_ρ = u − E_ρ u,

cotangent vectors being defined modulo constants. The square root q = √ρ maps the manifold isometrically on the positive
part of a sphere of radius 2; there the covariant form is regular and goes on where the density has reached zero.
"""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from angd.flow.manifolds.base import AbstractGeodesicManifold, time_until_zero

_MASS_TOLERANCE = 1e-6


class FisherRaoManifold(AbstractGeodesicManifold):
    """Densities ρ > 0 with Σ ωᵢ ρᵢ = 1 and g(σ, σ) = Σ ωᵢ σᵢ²/ρᵢ.

    `FisherRaoManifold.grid(low, high, cells)` and `FisherRaoManifold.simplex(size)` are the usual two.

    **Arguments:**

    - `omega`: sizes ω > 0 of the cells, shape (n,), n ≥ 2.
    """

    omega: Float[Array, "n"]

    def __init__(self, omega: Any):
        omega = jnp.asarray(omega, dtype=float)
        if omega.ndim != 1 or omega.shape[0] < 2 or not bool(jnp.all(omega > 0)):
            raise ValueError("FisherRaoManifold: omega must be a vector of at least two positive cell sizes.")
        self.omega = omega

    @classmethod
    def simplex(cls, size: int) -> "FisherRaoManifold":
        """Probability vectors with `size` entries."""
        return cls(jnp.ones(size))

    @classmethod
    def grid(cls, low: float, high: float, cells: int) -> "FisherRaoManifold":
        """Densities on `cells` equal cells of [low, high]."""
        if not high > low:
            raise ValueError(f"FisherRaoManifold.grid: the interval [{low}, {high}] is empty; give low < high.")
        return cls(jnp.full(cells, (high - low) / cells))

    def normalise(self, density: Array) -> Float[Array, "n"]:
        """Scale a positive vector to mass one."""
        return density / jnp.sum(self.omega * density)

    def mean(self, rho: Array, u: Array) -> Float[Array, ""]:
        """E_ρ u."""
        return jnp.sum(self.omega * rho * u) / jnp.sum(self.omega * rho)

    def centre(self, rho: Array, u: Array) -> Float[Array, "n"]:
        """[u]_ρ = u − E_ρ u."""
        return u - self.mean(rho, u)

    def pairing(self, Phi: Array, sigma: Array) -> Float[Array, ""]:
        return jnp.sum(self.omega * Phi * sigma)

    def cotangent(self, partials: Array) -> Float[Array, "n"]:
        return partials / self.omega

    def G(self, rho: Array, sigma: Array) -> Float[Array, "n"]:
        return sigma / rho

    def G_inv(self, rho: Array, Phi: Array) -> Float[Array, "n"]:
        return rho * self.centre(rho, Phi)

    def R(self, rho: Array, Phi: Array, f: Array, beta: Any) -> Float[Array, "n"]:
        return 0.5 * self.centre(rho, Phi) * self.centre(rho, Phi + beta * f)

    def christoffel(self, rho: Array, a: Array, b: Array) -> Float[Array, "n"]:
        return -0.5 * (a * b / rho - rho * jnp.sum(self.omega * a * b / rho))

    def time_to_boundary(self, rho: Array, rho_dot: Array) -> Float[Array, ""]:
        """The density reaches zero when its root does: q/|q̇| = 2ρ/|ρ̇|."""
        return 2 * time_until_zero(rho, rho_dot)

    def check(self, rho: Array, name: str) -> None:
        if jnp.shape(rho) != self.omega.shape:
            raise ValueError(f"{name} must have one value per cell, shape {self.omega.shape}, got {jnp.shape(rho)}.")
        if not bool(jnp.all(rho > 0)):
            raise ValueError(f"{name} must be a positive density, its least value is {float(jnp.min(rho)):g}.")
        mass = float(jnp.sum(self.omega * rho))
        if abs(mass - 1) > _MASS_TOLERANCE:
            raise ValueError(f"{name} has mass {mass:g} instead of 1: use manifold.normalise({name}).")

    def angle(self, rho: Array, target: Array) -> Float[Array, ""]:
        """H with cos H = ∫ √(ρ ρ*)."""
        return jnp.sqrt(self.square_angle(rho, target))

    def square_angle(self, rho: Array, target: Array) -> Float[Array, ""]:
        """H², smooth also where ρ meets the target (unlike arccos, whose derivative is infinite there)."""
        z = jnp.sum(self.omega * (jnp.sqrt(rho) - jnp.sqrt(target)) ** 2)
        near = z < 1e-4
        far_value = 4 * jnp.arcsin(jnp.sqrt(jnp.where(near, 1.0, z)) / 2) ** 2
        return jnp.where(near, z * (1 + z / 12 * (1 + 2 * z / 15)), far_value)

    def distance(self, rho: Array, target: Array) -> Float[Array, ""]:
        return 2 * self.angle(rho, target)

    def log(self, rho: Array, target: Array) -> Float[Array, "n"]:
        H, q = self.angle(rho, target), jnp.sqrt(rho)
        return 2 * q * (jnp.sqrt(target) - jnp.cos(H) * q) / jnp.sinc(H / jnp.pi)

    def kappa(self, rho: Array, target: Array) -> Float[Array, ""]:
        """1 − H cot H."""
        H = self.angle(rho, target)
        return 1 - jnp.cos(H) / jnp.sinc(H / jnp.pi)
