"""Sobolev spaces H^s of periodic functions on a Fourier grid, for every integer s.

    G = Σ_{i ≤ s} (−Δ)ⁱ   (s ≥ 0),        G⁻¹ = Σ_{i ≤ |s|} (−Δ)ⁱ   (s < 0).

The factor 𝐃^s with G = (𝐃^s)* 𝐃^s counts ordered index tuples: the derivative ∂ᵃ of order i carries the weight
√(i!/a!). The measure is normalised, ∫ dm = 1, so `functional` should average over the grid.
"""

import itertools
import math

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from angd.flow.manifolds.flat import AbstractFlatManifold


class SobolevManifold(AbstractFlatManifold):
    """H^s on the torus [0, 2π)^d, sampled on a Fourier grid.

    **Arguments:**

    - `s`: any integer; 0 is L², s > 0 smooths the gradient, s < 0 sharpens it.
    - `shape`: grid sizes, one or two: `64` or `(32, 32)`; odd ones for `derivatives`.
    """

    s: int = eqx.field(static=True)
    shape: tuple[int, ...] = eqx.field(static=True)

    def __init__(self, s: int | float, shape: int | tuple[int, ...]):
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        if isinstance(s, bool) or not isinstance(s, int):
            raise ValueError(f"SobolevManifold: s must be an integer, got {s!r}.")
        if len(shape) not in (1, 2) or any(not isinstance(n, int) or n < 1 for n in shape):
            raise ValueError(f"SobolevManifold: shape must be one or two positive grid sizes, got {shape}.")
        self.s, self.shape = s, shape

    def grid(self) -> tuple[np.ndarray, ...]:
        """Coordinates of the grid points, one array of `shape` per axis."""
        axes = (2 * np.pi * np.arange(n) / n for n in self.shape)
        return tuple(np.meshgrid(*axes, indexing="ij"))

    def pairing(self, Phi: Array, sigma: Array) -> Float[Array, ""]:
        return jnp.mean(Phi * sigma)

    def cotangent(self, partials: Array) -> Array:
        return partials * math.prod(self.shape)

    def G(self, rho: Array, sigma: Array) -> Array:
        return self._multiply(self.symbol(), sigma)

    def G_inv(self, rho: Array, Phi: Array) -> Array:
        return self._multiply(1 / self.symbol(), Phi)

    def time_to_boundary(self, rho: Array, rho_dot: Array) -> Float[Array, ""]:
        return jnp.full((), jnp.inf)

    def check(self, rho: Array, name: str) -> None:
        if jnp.shape(rho) != self.shape:
            raise ValueError(f"{name} must have the grid's shape {self.shape}, got {jnp.shape(rho)}.")

    def symbol(self) -> np.ndarray:
        """The Fourier multiplier of G."""
        square = sum(xi**2 for xi in self._wave_numbers())
        series = sum((square**i for i in range(abs(self.s) + 1)), np.zeros(self.shape))
        return series if self.s >= 0 else 1 / series

    def derivatives(self, rho: Array) -> Float[Array, "terms ..."]:
        """𝐃^{|s|} ρ, stacked: each ∂ᵃρ of order i = |a| ≤ |s| times √(i!/a!)."""
        if any(n % 2 == 0 for n in self.shape):
            raise ValueError(
                f"SobolevManifold: derivatives need odd grid sizes (an even one lacks a sine), got {self.shape}."
            )
        xis = self._wave_numbers()
        terms = []
        for a in itertools.product(range(abs(self.s) + 1), repeat=len(self.shape)):
            if (order := sum(a)) <= abs(self.s):
                weight = math.sqrt(math.factorial(order) / math.prod(map(math.factorial, a)))
                multiplier = math.prod(
                    ((1j * xi) ** j for xi, j in zip(xis, a, strict=True)), start=np.ones(self.shape)
                )
                terms.append(weight * self._multiply(multiplier, rho))
        return jnp.stack(terms)

    def _wave_numbers(self) -> tuple[np.ndarray, ...]:
        axes = (np.fft.fftfreq(n, 1 / n) for n in self.shape)
        return tuple(np.meshgrid(*axes, indexing="ij"))

    def _multiply(self, multiplier: np.ndarray, u: Array) -> Array:
        return jnp.real(jnp.fft.ifftn(multiplier * jnp.fft.fftn(u))).astype(u.dtype)
