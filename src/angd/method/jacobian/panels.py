"""The kernel from per-sample gradients, some columns at a time: as many as stay in the cache, and never all of them.

A matrix of all gradients is written to memory, read for every block of the product, and read again. A panel of its
columns is neither.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from angd.method.jacobian.leaves import block, side_by_side
from angd.method.jacobian.symmetric import outer
from angd.method.jacobian.taps import Group

BYTES = 16 * 2**20  # of a panel
FEWEST = 512  # columns, so that adding a product costs less than the product
BLOCKS = 4  # along each side of a product: more would take long to compile for so many of them

Change = Callable[[Float[Array, "N width"]], Float[Array, "N width"]]


class Columns(NamedTuple):
    """Some columns of O: how many, how they are made, and the factors they are made of where these can be cut."""

    width: int
    make: Callable[[], Float[Array, "N width"]]
    group: Group | None = None


def most_columns(n_rows: int, itemsize: int) -> int:
    """Of a panel."""
    return max(FEWEST, BYTES // (n_rows * itemsize))


def columns_of(group: Group, n_rows: int) -> Columns:
    """The gradients of a group, as its own arrangement has them."""
    width = math.prod((group.a.shape[2], group.a.shape[4], group.g.shape[4]))
    return Columns(width, lambda: block(group).reshape(n_rows, -1), group)


def add_products(
    parts: Sequence[Columns], n_rows: int, dtype: jnp.dtype, onto: Float[Array, "N N"] | None, change: Change
) -> Float[Array, "N N"]:
    """`onto` and the product M Mᵀ of all columns, each as `change` makes it."""
    limit, panel, width = most_columns(n_rows, dtype.itemsize), [], 0
    whole = jnp.zeros((n_rows, n_rows), dtype) if onto is None else onto
    for part in parts:
        if part.width > limit and part.group is not None:
            whole = _by_slices(part.group, limit, n_rows, whole, change)
            continue
        if 2 * part.width > limit:  # made block by block where the product wants it, without a copy
            whole = outer(change(part.make()).astype(dtype), whole, BLOCKS)
            continue
        if panel and width + part.width > limit:
            whole, panel, width = outer(_joined(panel, dtype, change), whole), [], 0
        panel, width = [*panel, part], width + part.width
    return outer(_joined(panel, dtype, change), whole) if panel else whole


def _joined(panel: Sequence[Columns], dtype: jnp.dtype, change: Change) -> Float[Array, "N width"]:
    return side_by_side([change(part.make()) for part in panel]).astype(dtype)


def _by_slices(
    group: Group, limit: int, n_rows: int, whole: Float[Array, "N N"], change: Change
) -> Float[Array, "N N"]:
    """A wide group, cut along its activations, or along its cotangents where there is one activation."""
    name = "a" if group.a.shape[4] > 1 else "g"
    x, other = (group.a, group.g) if name == "a" else (group.g, group.a)
    step = min(x.shape[4], max(1, limit // (other.shape[2] * other.shape[4])))
    count = -(-x.shape[4] // step)
    padded = jnp.pad(x, ((0, 0),) * 4 + ((0, count * step - x.shape[4]),))

    def add(k: Array, whole: Array) -> Array:
        some = lax.dynamic_slice_in_dim(padded, k * step, step, axis=4)
        cut = eqx.tree_at(lambda group: getattr(group, name), group, some)
        return outer(change(block(cut).reshape(n_rows, -1)).astype(whole.dtype), whole, BLOCKS)

    return lax.fori_loop(0, count, add, whole)
