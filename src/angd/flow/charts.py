"""Coordinates for the covariant form, ẍ = −Γ(ẋ, ẋ + βw) − αẋ − β Dw·ẋ − γw with w = grad L.

Most manifolds use their own coordinates. Fisher–Rao uses the root q = √ρ, in which the manifold is a sphere and nothing
becomes singular where a density reaches zero.
"""

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from angd.flow.manifolds.base import AbstractManifold, Functional, Point, Tangent
from angd.flow.manifolds.fisher_rao import FisherRaoManifold


class AbstractChart(eqx.Module):
    """Coordinates x of a point ρ, with gradient and Christoffel map expressed in them."""

    @abc.abstractmethod
    def to(self, rho: Point) -> Any:
        """ρ ↦ x."""

    @abc.abstractmethod
    def back(self, x: Any) -> Point:
        """x ↦ ρ."""

    @abc.abstractmethod
    def gradient(self, functional: Functional, x: Any) -> Tangent:
        """grad L in the coordinates x."""

    @abc.abstractmethod
    def christoffel(self, x: Any, a: Tangent, b: Tangent) -> Tangent:
        """Γ(a, b) in the coordinates x."""

    @abc.abstractmethod
    def margin(self, x: Any) -> Array:
        """Numbers that are all positive while x is the image of a point of the manifold."""

    @abc.abstractmethod
    def time_to_boundary(self, x: Any, x_dot: Tangent) -> Array:
        """How long until the coordinates become singular at the present velocity (∞ if they never do)."""

    def back_velocity(self, x: Any, x_dot: Tangent) -> Tangent:
        """The velocity ρ̇ of the point whose coordinates move with ẋ."""
        return jax.jvp(self.back, (x,), (x_dot,))[1]


class OwnChart(AbstractChart):
    """The coordinates in which the manifold is written."""

    manifold: AbstractManifold

    def to(self, rho: Point) -> Any:
        return rho

    def back(self, x: Any) -> Point:
        return x

    def gradient(self, functional: Functional, x: Any) -> Tangent:
        return self.manifold.gradient(functional, x)

    def christoffel(self, x: Any, a: Tangent, b: Tangent) -> Tangent:
        return self.manifold.christoffel(x, a, b)

    def margin(self, x: Any) -> Array:
        return jnp.full((1,), jnp.inf)

    def time_to_boundary(self, x: Any, x_dot: Tangent) -> Array:
        return self.manifold.time_to_boundary(x, x_dot)


class RootChart(AbstractChart):
    """q = √ρ: Fisher–Rao as a sphere of radius 2, with grad L = ½ q [f] and Γ(a, b) = ⟨a, b⟩ q."""

    manifold: FisherRaoManifold

    def to(self, rho: Array) -> Array:
        return jnp.sqrt(rho)

    def back(self, x: Array) -> Array:
        return x**2

    def gradient(self, functional: Functional, x: Array) -> Array:
        rho = self.back(x)
        return 0.5 * x * self.manifold.centre(rho, self.manifold.variation(functional, rho))

    def christoffel(self, x: Array, a: Array, b: Array) -> Array:
        return jnp.sum(self.manifold.omega * a * b) * x

    def margin(self, x: Array) -> Array:
        return x

    def time_to_boundary(self, x: Array, x_dot: Array) -> Array:
        return jnp.full((), jnp.inf)


def chart_of(manifold: AbstractManifold) -> AbstractChart:
    """The coordinates in which the covariant form of this manifold is regular."""
    return RootChart(manifold) if isinstance(manifold, FisherRaoManifold) else OwnChart(manifold)
