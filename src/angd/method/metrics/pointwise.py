"""Pointwise functions over samples."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Inexact, PyTree

from angd.method.passes import pulled, values
from angd.method.protocols import AmplitudeProblem, DensityProblem, GivesForces, GivesVariations
from angd.method.samples import Samples


def over(f: Callable[..., Any], params: PyTree, xs: PyTree) -> Inexact[Array, "n *m"]:
    """f(θ, x_i) at every sample."""
    return values(f, params, xs)


def variations(
    problem: DensityProblem | AmplitudeProblem,
    params: PyTree,
    samples: Samples,
    old: PyTree | None = None,
    phase: bool = False,
) -> tuple[Samples, Inexact[Array, "n"], Inexact[Array, "n"]]:
    """δL/δρ at every sample, and the same for older parameters (where there are none, again the first), with the
    samples fit for a step; complex only where the metric knows the `phase`. A problem may do it all at once,
    `variations(params, samples, old)`: in chunks, clipped, samples masked where it is not finite."""
    if isinstance(problem, GivesVariations):
        samples, f, f_old = problem.variations(params, samples, old)
    else:
        f = over(problem.variation, params, samples.x)
        f_old = f if old is None else over(problem.variation, old, samples.x)
    _check_variation(f, problem, phase)
    return samples, f, f_old


def _check_variation(f: Array, problem: object, phase: bool) -> None:
    """A variation of a density is one real number at a point."""
    if not phase:
        check_real(f, problem)
    if f.ndim != 1:
        name = f"variation of {type(problem).__name__}"
        raise ValueError(f"The {name} must be one number at a point, got an array of shape {f.shape[1:]}.")


def check_real(f: Array, problem: object) -> None:
    """Refuse a complex variation."""
    if jnp.iscomplexobj(f):
        raise ValueError(
            f"The variation of {type(problem).__name__} is complex: this is a metric of real densities and fields, and "
            "its real part alone would give a wrong gradient; a complex amplitude needs FubiniStudy, which has a phase."
        )


def forces(problem: DensityProblem, params: PyTree, xs: PyTree) -> PyTree:
    """∇_x δL/δρ at every sample; a problem may do them all at once, `variation_gradients(params, xs)`."""
    if isinstance(problem, GivesForces):
        return problem.variation_gradients(params, xs)
    return jax.vmap(jax.grad(problem.variation, argnums=1), (None, 0))(params, xs)


def pull(f: Callable[..., Any], params: PyTree, xs: PyTree, y: Float[Array, "n *m"]) -> PyTree:
    """Σ_i (∂_θ f(θ, x_i))ᵀ y_i, by one reverse pass."""
    return pulled(f, params, y, xs)


def derivatives(u: Callable[[Any], Array], x: Any, s: int) -> Inexact[Array, "m"]:
    """u and all its ordered derivatives up to order s at one point: mixed ones count with multiplicity."""
    derivative, parts = u, [jnp.ravel(u(x))]
    for _ in range(s):
        derivative = jax.jacfwd(derivative)
        parts.append(jnp.ravel(derivative(x)))
    return jnp.concatenate(parts)
