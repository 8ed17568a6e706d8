"""The training loop, the only one: draw samples, step, look, until the budget is spent.

Budgets count steps, seconds, or the CPU seconds of the process over all its threads, compilation included: the last
bear the noise of shared machines best. What is spent on looking (evaluation, checkpoints) is not counted. When to look
depends on the number of the step alone, so that a run which was interrupted sees the same as one which was not.
"""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from angd.recipes.base import INFINITE, Phase
from angd.results import RESULTS
from angd.tree import in_precision

RATIO = 1.02  # of the numbers of steps at which one looks


@dataclass(frozen=True)
class Budget:
    """Stop at the first that is reached."""

    steps: float = INFINITE
    seconds: float = INFINITE
    cpu_seconds: float = INFINITE

    def __post_init__(self):
        if not (self.cpu_seconds > 0 and self.steps > 0 and self.seconds > 0):
            raise ValueError("Budget: steps, seconds and cpu_seconds must be positive.")
        if self.cpu_seconds == self.steps == self.seconds == INFINITE:
            raise ValueError("Budget: give a number of steps, of seconds or of CPU seconds.")

    def spent(self, stand: "Stand") -> float:
        """The share of the budget that is used."""
        return max(stand.k / self.steps, stand.seconds / self.seconds, stand.cpu_seconds / self.cpu_seconds)


@dataclass(frozen=True)
class Stand:
    """Where a run stands: all that is needed to go on.

    **Attributes:** `k` steps are done, `refused` of the last ones were refused; the present phase is number `phase` and
    `began` with step `began`; `ended` says that its loss was low enough. Parameters, samples and the optimiser's state
    are None before the first step.
    """

    params: PyTree
    samples: PyTree = None
    state: PyTree = None
    k: int = 0
    phase: int = 0
    began: int = 0
    ended: bool = False
    refused: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0


@dataclass(frozen=True)
class Report:
    """What one step said."""

    loss: float
    damping: float
    norm: float
    accepted: bool
    restarted: bool
    result: str


def is_look(k: int) -> bool:
    """Whether one looks after step k: always at first, then ever more rarely, at numbers that grow by `RATIO`."""
    return k < 1 / (RATIO - 1) or math.floor(math.log(k, RATIO)) != math.floor(math.log(k - 1, RATIO))


class Clock:
    """Seconds and CPU seconds, with pauses."""

    def __init__(self, seconds: float = 0.0, cpu_seconds: float = 0.0):
        self._wall, self._cpu = time.perf_counter() - seconds, time.process_time() - cpu_seconds

    def read(self) -> tuple[float, float]:
        return time.perf_counter() - self._wall, time.process_time() - self._cpu

    def forget(self, since: tuple[float, float]) -> None:
        """Do not count what happened since a reading."""
        wall, cpu = self.read()
        self._wall += wall - since[0]
        self._cpu += cpu - since[1]


def train(
    problem: Any, phases: Sequence[Phase], start: Stand, key: Array, budget: Budget
) -> Iterator[tuple[Stand, Report]]:
    """Every step: where the run stands after it, and what the step said. The clock stops while the caller looks."""
    clock, stand, loop = Clock(start.seconds, start.cpu_seconds), start, _Loop(problem, phases, key)
    while budget.spent(stand) < 1 and loop.goes_on(stand):
        stand, report = loop.step(stand)
        now = clock.read()
        stand = replace(stand, seconds=now[0], cpu_seconds=now[1])
        yield stand, report
        clock.forget(now)


class _Loop:
    """The compiled functions of the present phase."""

    def __init__(self, problem: Any, phases: Sequence[Phase], key: Array):
        self.problem, self.phases, self.key = problem, phases, key
        self.compiled: dict[int, tuple[Any, Any]] = {}

    def goes_on(self, stand: Stand) -> bool:
        return not (self._finished(stand) and stand.phase + 1 == len(self.phases))

    def step(self, stand: Stand) -> tuple[Stand, Report]:
        if self._finished(stand):
            stand = self._next_phase(stand)
        phase = self.phases[stand.phase]
        if stand.phase not in self.compiled:
            self.compiled = {stand.phase: (eqx.filter_jit(phase.sampler), eqx.filter_jit(phase.optimiser.step))}
        draw, step = self.compiled[stand.phase]
        params, samples, state = cast((stand.params, stand.samples, stand.state), phase.single)
        key = jax.random.fold_in(self.key, stand.k)
        if samples is not None and hasattr(phase.sampler, "move"):
            samples = eqx.filter_jit(phase.sampler.move)(key, self.problem, params, samples)
        elif samples is None or stand.k % getattr(phase.sampler, "every", 1) == 0:
            samples = draw(key, self.problem, params)
        if state is None:
            state = phase.optimiser.init(self.problem, params, samples)
        # Always of the same precision, or the step would be compiled again.
        samples, state = cast((samples, state), phase.single)
        params, samples, state, info = step(self.problem, params, samples, state)
        report = _report(info)
        refused = 0 if report.accepted else stand.refused + 1
        ended = report.loss < phase.below
        after = replace(stand, params=params, samples=samples, state=state, k=stand.k + 1, ended=ended, refused=refused)
        return after, report

    def _finished(self, stand: Stand) -> bool:
        return stand.ended or stand.k >= stand.began + self.phases[stand.phase].steps

    def _next_phase(self, stand: Stand) -> Stand:
        before, after = self.phases[stand.phase : stand.phase + 2]
        state = stand.state if after.optimiser is before.optimiser else None
        samples = stand.samples if after.follows else None
        return replace(stand, samples=samples, state=state, phase=stand.phase + 1, began=stand.k, ended=False)


def cast(tree: PyTree, single: bool) -> PyTree:
    """Floating-point arrays in single or in the default precision."""
    return in_precision(tree, jnp.float32 if single else jnp.result_type(float))


def _report(info: Any) -> Report:
    return Report(
        loss=float("nan") if info.loss is None else float(info.loss),  # a density may not know it
        damping=float(info.damping),
        norm=float(info.norm),
        accepted=bool(info.accepted),
        restarted=bool(info.restarted),
        result=str(RESULTS[info.result]),
    )
