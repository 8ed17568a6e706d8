"""The training loop, the only one: draw samples, step, until the budget is spent.

Budgets count steps, seconds, or the CPU seconds of the process over all its threads, compilation included: the last
bear the noise of shared machines best. What is spent between steps (evaluation, checkpoints) is not counted. When to
evaluate depends on the number of the step alone, so that a run which was interrupted sees the same as one which was
not.
"""

import math
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from angd.method.step import Info
from angd.recipes.base import INFINITE, Phase
from angd.train.compiled import Compiled
from angd.train.hosts.placement import beside
from angd.tree import in_precision

RATIO = 1.02  # of the numbers of steps at which one evaluates


@dataclass(frozen=True)
class Budget:
    """Stop at the first that is reached.

    **Attributes:**

    - `steps`: of all phases together.
    - `seconds`: of the clock, without the time between steps.
    - `cpu_seconds`: of the process, likewise.
    """

    steps: float = INFINITE
    seconds: float = INFINITE
    cpu_seconds: float = INFINITE

    def __post_init__(self):
        if not (self.cpu_seconds > 0 and self.steps > 0 and self.seconds > 0):
            raise ValueError("Budget: steps, seconds and cpu_seconds must be positive.")
        if self.cpu_seconds == self.steps == self.seconds == INFINITE:
            raise ValueError("Budget: give a number of steps, of seconds or of CPU seconds.")

    def spent(self, now: "TrainState") -> float:
        """The share of the budget that is used."""
        return max(now.k / self.steps, now.seconds / self.seconds, now.cpu_seconds / self.cpu_seconds)

    def left(self, now: "TrainState") -> tuple[float, float]:
        """Steps and seconds that are left."""
        return self.steps - now.k, min(self.seconds - now.seconds, self.cpu_seconds - now.cpu_seconds)


@dataclass(frozen=True)
class TrainState:
    """Where a run stands: all that is needed to go on.

    **Attributes:**

    - `params`, `samples`, `state`: parameters, the last samples and the optimiser's state; the last two are None before
      the first step.
    - `k`: steps that are done.
    - `rejected`: how many of the last ones were not taken.
    - `phase`: the number of the present phase.
    - `round`: how often it has begun again.
    - `began`: the step with which it began.
    - `ended`: its loss is low enough, or falls too slowly.
    - `fresh`: its losses at points that no step had seen, where the phase asks for them.
    - `recoveries`: how often the run went back to an earlier state.
    - `seconds`, `cpu_seconds`: what is spent.
    """

    params: PyTree
    samples: PyTree = None
    state: PyTree = None
    k: int = 0
    phase: int = 0
    round: int = 0
    began: int = 0
    ended: bool = False
    fresh: tuple[float, ...] = ()
    rejected: int = 0
    recoveries: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0


def is_evaluated(k: int) -> bool:
    """Whether one evaluates after step k: always at first, then ever more rarely, at numbers that grow by `RATIO`."""
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


def as_measured(spent: tuple[float, float], phase: tuple[int, int]) -> tuple[float, float]:
    """What one process holds for spent: what it has measured."""
    return spent


def train(
    problem: Any,
    phases: Sequence[Phase],
    start: TrainState,
    key: Array,
    budget: Budget,
    agreed: Callable[[tuple[float, float], tuple[int, int]], tuple[float, float]] = as_measured,
) -> Generator[tuple[TrainState, Info], str | None]:
    """Every step: where the run stands after it, and what the step said. The clock stops while the caller looks.

    Send "retry" to take the last step again, from where it began and with other random numbers.

    **Arguments:**

    - `problem`: what is trained.
    - `phases`: one after the other.
    - `start`: where the run stands before the first step.
    - `key`: for all random numbers.
    - `budget`: when to stop.
    - `agreed`: of what a process has measured and of phase and round, what all of them hold for spent.

    **Returns:** a generator of states and infos, whose numbers are on the host.
    """
    clock, now, loop = Clock(start.seconds, start.cpu_seconds), start, _Loop(problem, phases, key)
    attempt = 0
    while budget.spent(now) < 1 and loop.goes_on(now):
        after, info = loop.step(now, attempt, budget.left(now))
        read = clock.read()
        seconds, cpu_seconds = agreed(read, (after.phase, after.round))
        after = replace(after, seconds=seconds, cpu_seconds=cpu_seconds)
        attempt = attempt + 1 if (yield after, info) == "retry" else 0
        now = replace(now, seconds=seconds, cpu_seconds=cpu_seconds) if attempt else after
        clock.forget(read)


