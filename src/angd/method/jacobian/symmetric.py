"""Symmetric products: only the lower triangle is computed, block by block, then mirrored.

A full matrix product would do half of its work twice. Few large blocks waste part of the diagonal ones; many small
blocks run below the speed of a large product. Six to eight blocks were the fastest on the machines measured.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from angd.method.memory import crowded

SMALLEST, MOST = 128, 7
STRIP = 256  # rows at a time of what is changed in its own buffer
Rows = Callable[[Array], Array]


def mirror(lower: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """The symmetric matrix with this lower triangle."""
    return jnp.tril(lower) + jnp.tril(lower, -1).T


def outer(rows: Float[Array, "n p"], onto: Float[Array, "n n"] | None = None, most: int = MOST) -> Float[Array, "n n"]:
    """`M Mᵀ`, added to `onto` where that is given; in one buffer, block by block."""
    n = rows.shape[0]
    stops = [round(s) for s in np.linspace(0, n, max(1, min(most, n // SMALLEST)) + 1)]
    blocks = [rows[i:j] for i, j in pairwise(stops)]
    whole = jnp.zeros((n, n), rows.dtype) if onto is None else onto
    for i, j in zip(*np.tril_indices(len(blocks)), strict=True):
        part, at = blocks[i] @ blocks[j].T, (stops[i], stops[j])
        if onto is not None:
            part = part + lax.dynamic_slice(whole, at, part.shape)
        whole = _put(whole, mirror(part) if i == j else part, at)
    return whole


def tiled(
    n: int,
    size: int,
    m: int,
    tile: Callable[[Array, Array], Array],
    dtype: Any = float,
    worker: Any = 0,
    workers: int = 1,
) -> Float[Array, "N N"]:
    """The symmetric matrix of n samples with m rows each, whose tile at the samples i and j, each the first of `size`,
    is `tile(i, j)`; or what one of several workers adds to it, who do as many tiles each.

    It is written into one buffer. The last tiles begin earlier, so that they end with the matrix.
    """
    begins = np.arange(-(-n // size)) * size  # where a tile has rows that no earlier one has
    starts, new = jnp.asarray(np.minimum(begins, n - size)), jnp.asarray(begins)
    rows, columns = (jnp.asarray(k) for k in np.tril_indices(len(begins)))
    within = jnp.arange(size * m) // m

    def write(turn: Array, whole: Array) -> Array:
        k = turn * workers + worker
        i, j = starts[rows[k]], starts[columns[k]]
        part = tile(i, j)
        part, at = jnp.where(i == j, mirror(part), part), (i * m, j * m)
        if workers == 1:
            return _put(whole, part, at)
        own = (i + within >= new[rows[k]])[:, None] & (j + within >= new[columns[k]])[None, :] & (k < len(rows))
        part = jnp.where(own, part, 0)
        return _added(_added(whole, part, at), jnp.where(i == j, 0, part).T, (at[1], at[0]))

    return lax.fori_loop(0, -(-len(rows) // workers), write, jnp.zeros((n * m, n * m), dtype))


def _put(whole: Float[Array, "n n"], part: Float[Array, "r c"], at: tuple[Any, Any]) -> Float[Array, "n n"]:
    """A block, and its mirror image."""
    whole = lax.dynamic_update_slice(whole, part.T, at[::-1])
    return lax.dynamic_update_slice(whole, part, at)


def _added(whole: Float[Array, "n n"], part: Float[Array, "r c"], at: tuple[Any, Any]) -> Float[Array, "n n"]:
    """A block more."""
    return lax.dynamic_update_slice(whole, lax.dynamic_slice(whole, at, part.shape) + part, at)


def by_rows(K: Float[Array, "n k"], f: Callable[[Array, Rows], Array]) -> Float[Array, "n k"]:
    """f of a matrix, entry by entry, in its own buffer where it leaves no room for another.

    `f(part, rows)` gets some rows of the matrix, and a function that takes those of any other array.
    """
    n = K.shape[0]
    if not crowded(n, K.dtype):
        return f(K, lambda x: x)

    size = min(STRIP, n)

    def change(k: Array, K: Array) -> Array:
        start = jnp.minimum(k * size, n - size)  # the last strip overlaps with the one before, which is done
        part = lax.dynamic_slice_in_dim(K, start, size)
        changed = f(part, lambda x: lax.dynamic_slice_in_dim(x, start, size))
        new = (start + jnp.arange(size) >= k * size)[:, None]
        return lax.dynamic_update_slice_in_dim(K, jnp.where(new, changed, part), start, 0)

    return lax.fori_loop(0, -(-n // size), change, K)


def weigh(kernel: Float[Array, "N N"], scale: Float[Array, " N"] | None) -> Float[Array, "N N"]:
    """`S K S`."""
    if scale is None:
        return kernel
    return by_rows(kernel, lambda part, rows: part * rows(scale)[:, None] * scale[None, :])


def weigh_rows(rows: Float[Array, "N p"], scale: Float[Array, " N"] | None) -> Float[Array, "N p"]:
    """`S M`."""
    return rows if scale is None else rows * scale[:, None]
