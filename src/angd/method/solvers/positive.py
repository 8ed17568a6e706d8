"""Symmetric positive semi-definite matrices A, ready to solve (A + λI) x = y for any λ.

One λ in double precision takes Cholesky, A + λI = LLᵀ, and keeps L: whoever asks again for the same λ gets it. Many λ,
or single precision, take eigenvalues: then every λ costs two products with a matrix, and what rounding made negative is
set to zero.

Rows of single precision are multiplied in single precision. Where rounding leaves an eigenvalue of A below −λ/10, the
product is formed again in double precision.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from angd.method.system import AbstractSystem, with_jacobian

ITERATIONS = 4  # of inverse iteration, to see how small the smallest eigenvalue is


class Cholesky(eqx.Module):
    """A, and L of A + λI for the λ of the step; `smallest` bounds A's least eigenvalue from above, NaN if unknown."""

    A: Float[Array, "k k"]
    L: Float[Array, "k k"]
    damping: Float[Array, ""]
    smallest: Float[Array, ""]

    def solve(self, damping: Any, y: Float[Array, "k"]) -> Float[Array, "k"]:
        """(A + λI)⁻¹ y; another λ than that of the step is another factorisation."""
        same = jnp.asarray(damping, self.damping.dtype) == self.damping
        L = lax.cond(same, lambda: self.L, lambda: _factor(self.A, damping))
        return _back(L, y).astype(y.dtype)


class Spectrum(eqx.Module):
    """A as eigenvalues and vectors: each λ is free. Negative values become 0; `smallest` is the least before that."""

    values: Float[Array, "k"]
    vectors: Float[Array, "k k"]
    smallest: Float[Array, ""]

    def solve(self, damping: Any, y: Float[Array, "k"]) -> Float[Array, "k"]:
        """(A + λI)⁻¹ y."""
        inside = (self.vectors.T @ y.astype(self.values.dtype)) / (self.values + damping)
        return (self.vectors @ inside).astype(y.dtype)


def positive(
    build: Callable[[AbstractSystem], Float[Array, "k k"]], system: AbstractSystem, damping: Any, many: bool
) -> Cholesky | Spectrum:
    """The matrix that `build` makes of a system, in the widest type there is, for one damping or for many."""
    A = build(system)
    wide = jnp.promote_types(A.dtype, jnp.result_type(float))
    if wide != jnp.float64 or many:
        values, vectors = jnp.linalg.eigh(A.astype(wide))
        return Spectrum(jnp.maximum(values, 0), vectors, values[0])
    if A.dtype == wide:
        return Cholesky(A, _factor(A, damping), jnp.asarray(damping, wide), jnp.full((), jnp.nan, wide))
    return _checked(build, system, A.astype(wide), jnp.asarray(damping, wide))


def _checked(build: Any, system: AbstractSystem, A: Float[Array, "k k"], damping: Float[Array, ""]) -> Cholesky:
    """A from rows of single precision; formed again in double if it is too far from positive."""
    L = _factor(A, damping)
    smallest = _least(L) - damping
    first = Cholesky(A, L, damping, smallest)
    if system.O.wide() is None:
        return first

    def again() -> Cholesky:
        rows = system.O.wide()  # widened here, so that only those pay for it who need it
        assert rows is not None
        A = build(with_jacobian(_in_double(system), rows))
        L = _factor(A, damping)
        return Cholesky(A, L, damping, _least(L) - damping)

    return lax.cond(smallest >= -damping / 10, lambda: first, again)


def _in_double(system: AbstractSystem) -> AbstractSystem:
    return eqx.tree_at(lambda s: s.omega, system, system.omega.astype(jnp.float64))


def _factor(A: Float[Array, "k k"], damping: Any) -> Float[Array, "k k"]:
    return jax.scipy.linalg.cholesky(A + damping * jnp.eye(A.shape[0], dtype=A.dtype), lower=True)


def _back(L: Float[Array, "k k"], y: Float[Array, "k"]) -> Float[Array, "k"]:
    return jax.scipy.linalg.cho_solve((L, True), y.astype(L.dtype))


def _least(L: Float[Array, "k k"]) -> Float[Array, ""]:
    """The least eigenvalue of LLᵀ, from above, by inverse iteration; NaN where L has none."""
    y = jnp.cos(jnp.arange(1, L.shape[0] + 1, dtype=L.dtype) ** 2)  # no structure, the same in every run
    for _ in range(ITERATIONS):
        y = _back(L, y)
        y = y / jnp.linalg.norm(y)
    return 1 / jnp.vdot(y, _back(L, y))
