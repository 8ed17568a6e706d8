"""Wasserstein-2: samples are particles that move with the flow, and the model follows them.

    V_k = μ V_{k−1} − β_{k−1} (∇f_k − ∇f_{k−1} along the particle) − hγ ∇f_k(x_k),
    v_k = Σ_i ω_i ∂_θ ⟨∇_x log ρ_θ(x_i), V_i⟩,        x̃ = x_k + h V_k,

∂_θ meeting log ρ_θ only, neither x, nor V, nor the law of the samples. If a Markov chain moves the walkers between two
steps, the velocities are fitted to a field and read where the walkers are now. The model is projected in L²(ρ) of
∂_t log ρ, another metric than the flow's: the direction need not descend, pair it with `Restart()`.
"""

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PyTree

from angd.method.jacobian import AbstractJacobian
from angd.method.metrics.base import (
    AbstractMetric,
    Invert,
    LinearisedStep,
    StepContext,
    StepOutcome,
    known_loss,
    one_batch,
)
from angd.method.metrics.fisher_rao import AbstractDensityMetric, DensityStep
from angd.method.metrics.pointwise import forces, pull
from angd.method.metrics.refit import AbstractRefit, AffineRefit
from angd.method.protocols import DensityProblem, require
from angd.method.samples import Samples
from angd.method.system import Gram, Rows, gram_like, row_weights
from angd.tree import combine, scale, where, zeros_like


class WassersteinState(eqx.Module):
    """Where the particles went, with which velocity, and the force they felt before: x̃, V, ∇f."""

    x: PyTree
    V: PyTree
    F: PyTree


class TransportStep(LinearisedStep):
    """With the `samples` fit for the step, their velocities, with (`V`) and without momentum (`V_rest`), and forces."""

    samples: Samples = eqx.field(kw_only=True)
    V: PyTree = eqx.field(kw_only=True)
    V_rest: PyTree = eqx.field(kw_only=True)
    F: PyTree = eqx.field(kw_only=True)

    @property
    def force(self) -> PyTree:
        return self.V_rest


class Wasserstein(AbstractMetric):
    """The metric of optimal transport: samples are particles that move with the flow, the model follows them.

    For problems with `log_density(params, x)` and `variation(params, x)`; `step` returns the moved samples. Without
    momentum and with `KFAC` it is in essence WQMC (Neklyudov et al. 2023). Pair it with `Restart`.

    **Arguments:**

    - `refit`: how velocities are carried over when other samples come back, an `AbstractRefit`; None leaves them on
      their particles, for flows without a Markov chain.
    - `clip`: bound of each coordinate of ∇f; 1 suits atoms and molecules, None is no bound.
    - `reset`: velocities with a coordinate beyond this lose that coordinate; None keeps all.
    """

    refit: AbstractRefit | None = AffineRefit()
    clip: float | None = None
    reset: float | None = None
    rows: ClassVar[bool] = False

    def __check_init__(self):
        for name in ("clip", "reset"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"Wasserstein: {name} must be positive (or None), got {value}.")

    def init(self, problem: object, params: PyTree, samples: Any) -> WassersteinState:
        x = one_batch(samples, self).x
        return WassersteinState(x, zeros_like(x), zeros_like(x))

    def momentum(self, context: StepContext) -> PyTree:
        """None: the momentum of the flow is in the velocities, and so in v."""
        return zeros_like(context.previous.d)

    def linearise(self, context: StepContext) -> TransportStep:
        problem = require(context.problem, DensityProblem, self)
        check_points(one_batch(context.samples, self).x, self)
        context, f, _ = context.vetted(problem)
        F = field_force(problem, context.params, context.samples.x, self.clip)
        rest = scale(-context.force_scale, F)
        V = self._limited(combine((1.0, rest), (1.0, self._carried(context, problem, F))))
        O, omega = score(context, problem)
        system = Gram(O=O, v=transported(context, problem, V), omega=omega, centred=True)
        at_rest = gram_like(system, transported(context, problem, rest))
        gradient, loss = slope_and_loss(context, system, f)
        return TransportStep(system, at_rest, gradient, loss, samples=context.samples, V=V, V_rest=rest, F=F)

    def remember(
        self, context: StepContext, linear: TransportStep, outcome: StepOutcome, invert: Invert
    ) -> WassersteinState:
        return WassersteinState(self.move(context, linear, outcome).x, _taken(linear, outcome), linear.F)

    def move(self, context: StepContext, linear: TransportStep, outcome: StepOutcome) -> Samples:
        V = _taken(linear, outcome)
        before = linear.samples.weighed_as(context.samples)
        return eqx.tree_at(lambda samples: samples.x, before, combine((1.0, before.x), (outcome.stride, V)))

    def _carried(self, context: StepContext, problem: DensityProblem, F: PyTree) -> PyTree:
        """μV − βΔ of the old particles, at the present ones."""
        kept: WassersteinState = context.previous.metric
        old = scale(context.c.mu, kept.V)
        if context.hessian:
            here = F if self.refit is None else field_force(problem, context.params, kept.x, self.clip)
            old = combine((1.0, old), (-context.beta_prev, here), (context.beta_prev, kept.F))
        return old if self.refit is None else self._refitted(context, self.refit, kept.x, old)

    def _refitted(self, context: StepContext, refit: AbstractRefit, x_old: PyTree, V: PyTree) -> PyTree:
        """V where the walkers are now; where they were left, V itself."""
        samples = context.samples
        x, x_old, V_old = (_matrix(tree) for tree in (samples.x, x_old, V))
        new = lax.cond(jnp.all(x == x_old), lambda: V_old, lambda: refit(x_old, V_old, samples.omega, x))
        return jax.vmap(ravel_pytree(jax.tree.map(lambda leaf: leaf[0], samples.x))[1])(new)

    def _limited(self, V: PyTree) -> PyTree:
        reset = self.reset
        return V if reset is None else jax.tree.map(lambda leaf: jnp.where(jnp.abs(leaf) > reset, 0.0, leaf), V)


