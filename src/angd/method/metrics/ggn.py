"""Generalised Gauss–Newton: L = Σ ω ℓ(z), z = u_θ(x), ℓ convex; G = (∂z)ᵀ H (∂z) with H = ∇²ℓ, a Hessian metric.

With H = CCᵀ the rows are Cᵀ ∂_θ z and b = C⁺Φ, where the covector Φ = Hż follows

    Φ_k = μ Hż + (h/2) T₃(ż, ż + β H⁻¹∇ℓ′) − β (∇ℓ − ∇ℓ′) − hγ ∇ℓ,        T₃ = ∇³ℓ,

and H, T₃, ∇ℓ′ are taken at the old parameters and the new points. Where ℓ has flat directions (the logits of a softmax
are defined up to a constant) the inverses are pseudo-inverses.
"""

from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from angd.method.metrics.base import AbstractMetric, LinearisedStep, StepContext, one_batch
from angd.method.metrics.pointwise import over
from angd.method.protocols import CostProblem, require
from angd.method.system import Rows, row_weights


class GGN(AbstractMetric):
    """Generalised Gauss–Newton, G = (∂z)ᵀ ∇²ℓ (∂z), the metric that a convex cost induces (Schraudolph 2002).

    For problems with `field(params, x)` and `cost(z, x)`.

    **Arguments:**

    - `correction`: False freezes the Hessian of the cost, which is cheaper and no longer follows the flow.
    """

    correction: bool = eqx.field(static=True, default=True)
    gauss_newton: ClassVar[bool] = True

    def linearise(self, context: StepContext) -> LinearisedStep:
        samples, params = one_batch(context.samples, self), context.params
        problem = require(context.problem, CostProblem, self)
        now = jax.vmap(lambda x: at_point(problem, params, x))(samples.x)
        Phi = self._momentum(context, problem, now.slope)

        def scaled(params: PyTree, sample: tuple[Any, Array]) -> Float[Array, "m"]:
            x, C = sample
            return C.T @ _field(problem, params, x)

        O = context.jacobian(scaled, (samples.x, now.C))
        omega = row_weights(samples.omega, O)

        def rows(covector: Float[Array, "n m"]) -> Rows:
            return Rows(O=O, b=jnp.einsum("nij,nj->ni", now.C_inverse, covector).reshape(-1), omega=omega)

        rest = -context.force_scale * now.slope
        loss = samples.mean(now.value)
        return LinearisedStep(rows(rest + Phi), rows(rest), rows(now.slope).right_side(), loss)

    def _momentum(self, context: StepContext, problem: CostProblem, slope: Float[Array, "n m"]) -> Float[Array, "n m"]:
        previous, samples, c = context.previous, context.samples, context.c
        push = context.carried(lambda params, x: _field(problem, params, x), samples.x, previous.d)

        def one(x: Any, z_dot: Array, slope: Array) -> Array:
            old = at_point(problem, previous.params, x)
            covector = c.mu * (old.H @ z_dot) - context.beta_prev * (slope - old.slope)
            if not self.correction:
                return covector
            psi = z_dot + context.beta_prev * (old.H_inverse @ old.slope)
            return covector + c.h / 2 * (turning(problem, previous.params, x, z_dot) @ psi)

        return jax.vmap(one)(samples.x, push, slope)

    def loss(self, problem: object, params: PyTree, samples: Any) -> Float[Array, ""]:
        problem = require(problem, CostProblem, self)
        return one_batch(samples, self).mean(over(lambda p, x: problem.cost(problem.field(p, x), x), params, samples.x))


class _Point(NamedTuple):
    """The cost at one point: value, gradient, Hessian H = CCᵀ and pseudo-inverses."""

    value: Array
    slope: Array
    H: Array
    C: Array
    C_inverse: Array
    H_inverse: Array


def at_point(problem: CostProblem, params: PyTree, x: Any) -> _Point:
    """Everything the metric needs of the cost at one sample."""
    z = _field(problem, params, x)

    def cost(z: Array) -> Array:
        return problem.cost(z, x)

    H = jax.hessian(cost)(z)
    values, vectors = jnp.linalg.eigh(H)
    floor = jnp.finfo(z.dtype).eps * z.shape[0] * jnp.max(jnp.abs(values))
    safe = jnp.where(values > floor, values, 1.0)
    root = jnp.where(values > floor, jnp.sqrt(safe), 0.0)
    inverse_root = jnp.where(values > floor, 1 / jnp.sqrt(safe), 0.0)

    C_inverse = inverse_root[:, None] * vectors.T
    return _Point(cost(z), jax.grad(cost)(z), H, vectors * root[None, :], C_inverse, C_inverse.T @ C_inverse)


def turning(problem: CostProblem, params: PyTree, x: Any, z_dot: Float[Array, "m"]) -> Float[Array, "m m"]:
    """T₃(ż, ·): how H turns along ż."""
    hessian = jax.hessian(lambda z: problem.cost(z, x))
    return jax.jvp(hessian, (_field(problem, params, x),), (z_dot,))[1]


def _field(problem: CostProblem, params: PyTree, x: Any) -> Float[Array, "m"]:
    return jnp.atleast_1d(problem.field(params, x))
