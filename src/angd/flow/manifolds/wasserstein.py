"""Wasserstein-2 in Eulerian variables: positive densities on a Fourier grid of the circle or of the flat torus.

    G⁻¹Φ = −∇·(ρ∇Φ),      R = ½|∇Φ|² + βπ,      ∇·(ρ∇π) = ∇·(ρ ∇²f ∇Φ),

cotangent vectors being defined modulo constants. ∇ is differentiation on the grid, and this G⁻¹ defines the finite
model; G solves an elliptic equation for the potential Φ. In the finite model the product rule fails, so π is written
without it, as Proposition 1 has it; where the grid resolves ρ, Φ and f it is the projection of ∇²f ∇Φ on gradients.
The measure is normalised, ∫ dm = 1: a density has mean 1.
"""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from angd.flow.manifolds import torus
from angd.flow.manifolds.base import AbstractManifold, time_until_zero

_MASS_TOLERANCE = 1e-6
_ROUNDING = 10  # the elliptic equation is solved up to so many units of rounding


class WassersteinManifold(AbstractManifold):
    """Densities ρ > 0 of mean 1 on the torus [0, 2π)^d, with g(σ, σ) = ∫ ρ|∇Φ|² for σ = −∇·(ρ∇Φ).

    On the circle the potential Φ has a closed form; on the torus it is found by conjugate gradients.

    **Arguments:**

    - `shape`: odd grid sizes, one or two: `63` or `(31, 31)`. Take enough for ρ, Φ and the variation to be smooth.

    **Example:** `angd.WassersteinManifold(63)`
    """

    shape: tuple[int, ...] = eqx.field(static=True)

    def __init__(self, shape: int | tuple[int, ...]):
        self.shape = torus.as_shape(shape, 2, "WassersteinManifold")
        if any(n % 2 == 0 for n in self.shape):
            raise ValueError(
                f"WassersteinManifold: grid sizes must be odd (an even one lacks a sine), got {self.shape}."
            )

    @property
    def omega(self) -> float:
        """The weight of a grid point."""
        return 1 / math.prod(self.shape)

    def grid(self) -> tuple[np.ndarray, ...]:
        """Coordinates of the grid points, one array of `shape` per axis."""
        return torus.grid(self.shape)

    def normalise(self, density: Array) -> Array:
        """Scale a positive array to mean one."""
        return density / jnp.mean(density)

    def slopes(self, Phi: Array) -> Float[Array, "d ..."]:
        """∇Φ at the grid points."""
        return jnp.stack([torus.multiply(1j * xi, Phi) for xi in torus.wave_numbers(self.shape)])

    def divergence(self, flux: Float[Array, "d ..."]) -> Array:
        """∇·flux at the grid points."""
        parts = [torus.multiply(1j * xi, u) for xi, u in zip(torus.wave_numbers(self.shape), flux, strict=True)]
        return sum(parts[1:], parts[0])

    def pairing(self, Phi: Array, sigma: Array) -> Float[Array, ""]:
        return jnp.mean(Phi * sigma)

    def cotangent(self, partials: Array) -> Array:
        return partials / self.omega

    def G(self, rho: Array, sigma: Array) -> Array:
        """The potential Φ of mean zero with −∇·(ρ∇Φ) = σ."""
        sigma = sigma - jnp.mean(sigma)
        return self._on_the_circle(rho, sigma) if len(self.shape) == 1 else self._on_the_torus(rho, sigma)

    def G_inv(self, rho: Array, Phi: Array) -> Array:
        return -self.divergence(rho[None] * self.slopes(Phi))

    def R(self, rho: Array, Phi: Array, f: Array, beta: Any) -> Array:
        # Without β there is no elliptic equation to solve.
        damping = jax.lax.cond(beta == 0, lambda: jnp.zeros_like(Phi), lambda: beta * self.pi(rho, Phi, f))
        return 0.5 * jnp.sum(self.slopes(Phi) ** 2, axis=0) + damping

    def pi(self, rho: Array, Phi: Array, f: Array) -> Array:
        """π with ∇·(ρ∇π) = ∇·(ρ ∇²f ∇Φ): ½{∇Φ·∇f + G[∇·(ẇ∇Φ) − ∇·(v̇∇f)]} for v̇ = G⁻¹Φ and ẇ = G⁻¹f."""
        v, w = self.G_inv(rho, Phi), self.G_inv(rho, f)
        bracket = self.G(rho, self.G_inv(v, f) - self.G_inv(w, Phi))
        return 0.5 * (jnp.sum(self.slopes(Phi) * self.slopes(f), axis=0) + bracket)

    def christoffel(self, rho: Array, a: Array, b: Array) -> Array:
        """½ {G⁻¹(∇A·∇B) + ∇·(a∇B) + ∇·(b∇A)} with the potentials A = Ga and B = Gb."""
        A, B = self.G(rho, a), self.G(rho, b)
        along = self.G_inv(rho, jnp.sum(self.slopes(A) * self.slopes(B), axis=0))
        return 0.5 * (along - self.G_inv(a, B) - self.G_inv(b, A))

    def time_to_boundary(self, rho: Array, rho_dot: Array) -> Float[Array, ""]:
        return time_until_zero(rho, rho_dot)

    def check(self, rho: Array, name: str) -> None:
        if jnp.shape(rho) != self.shape:
            raise ValueError(f"{name} must have the grid's shape {self.shape}, got {jnp.shape(rho)}.")
        if not bool(jnp.all(rho > 0)):
            raise ValueError(f"{name} must be a positive density, its least value is {float(jnp.min(rho)):g}.")
        mass = float(jnp.mean(rho))
        if abs(mass - 1) > _MASS_TOLERANCE:
            raise ValueError(f"{name} has mean {mass:g} instead of 1: use manifold.normalise({name}).")

    def _on_the_circle(self, rho: Array, sigma: Array) -> Array:
        """ρΦ′ = c − ∫σ, and c makes Φ′ the derivative of a periodic function: its mean is zero."""
        flux = -self._integral(sigma)
        return self._integral((flux - jnp.mean(flux / rho) / jnp.mean(1 / rho)) / rho)

    def _integral(self, u: Array) -> Array:
        """The antiderivative of mean zero of u less its mean."""
        (xi,) = torus.wave_numbers(self.shape)
        return torus.multiply(np.divide(-1j, xi, out=np.zeros(xi.shape, complex), where=xi != 0), u)

    def _on_the_torus(self, rho: Array, sigma: Array) -> Array:
        """Conjugate gradients, preconditioned by the Laplacian: iterations grow with √(max ρ / min ρ), not the grid."""
        square = sum(xi**2 for xi in torus.wave_numbers(self.shape))

        def operator(Phi):
            return self.G_inv(rho, Phi) + jnp.mean(Phi)

        def precondition(r):
            return torus.multiply(1 / np.where(square > 0, square, 1), r)

        tolerance = _ROUNDING * float(jnp.finfo(sigma.dtype).eps)
        Phi, _ = jax.scipy.sparse.linalg.cg(operator, sigma, tol=tolerance, M=precondition)
        return Phi
