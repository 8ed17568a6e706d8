"""Fubini–Study: Fisher–Rao for amplitudes with a phase. Rows (2 Re, 2 Im) ∂_θ log ψ, each component centred by itself.

With Φ = 2 δ log ψ complex, φ the old momentum at the new points, e and e′ the (complex) variation of the new and the
old parameters there (centred),

    b = μφ − (h/2) φ (φ + β e′) − β (e − e′) − hγ e,

the product being that of complex numbers, and the right-hand side (Re, Im) b. Then OᵀWe = ∂_θ L, and G is four times
the metric of rays, |δψ|² less its part along ψ, so that without a phase all is as in Fisher–Rao.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Inexact, PyTree

from angd.method.metrics.base import StepContext, known_loss, one_batch
from angd.method.metrics.fisher_rao import AbstractDensityMetric, DensityStep
from angd.method.protocols import AmplitudeProblem, require
from angd.method.system import Rows, row_weights


class FubiniStudy(AbstractDensityMetric):
    """The metric of quantum states, ψ up to norm and phase; for wave functions with a phase, stochastic
    reconfiguration.

    For problems with `log_amplitude(params, x)`, log ψ, and `variation(params, x)`, the local energy, either of them
    real or complex; samples are drawn from |ψ|². Where log ψ is real it is `FisherRao` of log ρ = 2 log ψ. Complex
    parameters count as pairs of real ones: `angd.paired` makes them, `angd.OfPairs` adapts a model.

    **Arguments:**

    - `limit`: bound of h|φ| in the quadratic term; 0.5 is safe, None is no limit.
    - `correction`: False leaves the quadratic term out, as methods without momentum do (minSR, SPRING).

    **Example:** `angd.ANGD(angd.ARGFlow.momentum(0.8, 0.1), angd.FubiniStudy(), angd.Kernel(1e-4))`
    """

    limit: float | None = 0.5
    correction: bool = eqx.field(static=True, default=True)

    def __check_init__(self):
        if self.limit is not None and not self.limit > 0:
            raise ValueError(f"FubiniStudy: limit must be positive (or None for no limit), got {self.limit}.")

    def linearise(self, context: StepContext) -> DensityStep:
        problem = require(context.problem, AmplitudeProblem, self)
        one_batch(context.samples, self)
        context, f, f_old = context.vetted(problem, context.hessian, phase=True)
        score = _Score(problem)
        O = context.jacobian(score, context.samples.x)
        omega = row_weights(context.samples.omega, O)
        e, old = context.samples.centre(f), context.samples.centre(f_old)

        def rows(b: Inexact[Array, "n"]) -> Rows:
            return Rows(O=O, b=_parts(b, O.components), omega=omega, centred=True)

        b = context.samples.centre(self._carried(context, score, e, old) - context.force_scale * e)
        at_rest, gradient = rows(-context.force_scale * e), rows(e).right_side()
        loss = known_loss(context, f)
        return DensityStep(rows(b), at_rest, gradient, loss, samples=context.samples)

    def _carried(
        self, context: StepContext, score: "_Score", e: Inexact[Array, "n"], old: Inexact[Array, "n"]
    ) -> Inexact[Array, "n"]:
        """μφ less the quadratic correction and Hessian damping."""
        c, phi = context.c, self._velocity(context, score)
        carried = c.mu * phi - context.beta_prev * (e - old)
        return carried - c.h / 2 * phi * (phi + context.beta_prev * old) if self.correction else carried

    def _velocity(self, context: StepContext, score: "_Score") -> Inexact[Array, "n"]:
        pushed = context.carried(score, context.samples.x, context.previous.d)
        phi = context.samples.centre(_whole(pushed))
        if self.limit is None:
            return phi
        most = self.limit / context.c.h
        return phi * (most / jnp.maximum(jnp.abs(phi), most))


class _Score(eqx.Module):
    """2 log ψ at one point: a number, or its real and imaginary part."""

    problem: Any

    def __call__(self, params: PyTree, x: PyTree) -> Float[Array, "*m"]:
        value = 2 * self.problem.log_amplitude(params, x)
        if jnp.shape(value) != ():
            raise ValueError(
                f"log_amplitude of {type(self.problem).__name__} must be one number at a point, got an array of shape "
                f"{jnp.shape(value)}."
            )
        return jnp.stack([jnp.real(value), jnp.imag(value)]) if jnp.iscomplexobj(value) else value


def _parts(b: Inexact[Array, "n"], components: int) -> Float[Array, "N"]:
    """Real and imaginary part of every number in turn; where the rows have no imaginary part, the real one."""
    return jnp.real(b) if components == 1 else jnp.stack([jnp.real(b), jnp.imag(b)], axis=1).reshape(-1)


def _whole(parts: Float[Array, "n *m"]) -> Inexact[Array, "n"]:
    """And back."""
    return parts if parts.ndim == 1 else jax.lax.complex(parts[:, 0], parts[:, 1])
