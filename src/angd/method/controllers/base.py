"""What may happen to a step between its direction and the parameters.

A controller receives a `Trial` (the direction as solved) and may change it with the help of a `Proposal`, which finds
directions for other dampings or from rest and compares losses. Controllers act in turn: each sees what the one before
it left.
"""

import abc
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree

from angd.method.solvers.base import AbstractSolver, Prepared, Solution
from angd.method.system import AbstractSystem, Rows
from angd.tree import combine, dot, norm, scale, where, zeros_like

ULPS = 4  # units in the last place of a loss that rounding may change


class Trial(eqx.Module):
    """A step as it stands: θ would move by `scale` h d.

    **Attributes:**

    - `d`: the direction, in the structure of the parameters.
    - `ok`: it is finite.
    - `converged`: it meets the solver's tolerance.
    - `damping`: its λ.
    - `scale`: what the controllers multiply the step by, 1 at first.
    - `restarted`: there was momentum, and it was dropped.
    - `downhill`: it follows −∂_θ L in the projection's metric.
    - `accepted`: it will be taken.
    - `ratio`: actual over predicted decrease of the loss, NaN where nobody asked.
    """

    d: PyTree
    ok: Bool[Array, ""]
    converged: Bool[Array, ""]
    damping: Float[Array, ""]
    scale: Float[Array, ""]
    restarted: Bool[Array, ""]
    downhill: Bool[Array, ""]
    accepted: Bool[Array, ""]
    ratio: Float[Array, ""]

    @classmethod
    def of(
        cls, solution: Solution, damping: Float[Array, ""], restarted: Any = False, downhill: Any = False
    ) -> "Trial":
        one = jnp.ones((), damping.dtype)
        return cls(
            d=solution.d,
            ok=solution.ok,
            converged=solution.converged,
            damping=damping,
            scale=one,
            restarted=jnp.full((), restarted),
            downhill=jnp.full((), downhill),
            accepted=jnp.ones((), bool),
            ratio=jnp.nan * one,
        )


class Proposal(eqx.Module):
    """What a controller may ask about the present step: directions for other dampings or from rest, losses.

    **Attributes:**

    - `params`: θ before the step.
    - `h`: step size.
    - `system`, `at_rest`: the sampled system with and without momentum.
    - `descent`: the same G with −hγ ∂_θ L on the right.
    - `origin`: what damping pulls towards, less `momentum`.
    - `momentum`: the direction that an approximate solver takes as it is; 0 for exact ones, whose
      system holds the momentum.
    - `gradient`: ∂_θ L.
    - `solver`, `prepared`: the solver, and what its `prepare` returned.
    - `evaluate`: L at other parameters and the samples of the step.
    - `curvature`: ∂²r(d, d) at every row, shape (N,).
    - `gauss_newton`: is G the curvature of the loss, so that a quadratic model predicts its decrease?
    """

    params: PyTree
    h: Float[Array, ""]
    system: AbstractSystem
    at_rest: AbstractSystem
    descent: AbstractSystem
    origin: PyTree
    momentum: PyTree
    gradient: PyTree
    solver: AbstractSolver
    prepared: Prepared
    evaluate: Callable[[PyTree], Float[Array, ""]]
    curvature: Callable[[PyTree], Float[Array, "N"]]
    gauss_newton: bool = eqx.field(static=True)

    def direction(self, damping: Float[Array, ""]) -> Trial:
        """The direction with momentum."""
        return Trial.of(self._solved(self.system, damping, self.origin).plus(self.momentum), damping)

    def from_rest(self, damping: Float[Array, ""]) -> Trial:
        """The direction of the force alone."""
        return Trial.of(self._solved(self.at_rest, damping), damping, self.moving())

    def downhill(self, damping: Float[Array, ""]) -> Trial:
        """−hγ (G + λI)⁻¹ ∂_θ L: the natural gradient of the metric in which the model is projected; it descends."""
        return Trial.of(self._solved(self.descent, damping), damping, restarted=True, downhill=True)

    def _solved(self, system: AbstractSystem, damping: Float[Array, ""], origin: PyTree = None) -> Solution:
        c = zeros_like(self.params) if origin is None else origin
        return self.solver.solve(self.prepared, damping, system, c)

    def moving(self) -> Bool[Array, ""]:
        """Is there momentum that a step from rest would drop?"""
        nothing = zeros_like(self.origin)
        pairs = [(self.origin, nothing), (self.momentum, nothing), (self.system.given, self.at_rest.given)]
        same = [jnp.array_equal(a, b) for pair in pairs for a, b in zip(*map(jax.tree.leaves, pair), strict=True)]
        return ~jnp.all(jnp.stack(same))

    def slope(self, d: PyTree) -> Float[Array, ""]:
        """⟨∂_θ L, d⟩: negative where d descends."""
        return dot(self.gradient, d)

    def step(self, trial: Trial) -> PyTree:
        """What θ would move by."""
        return scale(trial.scale * self.h, trial.d)

    def present(self) -> Float[Array, ""]:
        """L before the step."""
        return self.evaluate(self.params)

    def loss(self, step: PyTree) -> Float[Array, ""]:
        """L after a step."""
        return self.evaluate(combine((1.0, self.params), (1.0, step)))

    def predicted(self, step: PyTree) -> Float[Array, ""]:
        """The decrease that the model of the loss promises: quadratic where G is its curvature, linear elsewhere."""
        linear = -dot(self.gradient, step)
        if not self.gauss_newton:
            return linear
        return linear - self.system.square_length(step) / 2

    def geodesic(self, trial: Trial, limit: float) -> Trial:
        """The trial with its geodesic correction, d + ½ h a with (G + λI) a = −OᵀW ∂²r(d, d), if ‖h a‖ ≤ limit ‖d‖."""
        force = Rows(O=self.system.O, b=-self.curvature(trial.d), omega=self.system.omega)
        a = self._solved(force, trial.damping).d
        small = norm(a) * self.h * trial.scale <= limit * norm(trial.d)
        half = jnp.where(small, trial.scale * self.h / 2, 0.0)
        return eqx.tree_at(lambda t: t.d, trial, combine((1.0, trial.d), (half, where(small, a, zeros_like(a)))))

    def gain(self, step: PyTree, before: Float[Array, ""], model: PyTree | None = None) -> Float[Array, ""]:
        """Actual over predicted decrease; −∞ where the loss is not finite or no decrease was predicted.

        The prediction is that for `model`, where it is another step than the one taken. What rounding can do to the
        loss is no decrease.
        """
        predicted = self.predicted(step if model is None else model)
        decrease = before - self.loss(step)
        decrease = jnp.where(jnp.abs(decrease) <= resolution(before), 0.0, decrease)
        ratio = decrease / jnp.where(predicted > 0, predicted, 1.0)
        return jnp.where(jnp.isfinite(ratio) & (predicted > 0), ratio, -jnp.inf)


