"""Back to the last good state after several steps that were not finite, and on from there with more caution.

A state is good when a step from it was finite: one that was accepted may still have led to where nothing is. A run that
goes back keeps counting steps, so it draws other samples, begins from rest, and has ten times the damping (half the
rate, where a method has no damping).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax

from angd.method.step import Info
from angd.recipes.base import Phase
from angd.results import RESULTS
from angd.train.loop import TrainState

MOST = 3  # recoveries of one run
RECOVERED = "went back to step"  # how the records of recoveries begin
# By number: comparing members would ask the device after every step.
NOT_FINITE = {
    int(member._value)  # pyright: ignore
    for member in (RESULTS.loss_not_finite, RESULTS.direction_not_finite, RESULTS.singular, RESULTS.step_not_finite)
}
CAUTION = {"damping": 10.0, "rate": 0.5}  # the first of these that a method has is multiplied


class Recovery:
    """Counts steps in a row that are not finite, and knows the last good state.

    **Arguments:** `after`, so many of them are too many, 0 for any number; `start`, where the run stands.
    """

    def __init__(self, after: int, start: TrainState):
        self.after, self.bad, self.good, self.last = after, 0, start, start

    def seen(self, state: TrainState, info: Info) -> TrainState | None:
        """Where to go on instead after a step, None where all is well or enough was tried."""
        if int(info.result._value) in NOT_FINITE:  # pyright: ignore
            self.bad += 1
        else:
            self.bad, self.good = 0, self.last
        self.last = state
        if not self.after or self.bad < self.after or state.recoveries >= MOST:
            return None
        self.bad, self.last = 0, _back(self.good, state)
        return self.last

    def given_up(self, state: TrainState) -> bool:
        """Have all recoveries been in vain?"""
        return 0 < self.after <= self.bad and state.recoveries >= MOST


def _back(good: TrainState, now: TrainState) -> TrainState:
    """The good state from rest, at the present step and time."""
    spent = {name: getattr(now, name) for name in ("k", "seconds", "cpu_seconds")}
    return replace(good, **spent, state=None, rejected=0, recoveries=now.recoveries + 1)


def cautious(phases: Sequence[Phase], recoveries: int) -> list[Phase]:
    """The phases with more damping, or a lower rate, after so many recoveries; optimisers that were one stay one."""
    if not recoveries:
        return list(phases)
    made = {id(phase.optimiser): _changed(phase.optimiser, recoveries) for phase in phases}
    return [replace(phase, optimiser=made[id(phase.optimiser)]) for phase in phases]


def _changed(optimiser: Any, recoveries: int) -> Any:
    name = changeable(optimiser)
    if name is None:
        return optimiser
    factor = CAUTION[name] ** recoveries
    return jax.tree_util.tree_map_with_path(lambda path, x: x * factor if _is_called(path, name) else x, optimiser)


def changeable(optimiser: Any) -> str | None:
    """What caution changes of a method, None where there is nothing."""
    paths = [path for path, _ in jax.tree_util.tree_leaves_with_path(optimiser)]
    return next((name for name in CAUTION if any(_is_called(path, name) for path in paths)), None)


def _is_called(path: Any, name: str) -> bool:
    return bool(path) and getattr(path[-1], "name", None) == name


def told(good: TrainState, now: TrainState, info: Info, optimiser: Any) -> str:
    """What a record says of a recovery."""
    words = {"damping": "ten times the damping", "rate": "half the rate"}
    change = words.get(changeable(optimiser) or "", "new samples")
    return f"{RECOVERED} {good.k} with {change} (recovery {now.recoveries} of {MOST}), because {RESULTS[info.result]}"
