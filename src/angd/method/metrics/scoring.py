"""Fisher–Rao for maximum likelihood: Fisher scoring, accelerated.

L = −E_data[log ρ] has δL/δρ = −p/ρ with p the density of the data, which nobody can evaluate. But a direction needs no
more than its pull-back, and there E_ρ[O p/ρ] = E_data[O] with O = ∂_θ log ρ. With φ the old momentum, r = ρ_k/ρ_{k−1},
and bars for averages over the data, the right-hand side of Fisher–Rao becomes

    v = E_ρ[O (μφ − (h/2) φ (φ + β r̄))] + E_data[O (hγ + β (1 − r) + (h/2) β φ r)],

the first average over samples of the model, which also carry G = E_ρ[O Oᵀ], the second over the data. log ρ must be
normalised: an unknown constant would change r and the mean of O.
"""

from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from angd.method.metrics.base import AbstractMetric, LinearisedStep, StepContext
from angd.method.metrics.pointwise import over, pull
from angd.method.protocols import LikelihoodProblem, require
from angd.method.samples import Samples
from angd.method.system import Gram, Rows, gram_like, row_weights
from angd.tree import combine, scale

MODEL, DATA = "model", "data"


class FisherScoring(AbstractMetric):
    """Fisher–Rao for maximum likelihood: the gradient from data, the metric from samples of the model.

    Without momentum it is Fisher scoring, the natural gradient of the likelihood with the true Fisher matrix (the
    "empirical" one, of the data's own scores, is another matrix, right at the optimum only). For problems with a
    normalised `log_density(params, x)`; samples are a dictionary, `{"model": …, "data": …}`.

    **Arguments:**

    - `limit`: bound of h|φ| in the quadratic term; 0.5 is safe, None is no limit.

    **Example:** `angd.ANGD(angd.ARGFlow.momentum(0.8, 0.05), angd.FisherScoring(), angd.Normal(1e-3))`
    """

    limit: float | None = 0.5
    rows: ClassVar[bool] = False

    def __check_init__(self):
        if self.limit is not None and not self.limit > 0:
            raise ValueError(f"FisherScoring: limit must be positive (or None for no limit), got {self.limit}.")

    def linearise(self, context: StepContext) -> LinearisedStep:
        problem, (model, data) = require(context.problem, LikelihoodProblem, self), both(context.samples)
        O = context.jacobian(problem.log_density, model.x)
        omega = row_weights(model.omega, O)
        ratio = self._ratio(context, problem, data)
        phi, phi_data = self._velocity(context, problem, model, data)
        xi = phi + context.beta_prev * data.mean(ratio)
        carried = context.c.mu * phi - context.c.h / 2 * phi * xi
        damped = context.beta_prev * (1 - ratio + context.c.h / 2 * phi_data * ratio)
        slope = self._pull(context, problem, data, jnp.ones_like(ratio))
        v = combine(
            (context.force_scale, slope),
            (1.0, Rows(O=O, b=carried, omega=omega, centred=True).right_side()),
            *([(1.0, self._pull(context, problem, data, damped))] if context.hessian else []),
        )
        system = Gram(O=O, v=v, omega=omega, centred=True)
        at_rest = gram_like(system, scale(context.force_scale, slope))
        loss = self.loss(problem, context.params, context.samples)
        return LinearisedStep(system, at_rest, scale(-1.0, slope), loss)

    def _ratio(self, context: StepContext, problem: LikelihoodProblem, data: Samples) -> Float[Array, "m"]:
        """ρ_k/ρ_{k−1} at the data; 1 where β does not ask."""
        if not context.hessian:
            return jnp.ones_like(data.omega)
        now, before = (over(problem.log_density, p, data.x) for p in (context.params, context.previous.params))
        return jnp.exp(now - before)

    def _velocity(
        self, context: StepContext, problem: LikelihoodProblem, model: Samples, data: Samples
    ) -> tuple[Float[Array, "n"], Float[Array, "m"]]:
        """φ at the samples of the model and at the data, less its mean over the former."""
        phi = context.carried(problem.log_density, model.x, context.previous.d)
        at_data = jnp.zeros_like(data.omega)
        if context.hessian:
            at_data = context.carried(problem.log_density, data.x, context.previous.d)
        mean = model.mean(phi) / jnp.sum(model.omega)
        return self._limited(context, phi - mean), self._limited(context, at_data - mean)

    def _limited(self, context: StepContext, phi: Float[Array, "n"]) -> Float[Array, "n"]:
        h = context.c.h
        return phi if self.limit is None else jnp.clip(phi, -self.limit / h, self.limit / h)

    def _pull(self, context: StepContext, problem: LikelihoodProblem, data: Samples, b: Float[Array, "m"]) -> PyTree:
        """E_data[O b]."""
        return pull(problem.log_density, context.params, data.x, data.omega * b)

    def loss(self, problem: object, params: PyTree, samples: Any) -> Float[Array, ""]:
        """−E_data[log ρ]."""
        problem, (_, data) = require(problem, LikelihoodProblem, self), both(samples)
        return -data.mean(over(problem.log_density, params, data.x))


def both(samples: Any) -> tuple[Samples, Samples]:
    """Samples of the model, and data."""
    if not isinstance(samples, dict) or set(samples) != {MODEL, DATA}:
        found = sorted(samples) if isinstance(samples, dict) else type(samples).__name__
        raise ValueError(
            f'FisherScoring takes samples {{"{MODEL}": …, "{DATA}": …}}: of the present density, and the data; got '
            f"{found}."
        )
    return samples[MODEL], samples[DATA]
