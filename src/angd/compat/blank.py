"""What stands where an `Info` will be, before the first step: frameworks want a state of one shape from the start."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from angd.method.step import ANGD, Info, State


def blank_info(opt: ANGD, problem: object, params: PyTree, samples: Any, state: State) -> Info:
    """The `Info` of a step that was not taken, in the types of one that will be."""
    return jax.tree.map(_unknown, eqx.filter_eval_shape(opt.step, problem, params, samples, state)[3])


def _unknown(entry: jax.ShapeDtypeStruct) -> Array:
    return jnp.full(entry.shape, jnp.nan if jnp.issubdtype(entry.dtype, jnp.floating) else 0, entry.dtype)
