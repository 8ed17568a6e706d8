"""Fisher–Rao: rows ∂_θ log ρ, centred over the samples; the right-hand side is known at the samples.

With φ the old momentum at the new points, e and e′ the variation of the new and the old parameters there (centred),

    b = μφ − (h/2) φ(φ + β e′) − β (e − e′) − hγ e.

Where φ is strongly negative the quadratic term drives it to −∞ in finite time (the density reaches zero), so φ is
limited to h|φ| ≤ `limit` first. The implicit form has μφ/(1 + hξ/2) with ξ = φ + β e′ in place of the first two terms:
√ρ keeps its velocity and is divided by where it arrives. With hφ and hξ at least −1 it lies within ±2/h if β = 0.
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from angd.method.metrics.base import AbstractMetric, LinearisedStep, StepContext, StepOutcome, known_loss, one_batch
from angd.method.protocols import DensityProblem, require
from angd.method.samples import Samples
from angd.method.system import Rows, row_weights


class DensityStep(LinearisedStep):
    """With the `samples` that were fit for the step, bad ones replaced."""

    samples: Samples = eqx.field(kw_only=True)


class AbstractDensityMetric(AbstractMetric):
    """A metric whose samples stay where they were."""

    def move(self, context: StepContext, linear: DensityStep, outcome: StepOutcome) -> Samples:
        """Where they were, bad ones replaced."""
        return linear.samples.weighed_as(context.samples)


class FisherRao(AbstractDensityMetric):
    """The metric of information geometry, g(σ, σ) = ∫ σ²/ρ; for wave functions, stochastic reconfiguration.

    For problems with `log_density(params, x)` and `variation(params, x)`, both real; samples are drawn from the
    density. For complex amplitudes the phase is a degree of freedom of its own, which this metric does not see.

    **Arguments:**

    - `limit`: bound of h|φ| in the quadratic term; 0.5 is safe, None is no limit.
    - `correction`: False leaves the quadratic term out, as methods without momentum do (minSR, SPRING):
      with μ = 0 there is no momentum to correct, yet the formula would still subtract (h/2)φ².
    - `implicit`: take the quadratic term implicitly, so that no φ makes it explode; with `limit=None`.

    **Example:** `angd.ANGD(angd.ARGFlow.momentum(0.8, 0.01), angd.FisherRao(), angd.Kernel(4e-3))`
    """

    limit: float | None = 0.5
    correction: bool = eqx.field(static=True, default=True)
    implicit: bool = eqx.field(static=True, default=False)

    def __check_init__(self):
        if self.limit is not None and not self.limit > 0:
            raise ValueError(f"FisherRao: limit must be positive (or None for no limit), got {self.limit}.")
        if self.implicit and not self.correction:
            raise ValueError("FisherRao: implicit says how the correction is taken; it needs correction=True.")

    def linearise(self, context: StepContext) -> DensityStep:
        problem = require(context.problem, DensityProblem, self)
        one_batch(context.samples, self)
        context, f, f_old = context.vetted(problem, context.hessian)
        O = context.jacobian(problem.log_density, context.samples.x)
        omega = row_weights(context.samples.omega, O)
        e, old = context.samples.centre(f), context.samples.centre(f_old)

        def rows(b: Float[Array, "n"]) -> Rows:
            return Rows(O=O, b=b, omega=omega, centred=True)

        b = context.samples.centre(self._carried(context, problem, e, old) - context.force_scale * e)
        at_rest, gradient = rows(-context.force_scale * e), rows(e).right_side()
        return DensityStep(rows(b), at_rest, gradient, known_loss(context, f), samples=context.samples)

    def _carried(
        self, context: StepContext, problem: DensityProblem, e: Float[Array, "n"], old: Float[Array, "n"]
    ) -> Float[Array, "n"]:
        """μφ less the quadratic correction and Hessian damping."""
        c, phi = context.c, self._velocity(context, problem)
        if self.implicit:
            phi = _turned(phi, phi + context.beta_prev * old, c.h)
        carried = c.mu * phi - context.beta_prev * (e - old)
        if self.implicit or not self.correction:
            return carried
        return carried - c.h / 2 * phi * (phi + context.beta_prev * old)

    def _velocity(self, context: StepContext, problem: DensityProblem) -> Float[Array, "n"]:
        samples, h = context.samples, context.c.h
        phi = samples.centre(context.carried(problem.log_density, samples.x, context.previous.d))
        return phi if self.limit is None else jnp.clip(phi, -self.limit / h, self.limit / h)


def _turned(phi: Float[Array, "n"], xi: Float[Array, "n"], h: Float[Array, ""]) -> Float[Array, "n"]:
    """φ/(1 + hξ/2), where φ and ξ are at least −1/h: the solution of x = φ − (h/2) ξ x."""
    return jnp.maximum(phi, -1 / h) / (1 + h / 2 * jnp.maximum(xi, -1 / h))
