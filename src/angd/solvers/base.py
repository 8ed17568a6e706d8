"""What a solver is: it turns a sampled system and a centre into a direction, and says whether that went well."""

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree

from angd.system import AbstractSystem


class Solution(eqx.Module):
    """The direction d, and whether the factorisation or iteration behind it succeeded."""

    d: PyTree
    ok: Bool[Array, ""]


class AbstractSolver(eqx.Module):
    """Finds d = c + δ with (G + λI) δ = v − G c."""

    @abc.abstractmethod
    def centre(self, c: PyTree, d_prev: PyTree) -> PyTree:
        """The centre to use, given the default one and the previous direction."""

    @abc.abstractmethod
    def solve(self, system: AbstractSystem, c: PyTree) -> Solution:
        """The direction."""


def check_damping(damping: Any, owner: str) -> None:
    """Refuse a negative or infinite λ in a sentence."""
    if not (0 <= damping < float("inf")):
        raise ValueError(f"{owner}: damping must be finite and ≥ 0, got {damping}.")


def solve_positive(
    A: Float[Array, "k k"], damping: Any, y: Float[Array, "k"]
) -> tuple[Float[Array, "k"], Bool[Array, ""]]:
    """(A + λI)⁻¹ y for a positive semi-definite A, and whether the result is finite.

    Double precision uses Cholesky; single precision uses eigenvalues, with negative ones (rounding) set to zero.
    """
    if A.dtype == jnp.float64:
        factor = jax.scipy.linalg.cho_factor(A + damping * jnp.eye(A.shape[0], dtype=A.dtype), lower=True)
        x = jax.scipy.linalg.cho_solve(factor, y)
    else:
        values, vectors = jnp.linalg.eigh(A)
        x = vectors @ ((vectors.T @ y) / (jnp.maximum(values, 0) + damping))
    return x, jnp.all(jnp.isfinite(x))
