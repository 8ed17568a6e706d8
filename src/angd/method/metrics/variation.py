"""Flat metrics whose problem knows the variation δL/δρ at a point (regression, and fields with a local energy).

L², `L2Pointwise`: rows ∂_θ u and b = μ ⟨∂_θ u_{k−1}, d_{k−1}⟩ − β (f − f′) − hγ f, so that kernels apply.

H^s with s < 0, `NegativeHs`: G⁻¹ = Σ_{i ≤ |s|} (−Δ)ⁱ = 𝐃*𝐃 acts on the force, so derivatives of f are needed,

    v = Σ ω [ μ (∂_θ u)ᵀ⟨∂_θ u_{k−1}, d_{k−1}⟩ − (∂_θ 𝐃u)ᵀ( β (𝐃f − 𝐃f′) + hγ 𝐃f ) ],

and integration by parts has assumed a boundary condition (periodic, or a field that vanishes or has no flux there). The
direction is the L²-projection of the flow; it need not descend: pair it with `Restart()`, or take `GridHs` on a grid.
"""

from collections.abc import Callable
from typing import ClassVar

import equinox as eqx
from jaxtyping import Array, Float, PyTree

from angd.method.metrics.base import AbstractMetric, LinearisedStep, StepContext, known_loss, one_measure
from angd.method.metrics.pointwise import check_real, derivatives, over, pull
from angd.method.metrics.sobolev import PositiveHs
from angd.method.protocols import VariationProblem, require
from angd.method.samples import Samples
from angd.method.system import Gram, Rows, gram_like, row_weights
from angd.tree import combine, scale


class L2Pointwise(AbstractMetric):
    """L² for problems with `field(params, x)` and `variation(params, x)`, scalars or vectors of one shape.

    The right-hand side is known at the samples, so that kernels apply.

    **Arguments:**

    - `on`: where samples are a dictionary, the name of those that carry the metric.
    """

    on: str = eqx.field(static=True, default="interior")

    def linearise(self, context: StepContext) -> LinearisedStep:
        samples = one_measure(context.samples, self.on, self)
        problem = require(context.problem, VariationProblem, self)
        O, f = context.jacobian(problem.field, samples.x), over(problem.variation, context.params, samples.x)
        omega = row_weights(samples.omega, O)
        check_real(f, problem)
        check_shapes(O.shape, f.shape)
        b = context.c.mu * context.carried(problem.field, samples.x, context.previous.d) - context.force_scale * f
        if context.hessian:
            b = b - context.beta_prev * (f - over(problem.variation, context.previous.params, samples.x))

        def rows(b: Float[Array, "n *m"]) -> Rows:
            return Rows(O=O, b=b.reshape(-1), omega=omega)

        return LinearisedStep(rows(b), rows(-context.force_scale * f), rows(f).right_side(), known_loss(context))


class NegativeHs(AbstractMetric):
    """H^s with s = −`order` < 0, for problems with `field` and `variation`, the latter differentiable in x."""

    order: int = eqx.field(static=True)
    on: str = eqx.field(static=True, default="interior")
    rows: ClassVar[bool] = False

    def linearise(self, context: StepContext) -> LinearisedStep:
        samples = one_measure(context.samples, self.on, self)
        problem = require(context.problem, VariationProblem, self)
        O = context.jacobian(problem.field, samples.x)
        omega = row_weights(samples.omega, O)
        Df = over(self._deep(problem.variation), context.params, samples.x)
        check_real(Df, problem)
        drive = context.force_scale * Df
        if context.hessian:
            Df_old = over(self._deep(problem.variation), context.previous.params, samples.x)
            drive = drive + context.beta_prev * (Df - Df_old)
        old = context.carried(problem.field, samples.x, context.previous.d).reshape(-1)
        carried = O.rmatvec((omega * old).reshape(O.shape))
        v = combine((context.c.mu, carried), (-1.0, self._pull(context, problem, samples, drive)))
        system = Gram(O=O, v=v, omega=omega)
        at_rest = gram_like(system, scale(-context.force_scale, self._pull(context, problem, samples, Df)))
        f = over(problem.variation, context.params, samples.x).reshape(-1)
        return LinearisedStep(system, at_rest, Rows(O=O, b=f, omega=omega).right_side(), known_loss(context))

    def _deep(self, f: Callable[..., Array]) -> Callable[..., Array]:
        """(θ, x) ↦ 𝐃f(x)."""
        return lambda params, x: derivatives(lambda y: f(params, y), x, self.order)

    def _pull(
        self, context: StepContext, problem: VariationProblem, samples: Samples, y: Float[Array, "n m"]
    ) -> PyTree:
        """Σ ω (∂_θ 𝐃u)ᵀ y."""
        weighted = samples.omega.astype(y.dtype)[:, None] * y
        return pull(self._deep(problem.field), context.params, samples.x, weighted)


def Hs(s: int, on: str = "interior") -> AbstractMetric:
    """The Sobolev metric of any integer order, Σ_{i ≤ s} ∫ |∇ⁱσ|² for s ≥ 0 and its dual for s < 0.

    For s ≥ 0 the problem has `field` and `loss`, for s < 0 `field` and `variation`.

    **Arguments:**

    - `s`: s > 0 smooths the gradient, s < 0 sharpens it (pair that with `Restart`), 0 is L².
    - `on`: where samples are a dictionary, the name of those that carry the metric.

    **Returns:** a metric.

    **Example:** `angd.Hs(1)`
    """
    if isinstance(s, bool) or not isinstance(s, int):
        raise ValueError(f"Hs: s must be an integer, got {s!r}.")
    return PositiveHs(s=s, on=on) if s >= 0 else NegativeHs(order=-s, on=on)


def check_shapes(field: tuple[int, ...], variation: tuple[int, ...]) -> None:
    """The variation of a field has the shape of the field."""
    if field != variation:
        raise ValueError(f"field has shape {field[1:]} at a point but variation has shape {variation[1:]}.")