class ParametricWasserstein(AbstractDensityMetric):
    """Wasserstein-2 with the momentum kept in the parameters: no velocities, so any Markov chain will do.

    The force is transported as in `Wasserstein`; momentum is that of the scores (with `CurrentJVP`, of
    coordinates): cheap and not the flow's. β must be 0.

    **Arguments:**

    - `clip`: bound of each coordinate of ∇f; 1 suits atoms and molecules, None is no bound.
    """

    clip: float | None = None
    rows: ClassVar[bool] = False

    def linearise(self, context: StepContext) -> DensityStep:
        if context.hessian:
            raise ValueError(
                "ParametricWasserstein has no velocities for beta to act on: take beta=0 or Wasserstein()."
            )
        problem = require(context.problem, DensityProblem, self)
        check_points(one_batch(context.samples, self).x, self)
        context, f, _ = context.vetted(problem)
        F = field_force(problem, context.params, context.samples.x, self.clip)
        O, omega = score(context, problem)
        rest = transported(context, problem, scale(-context.force_scale, F))
        old = context.carried(problem.log_density, context.samples.x, context.previous.d)
        carried = Rows(O=O, b=context.c.mu * old, omega=omega, centred=True).right_side()
        system = Gram(O=O, v=combine((1.0, rest), (1.0, carried)), omega=omega, centred=True)
        gradient, loss = slope_and_loss(context, system, f)
        return DensityStep(system, gram_like(system, rest), gradient, loss, samples=context.samples)


def _taken(linear: TransportStep, outcome: StepOutcome) -> PyTree:
    """The velocities of the step that was taken: none where θ went downhill, which no velocity of particles is."""
    V = where(outcome.restarted, linear.V_rest, linear.V)
    return where(outcome.downhill, zeros_like(V), V)


def score(context: StepContext, problem: DensityProblem) -> tuple[AbstractJacobian, Array]:
    """∂_θ log ρ at the samples, with a weight per row."""
    O = context.jacobian(problem.log_density, context.samples.x)
    return O, row_weights(context.samples.omega, O)


def field_force(problem: DensityProblem, params: PyTree, xs: PyTree, clip: float | None) -> PyTree:
    """∇_x f at the points, each coordinate within ±clip."""
    F = forces(problem, params, xs)
    return F if clip is None else jax.tree.map(lambda leaf: jnp.clip(leaf, -clip, clip), F)


def transported(context: StepContext, problem: DensityProblem, V: PyTree) -> PyTree:
    """Σ ω ∂_θ ⟨∇_x log ρ_θ(x), V⟩ with x and V fixed."""

    def along(params: PyTree, sample: tuple[PyTree, PyTree]) -> Float[Array, ""]:
        x, V = sample
        return jax.jvp(lambda y: problem.log_density(params, y), (x,), (V,))[1]

    return pull(along, context.params, (context.samples.x, V), context.samples.omega)


def slope_and_loss(context: StepContext, system: Gram, f: Float[Array, "n"]) -> tuple[PyTree, Float[Array, ""] | None]:
    """∂_θ L = E[(f − E f) ∂_θ log ρ], and L where it is known."""
    gradient = Rows(O=system.O, b=context.samples.centre(f), omega=system.omega, centred=True).right_side()
    return gradient, known_loss(context, f)


def check_points(x: PyTree, metric: AbstractMetric) -> None:
    """Only points of a continuous space can be moved."""
    if not all(jnp.issubdtype(jnp.result_type(leaf), jnp.floating) for leaf in jax.tree.leaves(x)):
        raise ValueError(f"{type(metric).__name__} moves samples, so their coordinates must be floating-point numbers.")


def _matrix(tree: PyTree) -> Float[Array, "n D"]:
    return jax.vmap(lambda leaf: ravel_pytree(leaf)[0])(tree)
