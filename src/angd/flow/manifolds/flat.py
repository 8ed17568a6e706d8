"""Manifolds whose metric does not depend on the point: R = 0, Γ = 0, geodesics are straight lines and κ = 0.

H^s, one-dimensional quantile functions and labelled particles are flat; only their G and their boundary differ.
"""

from typing import Any

import jax.numpy as jnp

from angd.flow.manifolds.base import AbstractGeodesicManifold, Cotangent, Point, Scalar, Tangent
from angd.tree import combine, zeros_like


class AbstractFlatManifold(AbstractGeodesicManifold):
    """A constant metric: a subclass gives G, G⁻¹, the pairing and the boundary."""

    def R(self, rho: Point, Phi: Cotangent, f: Cotangent, beta: Any) -> Cotangent:
        return zeros_like(Phi)

    def christoffel(self, rho: Point, a: Tangent, b: Tangent) -> Tangent:
        return zeros_like(a)

    def log(self, rho: Point, target: Point) -> Tangent:
        return combine((1.0, target), (-1.0, rho))

    def distance(self, rho: Point, target: Point) -> Scalar:
        return jnp.sqrt(self.square_norm(rho, self.log(rho, target)))

    def kappa(self, rho: Point, target: Point) -> Scalar:
        return jnp.zeros(())
