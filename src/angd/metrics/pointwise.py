"""Pointwise functions over samples."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from angd.jacobian.base import pull_back


def over(f: Callable[..., Any], params: PyTree, xs: PyTree) -> Float[Array, "n *m"]:
    """f(θ, x_i) at every sample."""
    return jax.vmap(f, (None, 0))(params, xs)


def variations(problem: Any, params: PyTree, xs: PyTree) -> Float[Array, "n"]:
    """δL/δρ at every sample; a problem may do them all at once, `variations(params, xs)`: in chunks, clipped."""
    if hasattr(problem, "variations"):
        return problem.variations(params, xs)
    return over(problem.variation, params, xs)


def variations_of_two(problem: Any, params: PyTree, old: PyTree, xs: PyTree) -> tuple[Array, Array]:
    """δL/δρ at every sample for two sets of parameters; a problem that clips may clip both alike."""
    if hasattr(problem, "variations_of_two"):
        return problem.variations_of_two(params, old, xs)
    return variations(problem, params, xs), variations(problem, old, xs)


def forces(problem: Any, params: PyTree, xs: PyTree) -> PyTree:
    """∇_x δL/δρ at every sample; a problem may do them all at once, `variation_gradients(params, xs)`."""
    if hasattr(problem, "variation_gradients"):
        return problem.variation_gradients(params, xs)
    return jax.vmap(jax.grad(problem.variation, argnums=1), (None, 0))(params, xs)


def pull(f: Callable[..., Any], params: PyTree, xs: PyTree, y: Float[Array, "n *m"]) -> PyTree:
    """Σ_i (∂_θ f(θ, x_i))ᵀ y_i, by one reverse pass."""
    return pull_back(lambda p: over(f, p, xs), params, y)


def derivatives(u: Callable[[Any], Array], x: Any, s: int) -> Float[Array, "m"]:
    """u and all its ordered derivatives up to order s at one point: mixed ones count with multiplicity."""
    derivative, parts = u, [jnp.ravel(u(x))]
    for _ in range(s):
        derivative = jax.jacfwd(derivative)
        parts.append(jnp.ravel(derivative(x)))
    return jnp.concatenate(parts)
