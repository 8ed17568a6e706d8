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
from angd.method.memory import limited
from angd.method.metrics.base import AbstractMetric, LinearisedStep, Previous, StepContext, StepOutcome
from angd.method.samples import check_samples, check_start
from angd.method.show import described
from angd.method.solvers.base import AbstractSolver, Prepared
from angd.method.system import AbstractSystem, gram_like
from angd.method.transport import JVP, AbstractTransport, Printed
from angd.results import RESULTS
from angd.sizes import in_bytes
from angd.tree import add, all_finite, any_nonzero, combine, copied, norm, scale, where, zeros_like


class State(eqx.Module):
    """What survives from step to step; `ANGD.init` makes the first one.

    **Attributes:**

    - `k`: number of the step, an integer.
    - `t`: time t₀ + Σ h.
    - `beta_prev`: β of the step before.
    - `previous`: parameters and direction of the step before, and what the metric keeps.
    - `solver`, `controller`: their own states.
    """

    k: Int[Array, ""]
    t: Float[Array, ""]
    beta_prev: Float[Array, ""]
    previous: Previous
    solver: PyTree
    controller: PyTree


class Info(eqx.Module):
    """What one step reports; every entry is a scalar array.

    **Attributes:**

    - `loss`: L before the step, NaN where neither metric nor problem knows it.
    - `norm`: ‖d‖.
    - `moved`: the length of what was added to θ.
    - `slope`: ⟨∂_θ L, d⟩, negative where d descends.
    - `damping`: λ.
    - `ratio`: actual over predicted decrease, NaN where no controller asked.
    - `smallest`: the smallest eigenvalue of the matrix that was factorised, NaN where it is not known.
    - `accepted`, `restarted`: what became of the step.
    - `result`: the same in words, `angd.RESULTS[info.result]`.
    """

    loss: Float[Array, ""]
    norm: Float[Array, ""]
    moved: Float[Array, ""]
    slope: Float[Array, ""]
    damping: Float[Array, ""]
    ratio: Float[Array, ""]
    smallest: Float[Array, ""]
    accepted: Bool[Array, ""]
    restarted: Bool[Array, ""]
    result: RESULTS

    @property
    def ok(self) -> Bool[Array, ""]:
        """Was the step taken?"""
        return self.accepted


