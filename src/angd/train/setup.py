"""From a task and a method to what the loop needs: problem, phases, start, and how to judge parameters."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.sharding import Mesh
from jaxtyping import Array, PyTree

from angd.method import parallel
from angd.method.step import ANGD
from angd.problems.evaluation import Evaluation, Evaluator
from angd.problems.samplers import Spread
from angd.problems.solution import Solution
from angd.problems.task import Task
from angd.recipes.base import Phase, Recipe
from angd.train.hosts.placement import copied, divided
from angd.train.loop import TrainState, cast

Final = Callable[[PyTree], dict[str, float]]


@dataclass(frozen=True)
class Setup:
    """A run, ready to begin.

    **Attributes:** `evaluate(state, loss)` gives what is to be seen besides the loss; `final(params)` an evaluation at
    the end with `error` and `standard_error`, where those of the steps are not the last word; `solution(params)` the
    fields on a grid; `mesh`, the devices over which samples are split, None for one device.
    """

    task: Task
    problem: Any
    phases: list[Phase]
    params: PyTree
    key: Array
    evaluate: Callable[[TrainState, float], Evaluation]
    final: Final | None = None
    solution: Callable[[PyTree], Solution] | None = None
    mesh: Mesh | None = None

    def over(self, mesh: Mesh | None) -> "Setup":
        """The same with samples split over devices and parameters on all of them."""
        if mesh is None:
            return self
        row = parallel.mesh(mesh.devices.ravel())  # whatever its axes are called
        phases = [replace(phase, sampler=Spread.over(phase.sampler, row)) for phase in self.phases]
        return replace(self, phases=phases, params=parallel.replicate(self.params, row), mesh=row)

    def placed(self, state: TrainState) -> TrainState:
        """A state that was read from a file, on the devices of this run, however many wrote it."""
        if self.mesh is None:
            return state
        params, optimiser = copied((state.params, state.state), self.mesh)
        return replace(state, params=params, samples=divided(state.samples, self.mesh), state=optimiser)

    def at_phase(self, phase: int, round: int = 0) -> TrainState:
        """A state with the shapes of a round of a phase instead of numbers."""

        def begin(params: PyTree) -> tuple[PyTree, PyTree, PyTree]:
            for grow in growths:
                params = grow(self.key, self.problem, params, jnp.ones(()))
            params = cast(params, chosen.single)
            samples = cast(chosen.sampler(self.key, self.problem, params), chosen.single)
            return params, samples, chosen.optimiser.init(self.problem, params, samples)

        chosen, before = self.phases[phase], self.phases[1:phase]
        growths = [each.grow for each in before for _ in range(each.rounds) if each.grow is not None]
        growths += [chosen.grow] * (round + (phase > 0)) if chosen.grow is not None else []
        params, samples, state = eqx.filter_eval_shape(begin, self.params)
        return replace(TrainState(params), samples=samples, state=state, phase=phase, round=round)


def prepare(task: Task, recipe: Recipe, seed: int, start: PyTree = None) -> Setup:
    """With a recipe. Runs with one seed share their start and their points.

    **Arguments:** `task`; `recipe`; `seed`; `start`, parameters of another run, which need no pretraining any more.

    **Returns:** a `Setup`.
    """
    phases = [phase for phase in recipe.phases(task, seed) if start is None or not phase.pretraining]
    return assemble(task, recipe.problem(task), phases, seed, recipe.final(task), start)


def assemble(
    task: Task, problem: Any, phases: list[Phase], seed: int, final: Any = None, start: PyTree = None
) -> Setup:
    """With phases."""
    start = task.start(jax.random.key(seed)) if start is None else start
    key = jax.random.key(1000 + seed)
    evaluator, pretraining = evaluator_of(task), {i for i, phase in enumerate(phases) if phase.pretraining}
    if hasattr(problem, "check_start") and hasattr(phases[-1].sampler, "start"):
        problem.check_start(start, phases[-1].sampler.start(key, 1)[0])

    def evaluate(state: TrainState, loss: float) -> Evaluation:
        return evaluator(state.params, state.samples, loss, state.phase in pretraining)

    def at_the_end(params: PyTree) -> dict[str, float]:
        return final(params, jax.random.fold_in(key, 2**31 - 1))

    return Setup(task, problem, phases, start, key, evaluate, None if final is None else at_the_end, evaluator.solution)


def within(setup: Setup, memory: int | None) -> Setup:
    """With a budget of memory for every optimiser that goes by one and has none of its own."""
    if memory is None:
        return setup
    made: dict[int, Any] = {}  # phases that share an optimiser go on sharing it

    def bounded(optimiser: Any) -> Any:
        if not isinstance(optimiser, ANGD) or optimiser.memory is not None:
            return optimiser
        return made.setdefault(id(optimiser), replace(optimiser, memory=memory))

    phases = [replace(phase, optimiser=bounded(phase.optimiser)) for phase in setup.phases]
    return replace(setup, phases=phases)


_evaluators: list[tuple[Task, Evaluator]] = []


def evaluator_of(task: Task) -> Evaluator:
    """The same for all runs of a task, so that it compiles once; the last tasks are remembered."""
    for known, evaluator in _evaluators:
        if known is task:
            return evaluator
    made = Evaluator(task)
    _evaluators[:] = [*_evaluators[-3:], (task, made)]
    return made
