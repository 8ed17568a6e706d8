"""Wasserstein-2 in Lagrangian variables: particles that carry mass ωᵢ, and quantile functions in one dimension.

    ẋ = V,   V̇ + αV + β d/dt ∇f + γ∇f = 0,       g(V, V) = Σ ωᵢ |Vᵢ|².

Both are flat. In one dimension ordered particles *are* the quantile function, and this is Wasserstein-2 exactly; in
more dimensions the distance is that of the labels, equal to Wasserstein-2 while the labelling is the optimal coupling.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from angd.flow.manifolds.base import time_until_zero
from angd.flow.manifolds.flat import AbstractFlatManifold


class ParticleManifold(AbstractFlatManifold):
    """n labelled particles, points x of shape (n, d): Wasserstein-2 in Lagrangian variables.

    **Arguments:**

    - `omega`: masses ω > 0 that sum to 1, shape (n,).
    """

    omega: Float[Array, "n"]

    def __init__(self, omega: Any):
        self.omega = _masses(omega, "ParticleManifold")

    def pairing(self, Phi: Array, sigma: Array) -> Float[Array, ""]:
        return jnp.sum(self.omega[:, None] * Phi * sigma)

    def cotangent(self, partials: Array) -> Float[Array, "n d"]:
        return partials / self.omega[:, None]

    def G(self, rho: Array, sigma: Array) -> Float[Array, "n d"]:
        return sigma

    def G_inv(self, rho: Array, Phi: Array) -> Float[Array, "n d"]:
        return Phi

    def time_to_boundary(self, rho: Array, rho_dot: Array) -> Float[Array, ""]:
        return jnp.full((), jnp.inf)

    def check(self, rho: Array, name: str) -> None:
        if jnp.ndim(rho) != 2 or jnp.shape(rho)[0] != self.omega.shape[0]:
            raise ValueError(f"{name} must have shape ({self.omega.shape[0]}, d), got {jnp.shape(rho)}.")


class QuantileManifold(AbstractFlatManifold):
    """Increasing values X(uᵢ) of a quantile function, shape (n,): Wasserstein-2 on the line.

    `QuantileManifold.midpoints(n)` has equal weights.

    **Arguments:**

    - `omega`: weights ω > 0 of the nodes that sum to 1, shape (n,).
    """

    omega: Float[Array, "n"]

    def __init__(self, omega: Any):
        self.omega = _masses(omega, "QuantileManifold")

    @classmethod
    def midpoints(cls, n: int) -> "QuantileManifold":
        """Equal weights; the nodes are uᵢ = (i + ½)/n."""
        return cls(np.full(n, 1 / n))

    def pairing(self, Phi: Array, sigma: Array) -> Float[Array, ""]:
        return jnp.sum(self.omega * Phi * sigma)

    def cotangent(self, partials: Array) -> Float[Array, "n"]:
        return partials / self.omega

    def G(self, rho: Array, sigma: Array) -> Float[Array, "n"]:
        return sigma

    def G_inv(self, rho: Array, Phi: Array) -> Float[Array, "n"]:
        return Phi

    def time_to_boundary(self, rho: Array, rho_dot: Array) -> Float[Array, ""]:
        """Until two neighbours meet, where the quantile function stops being increasing."""
        return time_until_zero(jnp.diff(rho), jnp.diff(rho_dot))

    def check(self, rho: Array, name: str) -> None:
        if jnp.shape(rho) != self.omega.shape:
            raise ValueError(f"{name} must have one value per node, shape {self.omega.shape}, got {jnp.shape(rho)}.")
        if not bool(jnp.all(jnp.diff(rho) > 0)):
            raise ValueError(f"{name} must be strictly increasing: it is a quantile function.")


def _masses(omega: Any, owner: str) -> Float[Array, "n"]:
    omega = jnp.asarray(omega, dtype=float)
    if omega.ndim != 1 or omega.shape[0] < 1 or not bool(jnp.all(omega > 0)):
        raise ValueError(f"{owner}: omega must be a vector of positive masses.")
    if abs(float(jnp.sum(omega)) - 1) > 1e-6:
        raise ValueError(f"{owner}: the masses must sum to 1, they sum to {float(jnp.sum(omega)):g}.")
    return omega