class ANGD(eqx.Module):
    """Accelerated natural gradient descent: θ ← θ + h d, with d the projection of the flow on the parameters.

    `init` and `step` are pure functions; jit the step, `eqx.filter_jit(opt.step)`.

    **Arguments:**

    - `flow`: α, β, γ and the step h, an `ARGFlow`; `ARGFlow.momentum(0.8, 0.1)` is a good first try.
    - `metric`: L2, L2Pointwise, Hs, FisherRao, Wasserstein, Energy, GGN, or your own.
    - `solver`: Normal, Kernel, KFAC, Iterative, ProjectedMomentum, Scaled, WithFallback.
    - `controller`: Constant, StepNorm, Restart, LineSearch, LevenbergMarquardt, TrustRegion, or several
      `in_turn`.
    - `transport`: how momentum crosses from one step to the next; JVP is the one that follows the flow.
    - `memory`: what a step may take, in bytes or as "8 GiB"; None is three quarters of the computer's,
      or nine tenths of an accelerator's. It decides how the Jacobian is held, how many samples are
      worked on at a time, and whether a matrix is factorised in place.

    **Example:** `angd.ANGD(angd.ARGFlow.momentum(0.5, 0.5), angd.Energy(), angd.Normal(1e-4))`
    """

    flow: ARGFlow
    metric: AbstractMetric
    solver: AbstractSolver
    controller: AbstractController = Constant()
    transport: AbstractTransport = JVP()
    memory: int | str | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        if self.memory is not None:
            in_bytes(self.memory, "ANGD: memory")
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

    def init(self, problem: object, params: PyTree, samples: Any) -> State:
        """The state at rest, after everything that can be checked has been.

        **Arguments:**

        - `problem`: an object with the methods that the metric asks for (`angd.method.protocols`).
        - `params`: a pytree of real floating-point arrays.
        - `samples`: `Samples`, or a dictionary of them, one for each term of the loss.

        **Returns:** a `State`.
        """
        check_params(params)
        check_samples(samples, "ANGD")
        params = jax.tree.map(jnp.asarray, params)
        check_start(problem, params, samples)
        with limited(self.memory):
            return self._first(problem, params, samples)

    def _first(self, problem: object, params: PyTree, samples: Any) -> State:
        if self.controller.compares_losses:
            eqx.filter_eval_shape(self.metric.loss, problem, params, samples)
        first = self.flow.step(0, self.flow.t0)
        previous = copied(self._at_rest(problem, params, samples))
        context = self._context(problem, params, samples, previous, first)
        system = eqx.filter_eval_shape(self.metric.linearise, context).system
        return State(
            k=jnp.zeros((), int),
            t=jnp.asarray(self.flow.t0, float),
            beta_prev=first.beta,
            previous=previous,
            solver=self.solver.init(system),
            controller=self.controller.init(self._damping()),
        )

    def step(self, problem: object, params: PyTree, samples: Any, state: State) -> tuple[PyTree, Any, State, Info]:
        """One step, pure: `eqx.filter_jit(opt.step)`.

        **Arguments:**

        - `problem`: as for `init`.
        - `params`: the present parameters.
        - `samples`: the batch of this step; it may be another one in every step, of the same shapes.
        - `state`: what `init`, or the step before, returned.

        **Returns:** new parameters, the samples (moved, if the metric moves them), the new `State` and
        an `Info`.
        """
        check_samples(samples, "ANGD")
        params = jax.tree.map(jnp.asarray, params)
        self._check_state(problem, params, samples, state)
        with limited(self.memory):
            return self._step(problem, params, samples, state)

    def _step(self, problem: object, params: PyTree, samples: Any, state: State) -> tuple[PyTree, Any, State, Info]:
        c = self.flow.step(state.k, state.t, state.beta_prev)
        context = self._context(problem, params, samples, state.previous, c)
        linear = self.metric.linearise(context)
        damping = self.controller.damping(state.controller, self._damping())
        prepared, solver_state = self.solver.prepare(linear.system, state.solver, damping, self.controller.many)
        proposal = self._proposal(context, linear, prepared)
        trial, controller_state = self.controller.adjust(proposal, proposal.direction(damping), state.controller)
        moved = self._moved(context, linear, prepared, trial)
        verdict = _Verdict.of(c, linear, trial, proposal.step(trial), moved)
        accepted, finite = verdict.accepted, verdict.finite
        stay = (params, samples, where(finite, state.previous, self._at_rest(problem, params, samples)))
        params, samples, previous = where(accepted, moved, stay)
        after = State(
            k=state.k + 1,
            t=jnp.where(accepted, state.t + c.h, state.t),
            beta_prev=jnp.where(accepted, c.beta, state.beta_prev),
            previous=previous,
            solver=where(accepted, solver_state, state.solver),
            controller=controller_state,
        )
        return params, samples, after, _report(linear, proposal, trial, verdict)

    def __str__(self) -> str:
        return described(self)

    __repr__ = __str__

    def _moved(
        self, context: StepContext, linear: LinearisedStep, prepared: Prepared, trial: Trial
    ) -> tuple[PyTree, Any, Previous]:
        """Parameters, samples and what the next step needs to know, after the step is taken."""
        outcome = StepOutcome(trial.scale * context.c.h, trial.restarted, trial.downhill)

        def invert(system: AbstractSystem) -> PyTree:
            return self.solver.solve(prepared, trial.damping, system, zeros_like(context.params)).d

        kept = self.metric.remember(context, linear, outcome, invert)
        previous = Previous(context.params, trial.d, kept, jnp.ones((), bool))
        params = combine((1.0, context.params), (outcome.stride, trial.d))
        return params, self.metric.move(context, linear, outcome), previous

    def _check_state(self, problem: object, params: PyTree, samples: Any, state: State) -> None:
        if not isinstance(state, State):
            check_state(state, None, "ANGD")
        expected = self._at_rest(problem, params, samples), self.controller.init(self._damping())
        check_state((state.previous, state.controller), expected, "ANGD")
        _check_kept(state.previous, expected[0])

    def _at_rest(self, problem: object, params: PyTree, samples: Any) -> Previous:
        return Previous.at_rest(params, self.metric.init(problem, params, samples))

    def _context(
        self, problem: object, params: PyTree, samples: Any, previous: Previous, c: Coefficients
    ) -> StepContext:
        return StepContext(
            problem,
            params,
            samples,
            c,
            previous,
            self.transport,
            self._may_damp(),
            self.solver.approximate,
            self.solver.form,
        )

    def _proposal(self, context: StepContext, linear: LinearisedStep, prepared: Prepared) -> Proposal:
        momentum = zeros_like(context.params)
        if self.solver.approximate:
            momentum = self.metric.momentum(context)
        origin = self.solver.origin(self.metric.origin(context), context.previous.d)
        return Proposal(
            params=context.params,
            h=context.c.h,
            system=linear.system,
            at_rest=linear.at_rest,
            descent=gram_like(linear.system, scale(-context.force_scale, linear.gradient)),
            origin=add(origin, scale(-1.0, momentum)),
            momentum=momentum,
            gradient=linear.gradient,
            solver=self.solver,
            prepared=prepared,
            evaluate=lambda params: self.metric.loss(context.problem, params, context.samples),
            curvature=lambda d: self.metric.residual_curvature(context.problem, context.params, context.samples, d),
            gauss_newton=self.metric.gauss_newton,
        )

    def _damping(self) -> Float[Array, ""]:
        return jnp.asarray(self.solver.damping, float)

    def _may_damp(self) -> bool:
        """Whether β can be non-zero; a constant 0 saves a second evaluation of the force."""
        beta = self.flow.beta
        if not isinstance(beta, schedules.ConstantSchedule) or not schedules.is_concrete(beta.value):
            return True
        return float(beta.value) != 0


