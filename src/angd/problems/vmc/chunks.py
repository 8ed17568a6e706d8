"""Functions of one walker over many, some at a time, so that what is computed on the way stays in the cache."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import PyTree


def in_chunks(f: Callable[[Any], Any], xs: PyTree, size: int) -> PyTree:
    """f at every walker, at most `size` at a time (rounded up to a multiple of the devices), in chunks of one size, so
    that f is compiled once (some walkers come twice where that does not divide). Those of a chunk are taken from all
    over, some of every device's."""
    N = jax.tree.leaves(xs)[0].shape[0]
    devices = min(jax.device_count(), N)
    count = -(-N // size)
    size = devices * -(-N // (count * devices))
    count = -(-N // size)

    def cut(x: Any) -> Any:
        filled = x if count * size == N else jnp.concatenate([x, x[: count * size - N]])
        return filled.reshape(size, count, *x.shape[1:]).swapaxes(0, 1)

    found = lax.map(jax.vmap(f), jax.tree.map(cut, xs))
    return jax.tree.map(lambda y: y.swapaxes(0, 1).reshape(count * size, *y.shape[2:])[:N], found)
