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

SMALLEST, MOST = 128, 7


def mirror(lower: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """The symmetric matrix with this lower triangle."""
    return jnp.tril(lower) + jnp.tril(lower, -1).T


def outer(rows: Float[Array, "n p"]) -> Float[Array, "n n"]:
    """`M Mᵀ`."""
    n = rows.shape[0]
    stops = [round(s) for s in np.linspace(0, n, max(1, min(MOST, n // SMALLEST)) + 1)]
    blocks = [rows[i:j] for i, j in pairwise(stops)]
    strips = [jnp.concatenate([block @ other.T for other in blocks[: k + 1]], 1) for k, block in enumerate(blocks)]
    return mirror(jnp.concatenate([jnp.pad(strip, ((0, 0), (0, n - strip.shape[1]))) for strip in strips]))


def outer_blocks(
    count: int, size: int, pair: Callable[[Array, Array], Array], worker: Any = 0, workers: int = 1
) -> Float[Array, "n n"]:
    """The symmetric matrix of `count` × `count` blocks, each `size` wide, whose block (i, j) is `pair(i, j)`; or what
    one of several workers adds to it, who do as many blocks each."""
    blocks = np.stack(np.tril_indices(count))
    turns = -(-blocks.shape[1] // workers)
    beyond = np.full((2, turns * workers - blocks.shape[1]), count)  # written nowhere
    i, j = jnp.asarray(np.concatenate([blocks, beyond], axis=1).reshape(2, turns, workers))[:, :, worker]
    found = lax.map(lambda ij: pair(*ij), (i, j))
    grid = jnp.zeros((count, count, size, size), found.dtype).at[i, j].set(found, mode="drop")
    return mirror(grid.transpose(0, 2, 1, 3).reshape(count * size, count * size))


def weigh(kernel: Float[Array, "N N"], scale: Float[Array, " N"] | None) -> Float[Array, "N N"]:
    """`S K S`."""
    return kernel if scale is None else kernel * scale[:, None] * scale[None, :]


def weigh_rows(rows: Float[Array, "N p"], scale: Float[Array, " N"] | None) -> Float[Array, "N p"]:
    """`S M`."""
    return rows if scale is None else rows * scale[:, None]
