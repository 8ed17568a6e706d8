"""What a metric does: with π the momentum in its own representation and f the force,

    π_k = μ_k T π_{k−1} − h_k R_k − β_{k−1} (f_k − T f_{k−1}) − h_k γ_k f_k,      π_0 = −h_0 γ_0 f_0,

T being the transport. The metric returns this as a sampled system; a solver finds the direction d from it.

Where the solver is an approximate inverse, the system holds the force with its β-terms only, and the momentum is handed
over as a direction, `momentum(context)`: see `angd.method.solvers.kfac`.
"""

import abc
from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Inexact, PyTree

from angd.flow.coefficients import Coefficients
from angd.method.jacobian import AbstractJacobian, jacobian
from angd.method.metrics.pointwise import variations
from angd.method.protocols import AmplitudeProblem, DensityProblem, GivesLossOf, LossProblem
from angd.method.samples import Samples
from angd.method.system import AbstractSystem
from angd.method.transport import AbstractTransport
from angd.tree import scale, zeros_like

Invert = Callable[[AbstractSystem], PyTree]


class Previous(eqx.Module):
    """What one step leaves to the next.

    **Attributes:**

    - `params`: θ of that step.
    - `d`: its direction.
    - `metric`: what the metric wanted to keep.
    - `started`: false before the first step and after a refused one.
    """

    params: PyTree
    d: PyTree
    metric: PyTree
    started: Bool[Array, ""]

    @classmethod
    def at_rest(cls, params: PyTree, metric: PyTree) -> "Previous":
        """No momentum."""
        return cls(params, zeros_like(params), metric, jnp.zeros((), bool))


class StepContext(eqx.Module):
    """Everything a metric may look at in one step.

    **Attributes:**

    - `problem`, `params`, `samples`: as they were given to `step`.
    - `c`: coefficients of the flow in this step.
    - `previous`: what the step before left.
    - `transport`: how momentum crosses from it.
    - `hessian`: may β be non-zero? Known before compilation.
    - `approximate`: is the solver an approximate inverse? Then momentum stays outside the system.
    - `form`: the Jacobian that the solver needs.
    """

    problem: Any
    params: PyTree
    samples: Any
    c: Coefficients
    previous: Previous
    transport: AbstractTransport
    hessian: bool = eqx.field(static=True)
    approximate: bool = eqx.field(static=True, default=False)
    form: type[AbstractJacobian] | None = eqx.field(static=True, default=None)

    @property
    def beta_prev(self) -> Array:
        """β_{k−1}, or 0 at the first step, where f_{k−1} counts as f_k."""
        return jnp.where(self.previous.started, self.c.beta_prev, 0.0)

    @property
    def force_scale(self) -> Array:
        """hγ, what the force is multiplied by in a step from rest."""
        return self.c.h * self.c.gamma

    def jacobian(self, f: Callable[..., Any], xs: PyTree) -> AbstractJacobian:
        """∂_θ f at the present parameters, in the form that the solver needs."""
        return jacobian(f, self.params, xs, form=self.form)

    def vetted(
        self, problem: DensityProblem | AmplitudeProblem, older: bool = False, phase: bool = False
    ) -> tuple["StepContext", Inexact[Array, "n"], Inexact[Array, "n"]]:
        """With samples fit for a step, δL/δρ there, and if wanted that of the parameters of the step before."""
        before = self.previous.params if older else None
        samples, f, f_old = variations(problem, self.params, self.samples, before, phase)
        return eqx.tree_at(lambda context: context.samples, self, samples), f, f_old

    def carried(self, f: Callable[..., Any], xs: PyTree, d: PyTree) -> Float[Array, "n *m"]:
        """The momentum function ⟨∂_θ f, d⟩ of the step before, at new points; 0 where the solver is approximate."""
        if self.approximate:
            shape = jax.eval_shape(jax.vmap(f, (None, 0)), self.params, xs)
            return jnp.zeros(shape.shape, shape.dtype)
        return self.transport.push(f, self.params, self.previous.params, xs, d)


class LinearisedStep(eqx.Module):
    """A step before it is taken.

    **Attributes:**

    - `system`: what the solver solves.
    - `at_rest`: the same G with the force alone, for a step without momentum.
    - `gradient`: ∂_θ L.
    - `loss`: L where the metric knows it.
    """

    system: AbstractSystem
    at_rest: AbstractSystem
    gradient: PyTree
    loss: Float[Array, ""] | None = None

    @property
    def force(self) -> PyTree:
        """What drives a step from rest; where it is not zero, neither should the direction be."""
        return self.at_rest.given