def resolution(loss: Float[Array, ""]) -> Float[Array, ""]:
    """What a loss is known to."""
    return ULPS * jnp.finfo(loss.dtype).eps * jnp.abs(loss)


class AbstractController(eqx.Module):
    """Decides about a step: a subclass defines `adjust`, and `init` if it carries something on."""

    @property
    def many(self) -> bool:
        """Will it ask for many dampings in one step?"""
        return False

    @property
    def compares_losses(self) -> bool:
        """Will it ask for the loss at other parameters?"""
        return False

    def init(self, damping: Float[Array, ""]) -> PyTree:
        """What the controller carries from step to step; `damping` is the solver's."""
        return None

    def damping(self, state: PyTree, damping: Float[Array, ""]) -> Float[Array, ""]:
        """λ to solve this step with."""
        return damping

    @abc.abstractmethod
    def adjust(self, proposal: Proposal, trial: Trial, state: PyTree) -> tuple[Trial, PyTree]:
        """The trial after this controller, and what it carries on."""


class Constant(AbstractController):
    """Take every finite step as it is: the default.

    **Example:** `angd.ANGD(flow, angd.L2(), angd.Normal(1e-3), angd.Constant())`
    """

    def adjust(self, proposal: Proposal, trial: Trial, state: PyTree) -> tuple[Trial, PyTree]:
        return trial, state


class InTurn(AbstractController):
    """One controller after the other."""

    controllers: tuple[AbstractController, ...]

    @property
    def many(self) -> bool:
        return any(controller.many for controller in self.controllers)

    @property
    def compares_losses(self) -> bool:
        return any(controller.compares_losses for controller in self.controllers)

    def init(self, damping: Float[Array, ""]) -> PyTree:
        return tuple(controller.init(damping) for controller in self.controllers)

    def damping(self, state: PyTree, damping: Float[Array, ""]) -> Float[Array, ""]:
        for controller, own in zip(self.controllers, state, strict=True):
            damping = controller.damping(own, damping)
        return damping

    def adjust(self, proposal: Proposal, trial: Trial, state: PyTree) -> tuple[Trial, PyTree]:
        after = []
        for controller, own in zip(self.controllers, state, strict=True):
            trial, own = controller.adjust(proposal, trial, own)
            after.append(own)
        return trial, tuple(after)


def in_turn(controllers: Any) -> AbstractController:
    """Controllers one after the other.

    **Arguments:**

    - `controllers`: a list; each sees what the one before it left. Searches come before `StepNorm`.

    **Returns:** one `AbstractController`.

    **Example:** `angd.in_turn([angd.Restart(), angd.StepNorm(1e-3)])`
    """
    controllers = tuple(controllers)
    strangers = [c for c in controllers if not isinstance(c, AbstractController)]
    if strangers or not controllers:
        raise ValueError(f"in_turn takes a list of controllers, got {strangers or 'an empty one'}.")
    return InTurn(controllers)
