"""Symmetric positive semi-definite matrices, factorised for one damping or for many.

One λ in double precision takes Cholesky, A + λI = LLᵀ. Many, or single precision, take eigenvalues: then every λ costs
two products with a matrix, and what rounding made negative is set to zero.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


class Cholesky(eqx.Module):
    """(A + λI)⁻¹ by L."""

    L: Float[Array, "k k"]

    def solve(self, y: Float[Array, "k"]) -> Float[Array, "k"]:
        return jax.scipy.linalg.cho_solve((self.L, True), y.astype(self.L.dtype)).astype(y.dtype)


class Shifted(eqx.Module):
    """(A + λI)⁻¹ by eigenvalues (λ added) and vectors."""

    values: Float[Array, "k"]
    vectors: Float[Array, "k k"]

    def solve(self, y: Float[Array, "k"]) -> Float[Array, "k"]:
        inside = (self.vectors.T @ y.astype(self.values.dtype)) / self.values
        return (self.vectors @ inside).astype(y.dtype)


class Matrix(eqx.Module):
    """A itself: each λ is one Cholesky factorisation."""

    A: Float[Array, "k k"]

    def at(self, damping: Any) -> Cholesky:
        shifted = self.A + damping * jnp.eye(self.A.shape[0], dtype=self.A.dtype)
        return Cholesky(jax.scipy.linalg.cholesky(shifted, lower=True))


class Spectrum(eqx.Module):
    """A as eigenvalues and vectors: each λ is free."""

    values: Float[Array, "k"]
    vectors: Float[Array, "k k"]

    def at(self, damping: Any) -> Shifted:
        return Shifted(self.values + jnp.asarray(damping, self.values.dtype), self.vectors)


def positive(A: Float[Array, "k k"], many: bool) -> Matrix | Spectrum:
    """A, in the widest type there is, ready for one damping or for many."""
    wide = A.astype(jnp.promote_types(A.dtype, jnp.result_type(float)))
    if wide.dtype == jnp.float64 and not many:
        return Matrix(wide)
    values, vectors = jnp.linalg.eigh(wide)
    return Spectrum(jnp.maximum(values, 0), vectors)