def check_state(state: PyTree, expected: PyTree, owner: str) -> None:
    """Refuse what is not built like the state that this optimiser's `init` returns for these parameters."""
    if jax.tree.structure(state) != jax.tree.structure(expected):
        raise ValueError(
            f"{owner}: the last argument of step is the state that init, or the step before, returned for these "
            "parameters and this optimiser; got another object."
        )


def _check_kept(previous: Previous, expected: Previous) -> None:
    """Refuse another number of samples, where a metric carries something at each of them."""
    pairs = zip(jax.tree.leaves(previous.metric), jax.tree.leaves(expected.metric), strict=True)
    shapes = [(jnp.shape(old), jnp.shape(new)) for old, new in pairs]
    wrong = next(((old, new) for old, new in shapes if old != new), None)
    if wrong is not None:
        raise ValueError(
            f"ANGD: the metric carries an array of shape {wrong[0]} from the step before, and these samples need "
            f"{wrong[1]}: give every step as many samples, or call init again."
        )


def _check_pair(metric: AbstractMetric, solver: AbstractSolver, transport: AbstractTransport) -> None:
    if solver.needs_rows and not metric.rows:
        raise ValueError(
            f"{type(solver).__name__} needs the right-hand side at the samples, which {type(metric).__name__} does not "
            "give: use Normal, which takes the N × N route by Woodbury's identity when there are more parameters."
        )
    if isinstance(transport, Printed) and not metric.covectors:
        raise ValueError(
            f"The Printed recursion exists only for L2 and Hs with s ≥ 0: use JVP() with {type(metric).__name__}."
        )


class _Verdict(eqx.Module):
    """Whether a step may reach the parameters, and what speaks against it."""

    in_range: Bool[Array, ""]
    sound: Bool[Array, ""]
    solved: Bool[Array, ""]
    landed: Bool[Array, ""]
    loss_finite: Bool[Array, ""]
    idle: Bool[Array, ""]
    wanted: Bool[Array, ""]

    @classmethod
    def of(cls, c: Coefficients, linear: LinearisedStep, trial: Trial, step: PyTree, moved: PyTree) -> "_Verdict":
        solved = trial.ok & all_finite(trial.d) & jnp.isfinite(trial.scale)
        # A vector of numbers whose length is none is as bad as one that is not finite: no next step could use it.
        measurable = jnp.isfinite(norm(trial.d)) & jnp.isfinite(norm(step))
        return cls(
            in_range=c.in_range,
            sound=all_finite(linear.system.given) & all_finite(linear.gradient),
            solved=solved,
            landed=all_finite(moved) & measurable,
            loss_finite=jnp.ones((), bool) if linear.loss is None else jnp.isfinite(linear.loss),
            idle=solved & any_nonzero(linear.force) & ~any_nonzero(trial.d),
            wanted=trial.accepted,
        )

    @property
    def finite(self) -> Bool[Array, ""]:
        """Is every number of the step one, so that the momentum before it may be kept?"""
        return self.in_range & self.sound & self.solved & self.landed & self.loss_finite

    @property
    def accepted(self) -> Bool[Array, ""]:
        return self.finite & self.wanted & ~self.idle

    def result(self, trial: Trial) -> RESULTS:
        """The first thing that went wrong, or what the controller did."""
        result = RESULTS.where(trial.converged, RESULTS.successful, RESULTS.not_converged)
        result = RESULTS.where(trial.restarted & self.accepted, RESULTS.restarted, result)
        result = RESULTS.where(self.accepted, result, RESULTS.rejected)
        result = RESULTS.where(self.idle, RESULTS.no_direction, result)
        result = RESULTS.where(self.landed, result, RESULTS.step_not_finite)
        result = RESULTS.where(self.solved, result, RESULTS.singular)
        result = RESULTS.where(self.sound, result, RESULTS.direction_not_finite)
        result = RESULTS.where(self.loss_finite, result, RESULTS.loss_not_finite)
        return RESULTS.where(self.in_range, result, RESULTS.coefficients_out_of_range)


def _report(linear: LinearisedStep, proposal: Proposal, trial: Trial, verdict: _Verdict) -> Info:
    return Info(
        loss=jnp.full((), jnp.nan) if linear.loss is None else linear.loss,
        norm=norm(trial.d),
        moved=jnp.where(verdict.accepted, norm(proposal.step(trial)), 0.0),
        slope=proposal.slope(trial.d),
        damping=trial.damping,
        ratio=trial.ratio,
        smallest=proposal.solver.smallest(proposal.prepared),
        accepted=verdict.accepted,
        restarted=trial.restarted & verdict.accepted,
        result=verdict.result(trial),
    )
