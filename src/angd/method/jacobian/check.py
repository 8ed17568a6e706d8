"""What a Jacobian can be taken of, said in sentences."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import PyTree


def check(f: Callable[..., Any], params: PyTree, xs: PyTree) -> tuple[int, int]:
    """Numbers of samples and of components of f; raises with a sentence where there is no Jacobian."""
    check_params(params)
    n = _batch_size(xs)
    output = jax.eval_shape(f, params, jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), xs))
    return n, _components(output)


def check_params(params: PyTree) -> None:
    if not jax.tree.leaves(params):
        raise ValueError("params has no arrays: there is nothing to differentiate with respect to.")
    for path, leaf in jax.tree_util.tree_flatten_with_path(params)[0]:
        kind = jnp.result_type(leaf) if eqx.is_array_like(leaf) else type(leaf).__name__
        if not eqx.is_array_like(leaf) or not jnp.issubdtype(kind, jnp.floating):
            name = jax.tree_util.keystr(path) or "params"
            pairs = (
                "; angd.paired makes pairs of complex ones"
                if eqx.is_array_like(leaf) and jnp.iscomplexobj(leaf)
                else ""
            )
            raise ValueError(f"the parameter {name} is {kind}: only real floating-point leaves can be trained{pairs}.")


def _batch_size(xs: PyTree) -> int:
    shapes = [jnp.shape(x) for x in jax.tree.leaves(xs)]
    if not shapes or () in shapes:
        raise ValueError("xs must hold arrays whose leading axis runs over the samples.")
    sizes = sorted({shape[0] for shape in shapes})
    if len(sizes) > 1:
        raise ValueError(f"the leaves of xs disagree on the number of samples: leading axes {sizes}.")
    if sizes[0] == 0:
        raise ValueError("the batch is empty: xs must hold at least one sample.")
    return sizes[0]


def _components(output: Any) -> int:
    if not isinstance(output, jax.ShapeDtypeStruct):
        raise ValueError("f must return one array, a scalar or a vector, not a pytree of them.")
    if output.ndim > 1:
        raise ValueError(f"f must return a scalar or a vector at one sample, not an array of shape {output.shape}.")
    if not jnp.issubdtype(output.dtype, jnp.floating):
        raise ValueError(f"f must return real floating-point numbers, not {output.dtype}.")
    return output.size
