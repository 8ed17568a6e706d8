"""`ANGD` in the energy metric as a solver of `optimistix.least_squares` (and so of `root_find`).

    solver = angd.compat.optimistix.AcceleratedGaussNewton(rtol=1e-8, atol=1e-8)
    solution = optimistix.least_squares(residual, solver, y0, args)

All residuals together are one sample with many components, L = ½ Σ r². A step is one of `ANGD`; the solve ends when

    y and r change by less than atol + rtol |·| in a step that was taken            (optimistix's own test)
    a step is rejected that promised less than rounding shows in the loss           nothing is left to gain
    a step is refused because it is not finite, and nothing would change next time  a failure
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optimistix as optx
from jaxtyping import Array, Bool, Float, PyTree

from angd.compat.blank import blank_info
from angd.flow.coefficients import ARGFlow
from angd.method.controllers import AbstractController, LevenbergMarquardt
from angd.method.controllers.base import resolution
from angd.method.metrics import Energy
from angd.method.samples import Samples
from angd.method.solvers import AbstractSolver, Normal
from angd.method.step import ANGD, Info, State
from angd.method.transport import JVP, AbstractTransport
from angd.results import RESULTS
from angd.tree import combine

__all__ = ["AcceleratedGaussNewton"]

Fn = Callable[[PyTree, Any], tuple[PyTree, PyTree]]
NOT_FINITE = (RESULTS.direction_not_finite, RESULTS.singular, RESULTS.step_not_finite)


class _Residual(eqx.Module):
    """What a metric asks for: all residuals in one vector, whatever the sample."""

    fn: Fn
    args: Any

    def residual(self, params: PyTree, x: Any) -> Float[Array, "m"]:
        return jnp.concatenate([jnp.ravel(leaf) for leaf in jax.tree.leaves(self.fn(params, self.args)[0])])


class _Progress(eqx.Module):
    """Where a solve stands: the optimiser's state, and residuals and auxiliary output at the present y."""

    step: State
    info: Info
    residual: PyTree
    aux: PyTree
    done: Bool[Array, ""]
    result: optx.RESULTS


class AcceleratedGaussNewton(optx.AbstractLeastSquaresSolver):
    """Gauss–Newton with any of angd's flows, solvers and controllers, for `optimistix.least_squares`.

    Without arguments it is Levenberg and Marquardt's method; a flow with μ > 0 gives it momentum. y may be any pytree
    of real arrays.

    **Arguments:**

    - `rtol`, `atol`: relative and absolute tolerance of y and of the residuals.
    - `norm`: what measures their changes; `optimistix.max_norm`, `rms_norm` or `two_norm`.
    - `flow`: `ARGFlow.gradient(1.0)` takes full steps, `ARGFlow.momentum(0.3, 0.7)` carries momentum.
    - `solver`: `Normal`, `Kernel`, `Scaled`, `Iterative`, …; its damping is the first one.
    - `controller`: `LevenbergMarquardt`, `LineSearch`, `TrustRegion`, `Constant`, or several `in_turn`.
    - `transport`: how momentum crosses from step to step.

    **Example:** `optimistix.least_squares(residual, AcceleratedGaussNewton(1e-8, 1e-8), y0, args)`
    """

    rtol: float
    atol: float
    norm: Callable[[PyTree], Float[Array, ""]]
    opt: ANGD

    def __init__(
        self,
        rtol: float,
        atol: float,
        norm: Callable[[PyTree], Float[Array, ""]] = optx.max_norm,
        *,
        flow: ARGFlow | None = None,
        solver: AbstractSolver | None = None,
        controller: AbstractController | None = None,
        transport: AbstractTransport | None = None,
    ):
        self.rtol, self.atol, self.norm = rtol, atol, norm
        self.opt = ANGD(
            flow or ARGFlow.gradient(1.0),
            Energy(),
            solver or Normal(1e-3),
            controller or LevenbergMarquardt(),
            transport or JVP(),
        )

    def init(
        self, fn: Fn, y: PyTree, args: Any, options: dict[str, Any], f_struct: Any, aux_struct: Any, tags: frozenset
    ) -> _Progress:
        problem, residual_and_aux = _Residual(fn, args), fn(y, args)
        step = self.opt.init(problem, y, _everything())
        info = blank_info(self.opt, problem, y, _everything(), step)
        return _Progress(step, info, *residual_and_aux, jnp.zeros((), bool), optx.RESULTS.successful)

    def step(
        self, fn: Fn, y: PyTree, args: Any, options: dict[str, Any], state: _Progress, tags: frozenset
    ) -> tuple[PyTree, _Progress, PyTree]:
        after, _, step, info = self.opt.step(_Residual(fn, args), y, _everything(), state.step)
        residual, aux = fn(after, args)
        settled = self._small(after, y) & self._small(residual, state.residual)
        done = (info.accepted & settled) | self._exhausted(state.step, info)
        progress = _Progress(step, info, residual, aux, done, _outcome(state, info))
        return after, progress, aux

    def terminate(
        self, fn: Fn, y: PyTree, args: Any, options: dict[str, Any], state: _Progress, tags: frozenset
    ) -> tuple[Bool[Array, ""], optx.RESULTS]:
        return state.done, state.result

    def postprocess(
        self,
        fn: Fn,
        y: PyTree,
        aux: PyTree,
        args: Any,
        options: dict[str, Any],
        state: _Progress,
        tags: frozenset,
        result: optx.RESULTS,
    ) -> tuple[PyTree, PyTree, dict[str, Any]]:
        return y, aux, {"info": state.info}

    def _small(self, new: PyTree, old: PyTree) -> Bool[Array, ""]:
        """Is the change within tolerance?"""
        change = combine((1.0, new), (-1.0, old))
        return self.norm(jax.tree.map(lambda d, x: jnp.abs(d) / (self.atol + self.rtol * jnp.abs(x)), change, new)) < 1

    def _exhausted(self, state: State, info: Info) -> Bool[Array, ""]:
        """Was a step rejected that promised less than rounding shows?"""
        promised = jnp.abs(info.slope) * self.opt.flow.step(state.k, state.t).h
        refused = (info.result == RESULTS.rejected) | (info.result == RESULTS.no_direction)
        return refused & (promised <= resolution(info.loss))


def _everything() -> Samples:
    """The one sample, of weight 1."""
    return Samples(jnp.zeros(1))


def _outcome(before: _Progress, info: Info) -> optx.RESULTS:
    """A failure, where the next step would be refused as this one was."""
    refused = jnp.any(jnp.stack([info.result == result for result in NOT_FINITE]))
    again = ~before.step.previous.started & (info.damping == before.info.damping)
    failed = (info.result == RESULTS.loss_not_finite) | (refused & again)
    return optx.RESULTS.where(failed, optx.RESULTS.nonfinite, optx.RESULTS.successful)
