"""The energy metric: L = ½ Σ ω r², and the pull-back of the flat metric of residuals, G = (∂r)*(∂r): Gauss–Newton.

    b = μ ∂_θ r(θ_{k−1}) d_{k−1} − β (r_k − r_{k−1}) − hγ r_k        (all at the new points)

There is no Riemannian correction in these variables, and β only adds to the friction. A loss of several terms stacks
their residuals; the weight of a term lives in the ω of its samples.
"""

from collections.abc import Callable
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from angd.method.jacobian import stack
from angd.method.metrics.base import AbstractMetric, LinearisedStep, StepContext
from angd.method.metrics.pointwise import over
from angd.method.protocols import ResidualProblem, TermsProblem, require
from angd.method.samples import Samples
from angd.method.system import Rows, row_weights

Term = tuple[Callable[..., Any], Samples]


class Energy(AbstractMetric):
    """Gauss–Newton in function space: L = ½ Σ ω r² and G = (∂r)ᵀ W (∂r) (Müller and Zeinhofer 2023).

    The problem has `residual(params, x)`, a scalar or a vector at one point; or, for several terms,
    `residuals`, a dictionary of such functions, and samples are a dictionary with the same names.

    **Example:** `angd.ANGD(angd.ARGFlow.gradient(1.0), angd.Energy(), angd.Normal(1e-6), angd.LineSearch())`
    """

    gauss_newton: ClassVar[bool] = True

    def linearise(self, context: StepContext) -> LinearisedStep:
        parts = terms(context.problem, context.samples, self)
        Os = [context.jacobian(f, samples.x) for f, samples in parts]
        omega = jnp.concatenate([row_weights(samples.omega, O) for (_, samples), O in zip(parts, Os, strict=True)])
        O, r = stack(Os, keep=context.form is not None), residuals(parts, context.params)
        at_rest = Rows(O=O, b=-context.force_scale * r, omega=omega)
        system = Rows(O=O, b=at_rest.b + self._momentum(context, parts, r), omega=omega)
        return LinearisedStep(system, at_rest, Rows(O=O, b=r, omega=omega).right_side(), loss=jnp.vdot(omega, r**2) / 2)

    def _momentum(self, context: StepContext, parts: list[Term], r: Float[Array, "N"]) -> Float[Array, "N"]:
        previous = context.previous
        y = _flat([context.carried(f, samples.x, previous.d) for f, samples in parts])
        if not context.hessian:
            return context.c.mu * y
        return context.c.mu * y - context.beta_prev * (r - residuals(parts, previous.params))

    def residual_curvature(self, problem: object, params: PyTree, samples: Any, d: PyTree) -> Float[Array, "N"]:
        parts = terms(problem, samples, self)

        def slope(params: PyTree) -> Float[Array, "N"]:
            return jax.jvp(lambda q: residuals(parts, q), (params,), (d,))[1]

        return jax.jvp(slope, (params,), (d,))[1]

    def loss(self, problem: object, params: PyTree, samples: Any) -> Float[Array, ""]:
        return sum(
            (jnp.sum(part.mean(over(f, params, part.x) ** 2)) / 2 for f, part in terms(problem, samples, self)),
            jnp.zeros(()),
        )


def terms(problem: object, samples: Any, metric: AbstractMetric) -> list[Term]:
    """Each term's residual with its samples."""
    if isinstance(samples, Samples):
        return [(require(problem, ResidualProblem, metric).residual, samples)]
    named = problem.residuals if isinstance(problem, TermsProblem) else None
    if not isinstance(named, dict) or not isinstance(samples, dict) or set(named) != set(samples):
        mine, theirs = (sorted(x) if isinstance(x, dict) else type(x).__name__ for x in (named, samples))
        raise ValueError(f"Each term needs its own samples: the problem's residuals are {mine}, the samples {theirs}.")
    return [(named[name], samples[name]) for name in sorted(named)]


def residuals(parts: list[Term], params: PyTree) -> Float[Array, "N"]:
    """All residuals, term after term."""
    return _flat([over(f, params, samples.x) for f, samples in parts])


def _flat(parts: list[Array]) -> Float[Array, "N"]:
    return jnp.concatenate([part.reshape(-1) for part in parts])