def call_of(problem: Any, phases: Sequence[Phase], now: TrainState, key: Array) -> tuple[Compiled, tuple[Any, ...]]:
    """What the next step calls, for those who want to know its cost.

    **Arguments:** as of `train`.

    **Returns:** a compiled function, which gives `(params, samples, state), info`, and its arguments.
    """
    return _Loop(problem, phases, key).call(now)


class _Loop:
    """Draw, step, and go from phase to phase."""

    def __init__(self, problem: Any, phases: Sequence[Phase], key: Array):
        self.problem, self.phases, self.key = problem, phases, key
        self.known: dict[Any, Compiled] = {}
        # Compiled together they cost less, but phases that share an optimiser share its compiled step.
        self.fused = len(phases) == 1 and every(phases[0].sampler) == 1

    def goes_on(self, now: TrainState) -> bool:
        return not (self._finished(now) and self._is_last(now))

    def _is_last(self, now: TrainState) -> bool:
        """Is there no phase after the present one, and no other round of it?"""
        return now.phase + 1 == len(self.phases) and now.round + 1 >= self.phases[now.phase].rounds

    def step(
        self, now: TrainState, attempt: int = 0, left: tuple[float, float] = (INFINITE, INFINITE)
    ) -> tuple[TrainState, Info]:
        if self._finished(now):
            now = self._next_phase(now)
        function, arguments = self.call(now, attempt)
        (params, samples, state), info = function(*arguments)
        info = jax.tree.map(np.asarray, info)  # on a host, device_get takes six times longer
        rejected = 0 if info.accepted else now.rejected + 1
        fresh, enough = self._fresh(now, info, left)
        ended = bool(info.loss < self.phases[now.phase].below) or enough
        done = {"k": now.k + 1, "ended": ended, "fresh": fresh, "rejected": rejected}
        return replace(now, params=params, samples=samples, state=state, **done), info

    def _fresh(self, now: TrainState, info: Info, left: tuple[float, float]) -> tuple[tuple[float, ...], bool]:
        """Losses at new points, this one among them if it is, and whether the phase has seen enough of them."""
        phase = self.phases[now.phase]
        if phase.until is None or not self._draws(phase, now):
            return now.fresh, False
        fresh = (*now.fresh, float(info.loss))
        return fresh, not self._is_last(now) and bool(phase.until(fresh, *left))

    def _draws(self, phase: Phase, now: TrainState) -> bool:
        """Are the points of the next step new?"""
        return now.samples is None or hasattr(phase.sampler, "move") or now.k % every(phase.sampler) == 0

    def call(self, now: TrainState, attempt: int = 0) -> tuple[Compiled, tuple[Any, ...]]:
        """The compiled function of a step, and its arguments."""
        phase, key = self.phases[now.phase], self.key if attempt == 0 else jax.random.fold_in(self.key, 2**31 + attempt)
        number, held = np.uint32(now.k), (now.params, now.samples, now.state)
        if now.state is None or not self.fused:
            held = self._ready(phase, now, key, number)
        if self.fused:  # draws again what the optimiser began with: cheaper than another program for the first step
            return self._compiled(_draw_and_step, phase.optimiser, phase.sampler, phase.single), (held, key, number)
        return self._compiled(_step, phase.optimiser), held

    def _compiled(self, function: Callable[..., Any], *fixed: Any) -> Compiled:
        """One object for each function and what it is bound to: these live as long as the loop."""
        name = (function, *map(id, fixed))
        if name not in self.known:
            self.known[name] = Compiled(function, self.problem, *fixed)
        return self.known[name]

    def _ready(self, phase: Phase, now: TrainState, key: Array, number: Any) -> tuple[PyTree, PyTree, PyTree]:
        """Parameters, samples and state in the precision of the phase."""
        params, samples, state = cast((now.params, now.samples, now.state), phase.single)
        if samples is not None and hasattr(phase.sampler, "move"):
            samples = self._compiled(_move, phase.sampler)(params, samples, key, number)
        elif self._draws(phase, now):
            samples = self._compiled(_draw, phase.sampler)(params, key, number)
        samples = cast(samples, phase.single)
        if state is None:
            state = beside(params, arrays_only(phase.optimiser.init(self.problem, params, samples)))
        # Always of the same precision, or the step would be compiled again.
        return params, samples, cast(state, phase.single)

    def _finished(self, now: TrainState) -> bool:
        return now.ended or now.k >= now.began + self.phases[now.phase].steps

    def _next_phase(self, now: TrainState) -> TrainState:
        number, again = next_of(self.phases, now)
        before, after = self.phases[now.phase], self.phases[number]
        state = now.state if after.optimiser is before.optimiser and after.grow is None else None
        samples = now.samples if after.follows else None
        new = {"phase": number, "round": again, "began": now.k, "ended": False, "fresh": ()}
        return replace(now, params=self._grown(after, now), samples=samples, state=state, **new)

    def _grown(self, phase: Phase, now: TrainState) -> PyTree:
        """The parameters with which a phase begins."""
        if phase.grow is None:
            return now.params
        return phase.grow(jax.random.fold_in(self.key, now.k), self.problem, now.params, (now.fresh or (1.0,))[-1])


