"""L², H^s with s ≥ 0, any H^s on a grid: the metric ∫ 𝓑(σ)·𝓑(σ), where only the gradient ∂_θ L of the loss is known.

With c = μ d_{k−1} + β_{k−1} n_{k−1}, n = M⁻¹∂L, and the rows ∂_θ 𝓑(u)(x_i) of the current step,

    v_k = Σ_i ω_i (∂_θ 𝓑(u_k)(x_i))ᵀ ⟨∂_θ 𝓑(u_{k−1})(x_i), c⟩ − (β_{k−1} + h_k γ_k) ∂_θ L.

With the transport `Printed` it is the recursion of the paper instead, which carries the covector v and has no origin,

    v_k = μ (v_{k−1} + β_{k−1} ∂_θ L_{k−1}) − (μ β_k + h_k γ_k − β_k + β_{k−1}) ∂_θ L_k,      d_k = (M + λI)⁻¹ v_k.
"""

import abc
import math
from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from angd.flow.manifolds.interval import SobolevIntervalManifold
from angd.flow.manifolds.sobolev import SobolevManifold
from angd.method.jacobian import AbstractJacobian
from angd.method.metrics.base import AbstractMetric, Invert, LinearisedStep, StepContext, StepOutcome, one_measure
from angd.method.metrics.pointwise import derivatives
from angd.method.protocols import FieldProblem, require
from angd.method.samples import Samples
from angd.method.system import Gram, gram_like, row_weights
from angd.method.transport import Printed
from angd.tree import combine, scale, where, zeros_like


class SobolevState(eqx.Module):
    """M⁻¹∂L of the step before, for Hessian damping."""

    natural: PyTree


class PrintedState(eqx.Module):
    """The covector v and the gradient ∂_θ L of the step before, as `Printed` carries them."""

    covector: PyTree
    gradient: PyTree


class AbstractSobolev(AbstractMetric):
    """A metric of Sobolev type: a subclass says what 𝓑(u)(x) is, at one point.

    The problem has `field(params, x)` and `loss(params, samples)`. Where `samples` is a dictionary (each term of the
    loss has its own), those called `on` carry the metric.
    """

    on: eqx.AbstractVar[str]
    rows: ClassVar[bool] = False
    covectors: ClassVar[bool] = True

    @abc.abstractmethod
    def features(self, u: Callable[[Any], Array], x: Any) -> Float[Array, "m"]:
        """The vector 𝓑(u)(x) whose squared length the metric integrates."""

    def pointwise(self, problem: FieldProblem) -> Callable[..., Array]:
        """(θ, x) ↦ 𝓑(u_θ)(x)."""
        return lambda params, x: self.features(lambda y: problem.field(params, y), x)

    def measure(self, samples: Any) -> Samples:
        """The samples that carry the metric."""
        return one_measure(samples, self.on, self)

    def init(self, problem: object, params: PyTree, samples: Any) -> tuple[SobolevState, PrintedState]:
        zero = zeros_like(params)
        return SobolevState(zero), PrintedState(zero, zero)

    def origin(self, context: StepContext) -> PyTree:
        if isinstance(context.transport, Printed):
            return zeros_like(context.previous.d)
        move = scale(context.c.mu, context.previous.d)
        if not context.hessian:
            return move
        return combine((1.0, move), (context.beta_prev, context.previous.metric[0].natural))

    def linearise(self, context: StepContext) -> LinearisedStep:
        problem = require(context.problem, FieldProblem, self)
        samples = self.measure(context.samples)
        O = context.jacobian(self.pointwise(problem), samples.x)
        omega = row_weights(samples.omega, O)
        loss, gradient = jax.value_and_grad(problem.loss)(context.params, context.samples)
        if isinstance(context.transport, Printed):
            v = _printed(context, gradient)
        else:
            carried = self._carried(context, problem, samples, O, omega)
            v = combine((1.0, carried), (-(context.beta_prev + context.force_scale), gradient))
        system = Gram(O=O, v=v, omega=omega)
        return LinearisedStep(system, gram_like(system, scale(-context.force_scale, gradient)), gradient, loss)

    def _carried(
        self, context: StepContext, problem: FieldProblem, samples: Samples, O: AbstractJacobian, omega: Array
    ) -> PyTree:
        """The momentum of the step before, as a covector of this one."""
        old = context.carried(self.pointwise(problem), samples.x, self.origin(context))
        return O.rmatvec((omega * old.reshape(-1)).reshape(O.shape))

    def remember(
        self, context: StepContext, linear: LinearisedStep, outcome: StepOutcome, invert: Invert
    ) -> tuple[SobolevState, PrintedState]:
        natural, printed = context.previous.metric
        if isinstance(context.transport, Printed):
            covector = where(outcome.restarted, linear.at_rest.right_side(), linear.system.right_side())
            return natural, PrintedState(covector, linear.gradient)
        if context.hessian:
            natural = SobolevState(invert(gram_like(linear.system, linear.gradient)))
        return natural, printed


