"""The training loop, the only one: draw samples, step, look, until the budget is spent.

Budgets count the CPU seconds of the process over all its threads, compilation included: they bear the noise of shared
machines better than wall time. What is spent on looking (evaluation) is not counted.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
from jaxtyping import Array, PyTree


@dataclass(frozen=True)
class Record:
    """How things stand after a step."""

    step: int
    cpu_seconds: float
    seconds: float
    loss: float
    error: float
    damping: float
    accepted: bool


@dataclass(frozen=True)
class Budget:
    """Stop at the first that is reached; look every `look` CPU seconds."""

    cpu_seconds: float = float("inf")
    steps: float = float("inf")
    look: float = 10.0

    def __post_init__(self):
        if not (self.cpu_seconds > 0 and self.steps > 0 and self.look > 0):
            raise ValueError("Budget: cpu_seconds, steps and look must be positive.")
        if self.cpu_seconds == self.steps == float("inf"):
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
    optimiser: Any,
    sampler: Callable[..., Any],
    params: PyTree,
    key: Array,
    budget: Budget,
    error: Callable[[PyTree], float],
) -> Iterator[tuple[Record, PyTree]]:
    """Records, each with its parameters: after the first step, every `budget.look` CPU seconds, and at the end."""
    clock, k, due = Clock(), 0, 0.0
    draw, step = eqx.filter_jit(sampler), eqx.filter_jit(optimiser.step)
    samples = draw(key, problem, params)
    state = optimiser.init(problem, params, samples)
    while True:
        params, samples, state, info = step(problem, params, samples, state)
        jax.block_until_ready(jax.tree.leaves(params))
        k, now = k + 1, clock.read()
        last = now[0] >= budget.cpu_seconds or k >= budget.steps
        if now[0] >= due or last:
            yield _look(k, now, info, error(params)), params
            due = now[0] + budget.look
            clock.forget(now)
        if last:
            return
        samples = draw(jax.random.fold_in(key, k), problem, params)


def _look(k: int, now: tuple[float, float], info: Any, error: float) -> Record:
    return Record(k, *now, float(info.loss), error, float(info.damping), bool(info.accepted))
