"""How fast a run goes, and how long the rest of it takes: from the recent steps of the present phase.

    seconds left = steps left × (seconds of a step) + evaluations left × (seconds of an evaluation)

Both counts are known: the budget and the phase say where the steps end, and when one evaluates depends on the number of
the step alone. The first step of a phase compiles, so that it counts in neither.
"""

import math
from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

from angd.recipes.base import INFINITE, Phase
from angd.train.loop import RATIO, Budget, TrainState, next_of

KEPT, APART = 64, 0.25  # marks that are kept, and seconds between two of them


class Plan(NamedTuple):
    """What a run is going to do.

    **Attributes:** `budget`; `phases`.
    """

    budget: Budget
    phases: Sequence[Phase] = ()

    def title(self, number: int) -> str:
        """A phase as a person is told of it, nothing where there is only one."""
        if len(self.phases) < 2:
            return ""
        return f"phase {number + 1}/{len(self.phases)} {self.phases[number].name}".rstrip()

    def next_phase(self, state: TrainState) -> int:
        """The phase of the step after a state."""
        if not self.phases or state.phase + 1 == len(self.phases):
            return state.phase
        over = state.ended or state.k >= state.began + self.phases[state.phase].steps
        return next_of(self.phases, state)[0] if over else state.phase


class Left(NamedTuple):
    """What is to come: `seconds`, until the run ends or `phase` begins (None is the end)."""

    seconds: float
    phase: int | None = None


class _Mark(NamedTuple):
    """How things stood after a step, on the wall and in the books of the run."""

    k: int
    wall: float
    seconds: float
    cpu_seconds: float


class Pace:
    """Told of every step, it knows the speed.

    **Arguments:** `plan`.
    """

    def __init__(self, plan: Plan):
        self.plan, self.marks = plan, deque[_Mark](maxlen=KEPT)
        self.phase, self.looking = -1, 0.0

    def saw(self, state: Any, now: float) -> None:
        """After a step."""
        mark = _Mark(state.k, now, state.seconds, state.cpu_seconds)
        if state.phase != self.phase:
            self.phase = state.phase
            self.marks.clear()
        if len(self.marks) > 1 and now - self.marks[-2].wall < APART:
            self.marks.pop()
        self.marks.append(mark)

    @property
    def speed(self) -> float | None:
        """Steps in a second, evaluations included."""
        if len(self.marks) < 2:
            return None
        first, last = self.marks[0], self.marks[-1]
        return (last.k - first.k) / max(last.wall - first.wall, 1e-9)

    def left(self, state: Any) -> Left | None:
        """How long until the run ends, or until the next phase begins where nobody knows how long that one takes."""
        if len(self.marks) < 2:
            return None
        first, last = self.marks[0], self.marks[-1]
        steps = last.k - first.k
        each = _Mark(1, 0.0, (last.seconds - first.seconds) / steps, (last.cpu_seconds - first.cpu_seconds) / steps)
        looks = evaluations(first.k, last.k)
        if looks:
            self.looking = max(last.wall - first.wall - (last.seconds - first.seconds), 0.0) / looks
        to_end, in_phase = self._to_end(state, each), self._in_phase(state)
        counted = self.plan.budget.steps - state.k <= to_end
        number, phase = (in_phase, state.phase + 1) if counted and in_phase < to_end else (to_end, None)
        if not math.isfinite(number):
            return None
        return Left(number * each.seconds + evaluations(state.k, state.k + round(number)) * self.looking, phase)

    def _to_end(self, state: Any, each: _Mark) -> float:
        """Steps that the budget still allows."""
        budget = self.plan.budget
        limits = (
            budget.steps - state.k,
            (budget.seconds - state.seconds) / max(each.seconds, 1e-9),
            (budget.cpu_seconds - state.cpu_seconds) / max(each.cpu_seconds, 1e-9),
        )
        return max(min(limits), 0.0)

    def _in_phase(self, state: Any) -> float:
        """Steps until the next phase begins; infinite in the last one."""
        phases = self.plan.phases
        if not phases or state.phase + 1 == len(phases):
            return INFINITE
        return max(state.began + phases[state.phase].steps - state.k, 0.0)


def evaluations(first: int, last: int) -> int:
    """How many there are after the steps `first` + 1 to `last`."""
    dense = math.ceil(1 / (RATIO - 1))  # one after every step up to here
    early = max(min(last, dense - 1) - first, 0)
    start = max(first, dense - 1)
    return early + (_order(last) - _order(start) if last > start else 0)


def _order(k: int) -> int:
    """How often the numbers of steps have grown by `RATIO`, as `is_evaluated` counts."""
    return math.floor(math.log(k, RATIO))