def next_of(phases: Sequence[Phase], now: TrainState) -> tuple[int, int]:
    """Phase and round after the present ones."""
    more = now.round + 1 < phases[now.phase].rounds
    return (now.phase, now.round + 1) if more else (now.phase + 1, 0)


def every(sampler: Any) -> float:
    """How many steps samples serve; a Markov chain's serve for ever, because they move."""
    return INFINITE if hasattr(sampler, "move") else getattr(sampler, "every", 1)


def arrays_only(state: PyTree) -> PyTree:
    """The state of a method, if a compiled step can carry it."""
    for leaf in jax.tree.leaves(state):
        if not eqx.is_array_like(leaf):
            raise ValueError(
                f"method: its state must consist of arrays and numbers, but `init` put a {type(leaf).__name__} there: "
                "keep in the method itself what does not change."
            )
    return state


def _draw(problem: Any, sampler: Any, params: PyTree, key: Array, number: Any) -> PyTree:
    return sampler(jax.random.fold_in(key, number), problem, params)


def _move(problem: Any, sampler: Any, params: PyTree, samples: PyTree, key: Array, number: Any) -> PyTree:
    return sampler.move(jax.random.fold_in(key, number), problem, params, samples)


def _step(problem: Any, optimiser: Any, params: PyTree, samples: PyTree, state: PyTree) -> tuple[Any, Any]:
    params, samples, state, info = optimiser.step(problem, params, samples, state)
    return (params, samples, state), info


def _draw_and_step(
    problem: Any, optimiser: Any, sampler: Any, single: bool, held: Any, key: Array, number: Any
) -> tuple[Any, Any]:
    params, _, state = cast(held, single)
    samples = cast(sampler(jax.random.fold_in(key, number), problem, params), single)
    params, samples, state, info = optimiser.step(problem, params, samples, cast(state, single))
    return (params, samples, state), info


def cast(tree: PyTree, single: bool) -> PyTree:
    """Floating-point arrays in single or in the default precision."""
    return in_precision(tree, jnp.float32 if single else jnp.result_type(float))
