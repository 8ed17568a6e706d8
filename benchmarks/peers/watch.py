"""The error of a training run against the CPU seconds of its process, in which looking does not count."""

from collections.abc import Callable
from time import process_time
from typing import Any

import numpy as np

LOOKS = 40
Predict = Callable[[Any, np.ndarray], Any]  # u at points (t, x), from parameters


class Watch:
    """Called after steps with what predicts u; looks when the next mark of CPU time has passed.

    Import and compilation count. `first_step` are the CPU seconds until the first call.
    """

    def __init__(self, budget: float, grid: str):
        before = process_time()
        with np.load(grid) as known:
            self.z, self.u = known["z"], known["u"]
        self.budget, self.lost, self.first_step = budget, process_time() - before, 0.0
        self.marks = list(np.geomspace(min(2.0, budget / 4), budget, LOOKS))
        self.records: list[list[float]] = []

    @property
    def spent(self) -> float:
        """CPU seconds so far, without those of looks."""
        return process_time() - self.lost

    def __call__(self, predict: Predict, params: Any, step: int) -> bool:
        """Whether to go on."""
        now = self.spent
        self.first_step = self.first_step or now
        if now >= self.marks[0]:
            self._look(predict, params, step, now)
        return now < self.budget

    def _look(self, predict: Predict, params: Any, step: int, now: float) -> None:
        before = process_time()
        difference = np.asarray(predict(params, self.z)) - self.u
        self.records.append([round(now, 2), step, float(np.linalg.norm(difference) / np.linalg.norm(self.u))])
        self.marks = [mark for mark in self.marks if mark > now] or [np.inf]
        self.lost += process_time() - before

    def found(self) -> dict[str, Any]:
        """What goes into the result file."""
        return {"first_step": round(self.first_step, 1), "records": self.records}
