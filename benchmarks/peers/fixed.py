"""Arrays of a fixed type, as they come back from a compiled function: otherwise it is compiled twice."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np


def fixed(tree: Any) -> Any:
    """The tree with all its numbers as such arrays."""
    return jax.tree.map(_strong, tree)


def _strong(x: Any) -> Any:
    is_key = isinstance(x, jax.Array) and jnp.issubdtype(x.dtype, jax.dtypes.prng_key)
    return x if is_key or not eqx.is_array_like(x) else jnp.array(np.asarray(x))
