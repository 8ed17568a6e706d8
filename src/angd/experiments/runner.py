"""The training loop, the only one: draw samples, step, look, until the budget is spent.

Budgets count the CPU seconds of the process over all its threads, compilation included: they bear the noise of shared
machines better than wall time. What is spent on looking (evaluation) is not counted.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

INFINITE = float("inf")


@dataclass(frozen=True)
class Phase:
    """`steps` steps of an optimiser on the points of a sampler, in single precision if `single`.

    It ends earlier when the loss is `below` a number. A phase goes on where the one before it ended; with the same
    optimiser, damping and momentum go on as well.
    """

    optimiser: Any
    sampler: Any
    steps: float = INFINITE
    below: float = 0.0
    single: bool = False

    def __post_init__(self):
        if not self.steps >= 1:
            raise ValueError(f"Phase: steps must be at least 1, got {self.steps}.")


@dataclass(frozen=True)
class Record:
    """How things stand after a step; `errors` by field."""

    step: int
    cpu_seconds: float
    seconds: float
    loss: float
    errors: dict[str, float]
    damping: float
    accepted: bool

    @property
    def error(self) -> float:
        """The largest of the errors."""
        return max(self.errors.values())


@dataclass(frozen=True)
class Budget:
    """Stop at the first that is reached; look every `look` CPU seconds."""

    cpu_seconds: float = INFINITE
    steps: float = INFINITE
    look: float = 10.0

    def __post_init__(self):
        if not (self.cpu_seconds > 0 and self.steps > 0 and self.look > 0):
            raise ValueError("Budget: cpu_seconds, steps and look must be positive.")
        if self.cpu_seconds == self.steps == INFINITE:
            raise ValueError("Budget: give a number of steps or of CPU seconds.")


class Clock:
    """CPU and wall seconds, with pauses."""

    def __init__(self):
        self._cpu, self._wall = time.process_time(), time.perf_counter()

    def read(self) -> tuple[float, float]:
        return time.process_time() - self._cpu, time.perf_counter() - self._wall

    def forget(self, since: tuple[float, float]) -> None:
        """Do not count what happened since a reading."""
        cpu, wall = self.read()
        self._cpu += cpu - since[0]
        self._wall += wall - since[1]


def train(
    problem: Any,
    phases: Sequence[Phase],
    params: PyTree,
    key: Array,
    budget: Budget,
    errors: Callable[[PyTree], dict[str, float]],
) -> Iterator[tuple[Record, PyTree]]:
    """Records, each with its parameters: after the first step, every `budget.look` CPU seconds, and at the end."""
    clock, due = Clock(), 0.0
    for k, now_at, info in _steps(problem, phases, params, key):
        now = clock.read()
        last = now[0] >= budget.cpu_seconds or k >= budget.steps
        if now[0] >= due or last:
            yield _look(k, now, info, errors(now_at)), now_at
            due = now[0] + budget.look
            clock.forget(now)
        if last:
            return


def _steps(problem: Any, phases: Sequence[Phase], params: PyTree, key: Array) -> Iterator[tuple[int, PyTree, Any]]:
    """Every step of every phase: its number, the parameters after it, its report."""
    k, state, before = 0, None, None
    for phase in phases:
        draw, step = eqx.filter_jit(phase.sampler), eqx.filter_jit(phase.optimiser.step)
        params, state = _cast((params, state), phase.single)
        every, until, samples = getattr(phase.sampler, "every", 1), k + phase.steps, None
        while k < until:
            if samples is None or k % every == 0:
                samples = _cast(draw(jax.random.fold_in(key, k), problem, params), phase.single)
            if phase.optimiser is not before:
                state, before = phase.optimiser.init(problem, params, samples), phase.optimiser
            params, samples, state, info = step(problem, params, samples, state)
            jax.block_until_ready(jax.tree.leaves(params))
            k += 1
            yield k, params, info
            if info.loss < phase.below:
                break


def _cast(tree: PyTree, single: bool) -> PyTree:
    """Floating-point arrays in single or in the default precision."""
    dtype = jnp.float32 if single else jnp.result_type(float)

    def cast(leaf: Any) -> Any:
        return leaf.astype(dtype) if eqx.is_inexact_array(leaf) else leaf

    return jax.tree.map(cast, tree)


def _look(k: int, now: tuple[float, float], info: Any, errors: dict[str, float]) -> Record:
    return Record(k, *now, float(info.loss), errors, float(info.damping), bool(info.accepted))