def _printed(context: StepContext, gradient: PyTree) -> PyTree:
    """The covector by the printed recursion; from rest it is the force alone."""
    c, before = context.c, context.previous.metric[1]
    carried = combine((c.mu, before.covector), (c.mu * c.beta_prev, before.gradient))
    v = combine((1.0, carried), (-(c.mu * c.beta + c.h * (c.gamma - c.beta_dot)), gradient))
    return where(context.previous.started, v, scale(-context.force_scale, gradient))


class L2(AbstractSobolev):
    """The L² metric ∫ σ², for problems with `field(params, x)` and `loss(params, samples)`.

    `L2Pointwise` is for problems that know the variation at a point.

    **Arguments:**

    - `on`: where samples are a dictionary, the name of those that carry the metric.

    **Example:** `angd.ANGD(angd.ARGFlow.momentum(0.8, 0.03), angd.L2(), angd.Normal(1e-3))`
    """

    on: str = eqx.field(static=True, default="interior")

    def features(self, u: Callable[[Any], Array], x: Any) -> Float[Array, "m"]:
        return jnp.ravel(u(x))


class PositiveHs(AbstractSobolev):
    """Σ_{i ≤ s} ∫ |∇ⁱσ|², with all ordered derivatives of each order (mixed ones counted with multiplicity)."""

    s: int = eqx.field(static=True)
    on: str = eqx.field(static=True, default="interior")

    def features(self, u: Callable[[Any], Array], x: Any) -> Float[Array, "m"]:
        return derivatives(u, x, self.s)


class GridHs(AbstractSobolev):
    """H^s of any integer order for fields sampled on a grid: the natural gradient of M = ∫ ∂_θu G ∂_θu.

    For s < 0 the rows G^½ ∂_θu hold the solution of an elliptic equation, so that a step without momentum descends;
    `Hs(s)` projects in L² instead, and may climb. The problem has `field(params, x)` and `loss(params, samples)`; the
    samples are all points of the grid, in the order of `manifold.grid()`.

    **Arguments:**

    - `manifold`: a `SobolevManifold` (periodic) or a `SobolevIntervalManifold` (natural boundary conditions); it holds
      s and the grid, and its weights are those of the metric.
    - `on`: where samples are a dictionary, the name of those on the grid.

    **Example:** `angd.GridHs(angd.SobolevManifold(-1, 32))`
    """

    manifold: SobolevManifold | SobolevIntervalManifold
    on: str = eqx.field(static=True)

    def __init__(self, manifold: SobolevManifold | SobolevIntervalManifold, on: str = "interior"):
        self.manifold, self.on = manifold, on

    def measure(self, samples: Any) -> Samples:
        """The whole grid as one sample, for G couples its points."""
        found, points = one_measure(samples, self.on, self), math.prod(self.manifold.shape)
        if found.omega.shape != (points,):
            raise ValueError(f"GridHs: the grid has {points} points, but there are {found.omega.shape[0]} samples.")
        return Samples(jax.tree.map(lambda leaf: leaf[None], found.x))

    def features(self, u: Callable[[Any], Array], x: Any) -> Float[Array, "m"]:
        values = jax.vmap(u)(x).reshape(*self.manifold.shape, -1)
        return jnp.ravel(jax.vmap(self.manifold.factor, in_axes=-1)(values))