class StepOutcome(eqx.Module):
    """How a step was taken, for the metric to remember.

    **Attributes:**

    - `stride`: θ moved by `stride` d.
    - `restarted`: without momentum.
    - `downhill`: along the natural gradient of the projection, the last resort of `Restart`.
    """

    stride: Array
    restarted: Bool[Array, ""]
    downhill: Bool[Array, ""]


class AbstractMetric(eqx.Module):
    """A metric: a subclass turns the problem at the samples into a sampled system, `linearise(context)`.

    **Attributes:**

    - `rows`: is the right-hand side known at the samples?
    - `gauss_newton`: is G the curvature of the loss, so that a quadratic model predicts its decrease?
    - `covectors`: can the `Printed` recursion be followed?
    """

    rows: ClassVar[bool] = True
    gauss_newton: ClassVar[bool] = False
    covectors: ClassVar[bool] = False

    @abc.abstractmethod
    def linearise(self, context: StepContext) -> Any:
        """The sampled system of this step, a `LinearisedStep`."""

    def origin(self, context: StepContext) -> PyTree:
        """What the damping pulls the direction towards, so that momentum survives it."""
        return scale(context.c.mu, context.previous.d)

    def momentum(self, context: StepContext) -> PyTree:
        """The direction a whose image G a is the momentum in the system: an approximate solver takes it as it is."""
        return self.origin(context)

    def init(self, problem: object, params: PyTree, samples: Any) -> PyTree:
        """What the metric keeps, before the first step."""
        return None

    def remember(self, context: StepContext, linear: Any, outcome: StepOutcome, invert: Invert) -> PyTree:
        """What the metric keeps for the next step; `invert` finds the direction of another system with the same G."""
        return context.previous.metric

    def move(self, context: StepContext, linear: Any, outcome: StepOutcome) -> Any:
        """The samples, after they moved with the flow."""
        return context.samples

    def residual_curvature(self, problem: object, params: PyTree, samples: Any, d: PyTree) -> Float[Array, "N"]:
        """∂²r(d, d) at every row, where the metric has residuals: geodesic corrections ask for it."""
        raise ValueError(f"A geodesic correction needs residuals, which {type(self).__name__} has not: use Energy.")

    def loss(self, problem: object, params: PyTree, samples: Any) -> Float[Array, ""]:
        """L at these parameters and samples, where it can be had: controllers that compare losses ask for it."""
        if not isinstance(problem, LossProblem):
            raise ValueError(
                f"This controller compares losses, but {type(problem).__name__} has no loss(params, samples) and "
                f"{type(self).__name__} cannot compute one: use Constant, StepNorm or Restart, or add the method."
            )
        return problem.loss(params, samples)


def one_measure(samples: Any, on: str, metric: AbstractMetric) -> Samples:
    """The samples that carry the metric: all of them, or those called `on` where each term of the loss has its own."""
    if isinstance(samples, Samples):
        return samples
    if not isinstance(samples, dict) or on not in samples:
        names = ", ".join(sorted(samples)) if isinstance(samples, dict) else type(samples).__name__
        raise ValueError(f"{type(metric).__name__}(on={on!r}) finds no such samples; there are: {names}.")
    return samples[on]


def one_batch(samples: Any, metric: AbstractMetric) -> Samples:
    """The samples of a metric that takes no dictionary."""
    if isinstance(samples, Samples):
        return samples
    names = ", ".join(map(repr, sorted(samples))) if isinstance(samples, dict) else type(samples).__name__
    raise ValueError(f"{type(metric).__name__} takes one batch of Samples, not one for each term, got {names}.")


def known_loss(context: StepContext, f: Inexact[Array, "n"] | None = None) -> Float[Array, ""] | None:
    """L, if the problem can tell: by `loss_of(variations, samples)` from what is known already, or by `loss`."""
    problem = context.problem
    if f is not None and isinstance(problem, GivesLossOf):
        return problem.loss_of(f, context.samples)
    return problem.loss(context.params, context.samples) if isinstance(problem, LossProblem) else None
