"""Gaussians as affine maps, A (x − m) = z with A lower triangular: the case that everything is checked by.

The density is a product with A, so that no linear system is differentiated; samples solve one system for all of them.
"""

import equinox as eqx
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float, PyTree

from angd.problems.inference.base import check_number, noise, standard_normal


class AffineGaussian(eqx.Module):
    """N(m, Σ) with Σ⁻¹ = AᵀA, A lower triangular: `mean`, `log_scale` = −log diag A, and what lies `below` it.

    **Arguments:**

    - `dimension`: d.
    - `diagonal`: leave out what lies below the diagonal: independent coordinates (a mean field).
    - `spread`: standard deviation at the start, in every direction, around 0.

    **Example:** `ReverseKL(AffineGaussian(2), log_target)`
    """

    dimension: int = eqx.field(static=True)
    diagonal: bool = eqx.field(static=True, default=False)
    spread: float = eqx.field(static=True, default=1.0)

    def __check_init__(self):
        check_number("dimension", self.dimension, 1, "AffineGaussian")
        if not self.spread > 0:
            raise ValueError(f"AffineGaussian: spread must be positive, got {self.spread}.")

    def init(self, key: Array) -> PyTree:
        """The mean 0 and the covariance `spread`² I."""
        d = self.dimension
        params = {"mean": jnp.zeros(d), "log_scale": jnp.full(d, jnp.log(self.spread), float)}
        return params if self.diagonal or d == 1 else params | {"below": jnp.zeros(d * (d - 1) // 2)}

    def log_density(self, params: PyTree, x: Float[Array, " d"]) -> Float[Array, ""]:
        z, log_det = self.to_noise(params, x)
        return standard_normal(z) - log_det

    def sample(self, params: PyTree, key: Array, n: int) -> Float[Array, "n d"]:
        return noise(key, n, self.dimension) @ self.root(params).T + params["mean"][None]

    def to_noise(self, params: PyTree, x: Float[Array, " d"]) -> tuple[Float[Array, " d"], Float[Array, ""]]:
        """A (x − m), and −log det A."""
        centred = x - params["mean"]
        z = centred * jnp.exp(-params["log_scale"])
        if "below" in params:
            z = z + self._below(params) @ centred
        return z, jnp.sum(params["log_scale"])

    def root(self, params: PyTree) -> Float[Array, "d d"]:
        """A⁻¹, with which noise is multiplied."""
        A = jnp.diag(jnp.exp(-params["log_scale"]))
        if "below" not in params:
            return jnp.diag(jnp.exp(params["log_scale"]))
        return solve_triangular(A + self._below(params), jnp.eye(self.dimension), lower=True)

    def covariance(self, params: PyTree) -> Float[Array, "d d"]:
        """Σ.

        **Returns:** shape (d, d).
        """
        return self.root(params) @ self.root(params).T

    def _below(self, params: PyTree) -> Float[Array, "d d"]:
        d = self.dimension
        return jnp.zeros((d, d), params["below"].dtype).at[jnp.tril_indices(d, -1)].set(params["below"])
