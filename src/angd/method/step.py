"""One pure step of accelerated natural gradient descent.

    flow (α, β, γ, h)  →  metric  →  sampled system  →  solver  →  controller  →  θ ← θ + h d

`ANGD` holds the choices; `init` and `step` are pure functions to be jitted by the caller.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PyTree

from angd.flow import schedules
from angd.flow.coefficients import ARGFlow, Coefficients
from angd.method.controllers.base import AbstractController, Constant, Proposal, Trial
from angd.method.jacobian import check_params
from angd.method.metrics.base import AbstractMetric, Draft, Memory, Setting, Taken, gram_like
from angd.method.samples import check_start
from angd.method.solvers.base import AbstractSolver
from angd.method.system import AbstractSystem
from angd.method.transport import JVP, AbstractTransport, Covector
from angd.results import RESULTS
from angd.tree import all_finite, combine, norm, scale, where, zeros_like


class State(eqx.Module):
    """What survives from step to step: the clock, the momentum, and what solver and controller carry."""

    k: Int[Array, ""]
    t: Float[Array, ""]
    beta_prev: Float[Array, ""]
    memory: Memory
    solver: PyTree
    controller: PyTree


class Info(eqx.Module):
    """What one step reports.

    **Attributes:** `loss` is L before the step (None where the metric does not know it); `norm` is ‖d‖ and `moved` the
    length of what was added to θ; `slope` is ⟨∂_θ L, d⟩; `damping` is λ; `ratio` is actual over predicted decrease (NaN
    where no controller asked); `accepted` and `restarted` say what became of the step; `result` says it in words.
    """

    loss: Float[Array, ""] | None
    norm: Float[Array, ""]
    moved: Float[Array, ""]
    slope: Float[Array, ""]
    damping: Float[Array, ""]
    ratio: Float[Array, ""]
    accepted: Bool[Array, ""]
    restarted: Bool[Array, ""]
    result: RESULTS

    @property
    def ok(self) -> Bool[Array, ""]:
        """Was the step taken?"""
        return self.accepted


class ANGD(eqx.Module):
    """Accelerated natural gradient descent.

    - `flow`: α, β, γ and the step h, `ARGFlow(...)`.
    - `metric`: L2, L2Pointwise, Hs, FisherRao, Wasserstein, Energy, GGN, or your own.
    - `solver`: Normal, Kernel, KFAC, Iterative, ProjectedMomentum, WithFallback.
    - `controller`: Constant, StepNorm, Restart, LineSearch, LevenbergMarquardt, TrustRegion, or a chain of them.
    - `transport`: how momentum crosses from one step to the next; JVP is the one that follows the flow.
    """

    flow: ARGFlow
    metric: AbstractMetric
    solver: AbstractSolver
    controller: AbstractController = Constant()
    transport: AbstractTransport = JVP()

    def __check_init__(self):
        kinds = {
            "flow": ARGFlow,
            "metric": AbstractMetric,
            "solver": AbstractSolver,
            "controller": AbstractController,
            "transport": AbstractTransport,
        }
        for name, kind in kinds.items():
            if not isinstance(getattr(self, name), kind):
                raise ValueError(f"ANGD: {name} must be an {kind.__name__}, got {getattr(self, name)!r}.")
        _check_pair(self.metric, self.solver, self.transport)

    def init(self, problem: Any, params: PyTree, samples: Any) -> State:
        """The state at rest."""
        check_params(params)
        params = jax.tree.map(jnp.asarray, params)
        check_start(problem, params, samples)
        if self.controller.compares_losses:
            eqx.filter_eval_shape(self.metric.loss, problem, params, samples)
        first = self.flow.step(0, self.flow.t0)
        memory = self._at_rest(problem, params, samples)
        system = eqx.filter_eval_shape(self._draft, problem, params, samples, memory, first).system
        return State(
            k=jnp.zeros((), int),
            t=jnp.asarray(self.flow.t0, float),
            beta_prev=first.beta,
            memory=memory,
            solver=self.solver.init(system),
            controller=self.controller.init(self._damping()),
        )

    def step(self, problem: Any, params: PyTree, samples: Any, state: State) -> tuple[PyTree, Any, State, Info]:
        """New parameters, the samples (moved, if the metric moves them), the new state and a report."""
        params = jax.tree.map(jnp.asarray, params)
        c = self.flow.step(state.k, state.t, state.beta_prev)
        setting = self._setting(problem, params, samples, state.memory, c)
        draft = self.metric.draft(setting)
        prepared, averages = self.solver.prepare(draft.system, state.solver, self.controller.many)
        proposal = self._proposal(setting, draft, prepared)
        damping = self.controller.damping(state.controller, self._damping())
        trial, control = self.controller.adjust(proposal, proposal.direction(damping), state.controller)
        finite = trial.ok & all_finite(trial.d) & jnp.isfinite(trial.scale)
        accepted = finite & trial.accepted
        moved = self._moved(setting, draft, prepared, trial)
        stay = (params, samples, where(finite, state.memory, self._at_rest(problem, params, samples)))
        params, samples, memory = where(accepted, moved, stay)
        after = State(
            k=state.k + 1,
            t=jnp.where(accepted, state.t + c.h, state.t),
            beta_prev=jnp.where(accepted, c.beta, state.beta_prev),
            memory=memory,
            solver=where(accepted, averages, state.solver),
            controller=control,
        )
        return params, samples, after, _report(draft, proposal, trial, accepted, finite)

    def _moved(self, setting: Setting, draft: Draft, prepared: Any, trial: Trial) -> tuple[PyTree, Any, Memory]:
        """Parameters, samples and memory after the step is taken."""
        taken = Taken(trial.scale * setting.c.h, trial.restarted)

        def invert(system: AbstractSystem) -> PyTree:
            return prepared.at(trial.damping).direction(system, zeros_like(setting.params)).d

        kept = self.metric.remember(setting, draft, taken, invert)
        memory = Memory(setting.params, trial.d, kept, jnp.ones((), bool))
        params = combine((1.0, setting.params), (taken.stride, trial.d))
        return params, self.metric.move(setting, draft, taken), memory

    def _at_rest(self, problem: Any, params: PyTree, samples: Any) -> Memory:
        return Memory.fresh(params, self.metric.start(problem, params, samples))

    def _draft(self, problem: Any, params: PyTree, samples: Any, memory: Memory, c: Coefficients) -> Draft:
        return self.metric.draft(self._setting(problem, params, samples, memory, c))

    def _setting(self, problem: Any, params: PyTree, samples: Any, memory: Memory, c: Coefficients) -> Setting:
        return Setting(problem, params, samples, c, memory, self.transport, self._may_damp(), self.solver.form)

    def _proposal(self, setting: Setting, draft: Draft, prepared: Any) -> Proposal:
        return Proposal(
            params=setting.params,
            h=setting.c.h,
            system=draft.system,
            at_rest=draft.at_rest,
            descent=gram_like(draft.system, scale(-setting.kick, draft.gradient)),
            centre=self.solver.centre(self.metric.centre(setting), setting.memory.d),
            gradient=draft.gradient,
            prepared=prepared,
            evaluate=lambda params: self.metric.loss(setting.problem, params, setting.samples),
            bend=lambda d: self.metric.second(setting.problem, setting.params, setting.samples, d),
            gauss_newton=self.metric.gauss_newton,
        )

    def _damping(self) -> Float[Array, ""]:
        return jnp.asarray(self.solver.damping, float)

    def _may_damp(self) -> bool:
        """Whether β can be non-zero; a constant 0 saves a second evaluation of the force."""
        beta = self.flow.beta
        if not isinstance(beta, schedules.Constant) or not schedules.is_concrete(beta.value):
            return True
        return float(beta.value) != 0


def _check_pair(metric: AbstractMetric, solver: AbstractSolver, transport: AbstractTransport) -> None:
    if solver.needs_rows and not metric.rows:
        raise ValueError(
            f"{type(solver).__name__} needs the right-hand side at the samples, which {type(metric).__name__} does not "
            "give: use Normal, which takes the N × N route by Woodbury's identity when there are more parameters."
        )
    if isinstance(transport, Covector) and not metric.covectors:
        raise ValueError(
            f"The Covector transport exists only for L2 and Hs with s ≥ 0: use JVP() with {type(metric).__name__}."
        )


def _report(draft: Draft, proposal: Proposal, trial: Trial, accepted: Array, finite: Array) -> Info:
    length = norm(trial.d)
    return Info(
        loss=draft.loss,
        norm=length,
        moved=jnp.where(accepted, norm(proposal.step(trial)), 0.0),
        slope=proposal.slope(trial.d),
        damping=trial.damping,
        ratio=trial.ratio,
        accepted=accepted,
        restarted=trial.restarted & accepted,
        result=_result(draft, trial, accepted, finite),
    )


def _result(draft: Draft, trial: Trial, accepted: Array, finite: Array) -> RESULTS:
    """The first thing that went wrong, or what the controller did."""
    sound = all_finite(draft.system.right_side()) & all_finite(draft.gradient)
    result = RESULTS.where(trial.converged, RESULTS.successful, RESULTS.not_converged)
    result = RESULTS.where(trial.restarted & accepted, RESULTS.restarted, result)
    result = RESULTS.where(accepted, result, RESULTS.rejected)
    result = RESULTS.where(finite, result, RESULTS.singular)
    result = RESULTS.where(sound, result, RESULTS.direction_not_finite)
    if draft.loss is None:
        return result
    return RESULTS.where(jnp.isfinite(draft.loss), result, RESULTS.loss_not_finite)
