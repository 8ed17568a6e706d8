"""Functions of one walker over many, some at a time, so that what is computed on the way stays in the cache."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import PyTree

from angd.method.parallel import by_share


def in_chunks(f: Callable[[Any], Any], xs: PyTree, size: int) -> PyTree:
    """f at every walker, at most `size` at a time, in chunks of one size, so that f is compiled once (some walkers come
    twice where that does not divide). On a mesh every device has chunks of its own walkers."""

    def share(xs: PyTree) -> PyTree:
        N = jax.tree.leaves(xs)[0].shape[0]
        count = -(-N // size)
        each = -(-N // count)

        def cut(x: Any) -> Any:
            filled = x if count * each == N else jnp.concatenate([x, x[: count * each - N]])
            return filled.reshape(count, each, *x.shape[1:])

        found = lax.map(jax.vmap(f), jax.tree.map(cut, xs))
        return jax.tree.map(lambda y: y.reshape(count * each, *y.shape[2:])[:N], found)

    return by_share(share, xs)
