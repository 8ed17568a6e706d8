"""Linear algebra on points and (co)tangent vectors that are pytrees (a Gaussian is a mean and a covariance)."""

from typing import Any

import jax


def combine(*terms: tuple[Any, Any]) -> Any:
    """Σ cᵢ xᵢ for pairs (cᵢ, xᵢ) of a scalar and a pytree."""
    scaled = [jax.tree.map(lambda leaf, c=c: c * leaf, x) for c, x in terms]
    return jax.tree.map(lambda *leaves: sum(leaves[1:], leaves[0]), *scaled)


def zeros_like(x: Any) -> Any:
    """The zero vector of the space of `x`."""
    return jax.tree.map(lambda leaf: 0.0 * leaf, x)
