"""Determinants and inverses of many small matrices at once.

LAPACK takes one matrix after the other and spends more on each call than on its arithmetic. Here elimination with
partial pivoting runs over all matrices of a batch together, the batch along the last axis, where the processor's
vectors lie.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Float

SMALL = 6  # matrices up to this size are eliminated in one loop
LARGEST = 32  # beyond, LAPACK spends more on arithmetic than on calls


# Known by this name, forward Laplacians of folx have a rule for it.
@jax.jit
def slogdet(A: Float[Array, "*batch n n"]) -> tuple[Float[Array, "*batch"], Float[Array, "*batch"]]:
    """(sign, log|det A|); a singular matrix has (0, −∞).

    **Arguments:**

    - `A`: square matrices, shape (..., n, n); made for n up to some tens.

    **Returns:** signs and logarithms, each of shape (...).
    """
    return _slogdet(A)


def inverse_slogdet(A: Float[Array, "*batch n n"]) -> tuple[Array, Array, Array]:
    """A⁻¹ with what `slogdet` gives; where A is singular, numbers without meaning."""
    return _inverse(A)


def _together(eliminate: Callable[[Array], Any]) -> Callable[[Array], Any]:
    """`eliminate` takes (n, n, B) to arrays with a last axis B; the result takes (..., n, n), under `vmap` as well."""

    @custom_vmap
    def whole(A: Float[Array, "*batch n n"]) -> Any:
        batch, n = A.shape[:-2], A.shape[-1]
        found = eliminate(A.reshape(math.prod(batch), n, n).transpose(1, 2, 0))
        return jax.tree.map(lambda x: jnp.moveaxis(x, -1, 0).reshape(*batch, *x.shape[:-1]), found)

    @whole.def_vmap
    def _(size: int, batched: Any, A: Array) -> tuple[Any, Any]:
        found = whole(A)  # the new axis comes first, as `vmap` has it
        return found, jax.tree.map(lambda _: True, found)

    return whole


def _step(k: Any, carry: tuple[Array, Array, Array], keep: bool) -> tuple[Array, Array, Array]:
    """Clear the first column with the largest of the rows not used yet, which are the first n − k, and drop it. Where
    they are to be kept, the row itself goes to the end."""
    M, sign, log = carry
    n = M.shape[0]
    row = jnp.arange(n)[:, None]
    column = jnp.where(row < n - k, jnp.abs(M[:, 0]), -1.0)
    chosen = jnp.argmax(column, axis=0)[None]
    best = jnp.sum(jnp.where((row == chosen)[:, None], M, 0), axis=0)
    pivot = best[0]
    sign = jnp.where(chosen[0] > 0, -sign, sign) * jnp.sign(pivot)
    log = log + jnp.log(jnp.abs(pivot))
    scaled = best[1:] / jnp.where(pivot == 0, 1, pivot)[None]
    rest = jnp.where((row[1:] == chosen)[:, None], M[:1], M[1:])  # the first row takes the place of the chosen
    cleared = rest[:, 1:] - rest[:, :1] * scaled[None]
    last = scaled[None] if keep else jnp.zeros_like(scaled)[None]
    return jnp.pad(jnp.concatenate([cleared, last]), ((0, 0), (0, 1), (0, 0))), sign, log


def _eliminated(M: Float[Array, "n w B"], keep: bool) -> tuple[Array, Array, Array]:
    """All columns of the first n, and what is left; where rows are not kept, in stages of ever smaller matrices."""
    one, n = jnp.ones(M.shape[2:], M.dtype), M.shape[0]
    carry = M, one, 0 * one
    while n:
        steps = n if keep or n <= SMALL else n // 3
        carry = lax.fori_loop(0, steps, partial(_step, keep=keep), carry)
        n -= steps
        carry = (carry[0] if keep else carry[0][:n, :n], *carry[1:])
    return carry


@_together
def _logarithms(A: Float[Array, "n n B"]) -> tuple[Array, Array]:
    return _eliminated(A, False)[1:]


@_together
def _all(A: Float[Array, "n n B"]) -> tuple[Array, Array, Array]:
    n, _, B = A.shape
    eye = jnp.broadcast_to(jnp.eye(n, dtype=A.dtype)[:, :, None], (n, n, B))
    M, sign, log = _eliminated(jnp.concatenate([A, eye], axis=1), True)
    return M[:, :n], sign, log


@jax.custom_jvp
def _slogdet(A: Float[Array, "*batch n n"]) -> tuple[Array, Array]:
    return tuple(jnp.linalg.slogdet(A)) if A.shape[-1] > LARGEST else _logarithms(A)


@_slogdet.defjvp
def _(primals: Any, tangents: Any) -> Any:
    inverse, sign, log = _inverse(*primals)
    return (sign, log), (jnp.zeros_like(sign), _trace(inverse, *tangents))


@jax.custom_jvp
def _inverse(A: Float[Array, "*batch n n"]) -> tuple[Array, Array, Array]:
    return (jnp.linalg.inv(A), *jnp.linalg.slogdet(A)) if A.shape[-1] > LARGEST else _all(A)


@_inverse.defjvp
def _(primals: Any, tangents: Any) -> Any:
    inverse, sign, log = _inverse(*primals)
    (dA,) = tangents
    return (inverse, sign, log), (-inverse @ dA @ inverse, jnp.zeros_like(sign), _trace(inverse, dA))


def _trace(inverse: Float[Array, "*batch n n"], dA: Float[Array, "*batch n n"]) -> Float[Array, "*batch"]:
    """tr(A⁻¹ dA)."""
    return jnp.sum(jnp.swapaxes(inverse, -1, -2) * dA, axis=(-2, -1))
