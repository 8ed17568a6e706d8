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

from angd.flow.manifolds import torus
from angd.flow.manifolds.flat import AbstractFlatManifold


class SobolevManifold(AbstractFlatManifold):
    """H^s on the torus [0, 2π)^d, sampled on a Fourier grid.

    **Arguments:**

    - `s`: any integer; 0 is L², s > 0 smooths the gradient, s < 0 sharpens it.
    - `shape`: grid sizes, one to three: `64`, `(32, 32)` or `(16, 16, 16)`; odd ones for `derivatives`.
    """

    s: int = eqx.field(static=True)
    shape: tuple[int, ...] = eqx.field(static=True)

    def __init__(self, s: int | float, shape: int | tuple[int, ...]):
        if isinstance(s, bool) or not isinstance(s, int):
            raise ValueError(f"SobolevManifold: s must be an integer, got {s!r}.")
        self.s, self.shape = s, torus.as_shape(shape, 3, "SobolevManifold")

    def grid(self) -> tuple[np.ndarray, ...]:
        """Coordinates of the grid points, one array of `shape` per axis."""
        return torus.grid(self.shape)

    def pairing(self, Phi: Array, sigma: Array) -> Float[Array, ""]:
        return jnp.mean(Phi * sigma)

    def cotangent(self, partials: Array) -> Array:
        return partials * math.prod(self.shape)

    def G(self, rho: Array, sigma: Array) -> Array:
        return torus.multiply(self.symbol(), sigma)

    def G_inv(self, rho: Array, Phi: Array) -> Array:
        return torus.multiply(1 / self.symbol(), Phi)

    def time_to_boundary(self, rho: Array, rho_dot: Array) -> Float[Array, ""]:
        return jnp.full((), jnp.inf)

    def check(self, rho: Array, name: str) -> None:
        if jnp.shape(rho) != self.shape:
            raise ValueError(f"{name} must have the grid's shape {self.shape}, got {jnp.shape(rho)}.")

    def factor(self, sigma: Array) -> Float[Array, "N"]:
        """Numbers whose squares sum to g(σ, σ), linear in σ: √symbol times coefficients of waves cos kx + sin kx."""
        coefficients = sigma
        for axis, n in enumerate(self.shape):
            angles = 2 * np.pi * np.outer(np.arange(n), np.arange(n)) / n
            waves = jnp.asarray((np.cos(angles) + np.sin(angles)) / n, sigma.dtype)
            coefficients = jnp.moveaxis(jnp.tensordot(waves, coefficients, axes=(1, axis)), 0, axis)
        return jnp.ravel(jnp.asarray(np.sqrt(self.symbol()), sigma.dtype) * coefficients)

    def symbol(self) -> np.ndarray:
        """The Fourier multiplier of G."""
        square = sum(xi**2 for xi in torus.wave_numbers(self.shape))
        series = sum((square**i for i in range(abs(self.s) + 1)), np.zeros(self.shape))
        return series if self.s >= 0 else 1 / series

    def derivatives(self, rho: Array) -> Float[Array, "terms ..."]:
        """𝐃^{|s|} ρ, stacked: each ∂ᵃρ of order i = |a| ≤ |s| times √(i!/a!)."""
        if any(n % 2 == 0 for n in self.shape):
            raise ValueError(
                f"SobolevManifold: derivatives need odd grid sizes (an even one lacks a sine), got {self.shape}."
            )
        xis = torus.wave_numbers(self.shape)
        terms = []
        for a in itertools.product(range(abs(self.s) + 1), repeat=len(self.shape)):
            if (order := sum(a)) <= abs(self.s):
                weight = math.sqrt(math.factorial(order) / math.prod(map(math.factorial, a)))
                multiplier = math.prod(
                    ((1j * xi) ** j for xi, j in zip(xis, a, strict=True)), start=np.ones(self.shape)
                )
                terms.append(weight * torus.multiply(multiplier, rho))
        return jnp.stack(terms)
