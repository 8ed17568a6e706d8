"""From a configuration to what the loop needs: problem, phases, start, and how to look at parameters."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import equinox as eqx
import jax
from jaxtyping import Array, PyTree

from angd.problems import library
from angd.problems.evaluation import Evaluation, Evaluator
from angd.problems.solution import Solution
from angd.problems.task import Task
from angd.recipes.base import Phase
from angd.train.config import Config
from angd.train.loop import Stand, cast


@dataclass(frozen=True)
class Setup:
    """A run, ready to begin.

    **Attributes:** `look(stand, loss)` gives what is to be seen besides the loss; `finish(params)` a final evaluation
    with `error` and `standard_error`, where looks are not the last word; `solution(params)` fields on a grid.
    """

    problem: Any
    phases: list[Phase]
    params: PyTree
    key: Array
    look: Callable[[Stand, float], Evaluation]
    finish: Callable[[PyTree], dict[str, float]] | None = None
    solution: Callable[[PyTree], Solution] | None = None

    def at_phase(self, phase: int) -> Stand:
        """A stand with the shapes of a phase instead of numbers."""

        def begin(params: PyTree) -> tuple[PyTree, PyTree, PyTree]:
            params = cast(params, chosen.single)
            samples = cast(chosen.sampler(self.key, self.problem, params), chosen.single)
            return params, samples, chosen.optimiser.init(self.problem, params, samples)

        chosen = self.phases[phase]
        params, samples, state = eqx.filter_eval_shape(begin, self.params)
        return replace(Stand(params), samples=samples, state=state, phase=phase)


def prepare(config: Config) -> Setup:
    """Build it; sets the precision of the process. Runs with one seed share their start and their points."""
    jax.config.update("jax_enable_x64", config.precision == "f64")
    task, evaluator = _task(config.experiment, config.network, config.precision)
    recipe = config.preset()
    problem, phases = recipe.problem(task), recipe.phases(task, config.seed)
    params, key = task.start(jax.random.key(config.seed)), jax.random.key(1000 + config.seed)
    final, pretraining = recipe.final(task), {i for i, phase in enumerate(phases) if phase.pretraining}
    if hasattr(problem, "check_start"):
        problem.check_start(params, phases[-1].sampler.start(key, 1)[0])

    def look(stand: Stand, loss: float) -> Evaluation:
        return evaluator(stand.params, stand.samples, loss, stand.phase in pretraining)

    def finish(params: PyTree) -> dict[str, float]:
        assert final is not None
        return final(params, jax.random.fold_in(key, 2**31 - 1))

    return Setup(problem, phases, params, key, look, None if final is None else finish, evaluator.solution)


@lru_cache
def _task(experiment: str, network: str, precision: str) -> tuple[Task, Evaluator]:
    """The same objects for all runs of a process, so that they compile once."""
    task = library.TASKS[experiment](network)
    return task, Evaluator(task)
