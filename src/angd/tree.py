"""Linear algebra on pytrees: parameters of models, and points made of several arrays (a Gaussian: mean, covariance)."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float


def combine(*terms: tuple[Any, Any]) -> Any:
    """Σ cᵢ xᵢ for pairs (cᵢ, xᵢ) of a scalar and a pytree, in the types of the first pytree."""
    scaled = [jax.tree.map(lambda leaf, c=c: c * leaf, x) for c, x in terms]
    total = jax.tree.map(lambda *leaves: sum(leaves[1:], leaves[0]), *scaled)
    return jax.tree.map(lambda leaf, like: jnp.asarray(leaf, jnp.result_type(like)), total, terms[0][1])


def add(x: Any, y: Any) -> Any:
    """x + y."""
    return combine((1.0, x), (1.0, y))


def scale(c: Any, x: Any) -> Any:
    """c x."""
    return combine((c, x))


def zeros_like(x: Any) -> Any:
    """The zero vector of the space of `x`."""
    return jax.tree.map(jnp.zeros_like, x)


def dot(x: Any, y: Any) -> Float[Array, ""]:
    """⟨x, y⟩."""
    products = [jnp.vdot(a, b) for a, b in zip(jax.tree.leaves(x), jax.tree.leaves(y), strict=True)]
    return sum(products[1:], products[0])


def norm(x: Any) -> Float[Array, ""]:
    """‖x‖."""
    return jnp.sqrt(dot(x, x))


def count(x: Any) -> int:
    """How many numbers the arrays of a pytree hold."""
    return sum(leaf.size for leaf in jax.tree.leaves(x))


def all_finite(x: Any) -> Bool[Array, ""]:
    """Is every floating-point entry a number?"""
    leaves = [leaf for leaf in jax.tree.leaves(x) if jnp.issubdtype(jnp.result_type(leaf), jnp.inexact)]
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in leaves])) if leaves else jnp.ones((), bool)


def any_nonzero(x: Any) -> Bool[Array, ""]:
    """Is any entry other than zero?"""
    return jnp.any(jnp.stack([jnp.any(leaf != 0) for leaf in jax.tree.leaves(x)]))


def copied(x: Any) -> Any:
    """The same numbers in buffers of their own, so that either may be donated."""
    return jax.tree.map(lambda leaf: jnp.array(leaf, copy=True) if eqx.is_array_like(leaf) else leaf, x)


def where(condition: Bool[Array, ""], yes: Any, no: Any) -> Any:
    """`yes` or `no`, as a whole."""
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), yes, no)


def in_precision(x: Any, dtype: Any) -> Any:
    """Floating-point arrays as of another dtype; complex ones of its width."""

    def cast(leaf: Any) -> Any:
        if not eqx.is_inexact_array(leaf):
            return leaf
        return leaf.astype(jnp.promote_types(dtype, jnp.complex64) if jnp.iscomplexobj(leaf) else dtype)

    return jax.tree.map(cast, x)
