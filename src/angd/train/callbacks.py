"""Callbacks for `angd.fit(…, callback=…)`: stop early, keep the best parameters, average them, or several at once.

A callback is any function of `(state, info)`; these keep something from step to step, and are objects for that reason.
A judge looks at the parameters after the step, `info.loss` is of those before it.
"""

import math
from typing import Any

import jax
from jaxtyping import PyTree

from angd.method.step import Info
from angd.train.loop import TrainState
from angd.tree import combine

__all__ = ["Average", "Best", "Together"]


class Best:
    """Keep the best parameters, and end the run where they have not become better for long: early stopping.

    **Arguments:**

    - `judge`: a number of the parameters that should be small, such as a validation loss.
    - `every`: steps between two looks.
    - `patience`: looks without a better value after which the run ends; infinite to only keep the best.
    - `better`: a value counts as better when it is lower by this at least.

    **Attributes:** `params` and `value`, the best that was seen, None and infinite before the first look; `step` at
    which it was seen.

    **Example:** `best = Best(validation, patience=20); angd.fit(problem, callback=best); best.params`
    """

    def __init__(self, judge: Any, every: int = 1, patience: float = math.inf, better: float = 0.0):
        if not callable(judge) or every < 1 or not patience >= 1 or not better >= 0:
            raise ValueError("Best: it takes a judge (a function of parameters), every ≥ 1, patience ≥ 1, better ≥ 0.")
        self._judge, self._every, self._patience, self._better = jax.jit(judge), every, patience, better
        self.params: PyTree = None
        self.value, self.step, self._waited = math.inf, 0, 0

    def __call__(self, state: TrainState, info: Info) -> str | None:
        if state.k % self._every:
            return None
        value = float(self._judge(state.params))
        if value < self.value - self._better or self.params is None:
            self.params, self.value, self.step, self._waited = state.params, value, state.k, 0
            return None
        self._waited += 1
        return "stop" if self._waited >= self._patience else None


class Average:
    """An exponential moving average of the parameters, for runs whose last steps are noisy.

    It forgets the start: after k steps the weights are decay^(k − i) over their sum (Kingma and Ba's correction).

    **Arguments:**

    - `decay`: of the weights, 0.99 averages over the last hundred steps or so.

    **Attributes:** `params`, the average; None before the first step.

    **Example:** `average = Average(0.99); angd.fit(problem, callback=average); average.params`
    """

    def __init__(self, decay: float = 0.99):
        if not 0 <= decay < 1:
            raise ValueError(f"Average: decay must be at least 0 and below 1, got {decay}.")
        self.decay, self.params, self._weight = decay, None, 0.0

    def __call__(self, state: TrainState, info: Info) -> None:
        self._weight = self.decay * self._weight + 1
        share = 1 / self._weight
        old = state.params if self.params is None else self.params
        self.params = combine((1 - share, old), (share, state.params))


class Together:
    """Several callbacks as one. Each is called, unless one before it asks to take the step again.

    **Arguments:**

    - `callbacks`: functions of `(state, info)`; first those that may answer "retry", so that the others never see a
      step that did not last.

    **Example:** `angd.fit(problem, callback=Together(best, average, log))`
    """

    def __init__(self, *callbacks: Any):
        wrong = [callback for callback in callbacks if not callable(callback)]
        if wrong:
            raise ValueError(f"Together: every callback must be a function of state and info, got {wrong[0]!r}.")
        self.callbacks = callbacks

    def __call__(self, state: TrainState, info: Info) -> str | None:
        found = None
        for callback in self.callbacks:
            answer = callback(state, info)
            if answer == "retry":
                return answer
            found = found or answer
        return found
