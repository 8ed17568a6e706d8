"""When a network has had its time: the rule by which the next stage begins. Imports nothing heavy."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

WINDOW = 5  # losses of which the median is taken, because points differ in how hard they are


@dataclass(frozen=True)
class Crawl:
    """Has a phase become slow, and is there time for a better one?

    It compares the loss with that at half the steps of the phase. Where the error falls like 1/steps, twice the steps
    divide the loss by four; a network on top gains more in as many.

    **Arguments:**

    - `factor`: the phase is slow if the second half of its steps divided the loss by less than this.
    - `least`: losses that must be there to judge.
    - `steps`, `seconds`: what the budget must have left, since the next phase is compiled first.

    **Returns:** called as `crawl(losses, steps, seconds)`, True or False.
    """

    factor: float = 16.0
    least: int = 10
    steps: float = 100
    seconds: float = 30.0

    def __call__(self, losses: Sequence[float], steps: float, seconds: float) -> bool:
        if len(losses) < max(self.least, 2 * WINDOW) or steps < self.steps or seconds < self.seconds:
            return False
        middle = len(losses) // 2
        before, now = median(losses[middle - WINDOW : middle]), median(losses[-WINDOW:])
        return bool(now * self.factor > before)


def stacks(task: Any) -> bool:
    """Can networks of a task stand on one another? Not where values are measured: the next one would fit the noise."""
    from angd.problems.pinn import Data, Problem

    problem = task.problem
    if task.samples is not None or not isinstance(problem, Problem) or getattr(problem, "unknowns", None):
        return False
    return not any(isinstance(condition.on, Data) for condition in problem.conditions.values())
