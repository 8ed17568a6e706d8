"""A second look at a run: its last or best checkpoint on a finer grid, at more points, or on more walkers, and what
else its wave function says."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax

from angd.problems.evaluation import Evaluator
from angd.problems.extrapolation import extrapolate
from angd.problems.lookup import EXTRAPOLATED, check_observables, find_observables, find_task
from angd.problems.task import TEST_POINTS, Task
from angd.recipes.named import named
from angd.recipes.vmc import Vmc
from angd.train.checkpoint import Checkpoints
from angd.train.config import Config
from angd.train.folder import RunFolder, finite
from angd.train.run import identity

COUNTS = ("walkers", "burn_in", "measurements")
FRESH = 2000  # seeds from here on are those of second looks: none of their walkers was seen in training


def evaluate(
    folder: str | Path,
    problem: Any = None,
    *,
    step: int | None = None,
    best: bool = False,
    grid: Sequence[int] | None = None,
    points: int | None = None,
    walkers: int | None = None,
    burn_in: int | None = None,
    measurements: int | None = None,
    observables: str | Sequence[str] | Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Judge a checkpoint of a run again, and write `evaluation.json` into its folder.

    **Arguments:**

    - `folder`: of a run.
    - `problem`: what was given to `fit`, where that cannot be found by its address.
    - `step`: which checkpoint, by default the last.
    - `best`: the checkpoint with the smallest error instead of the last.
    - `grid`: points along the first two coordinates, for errors of fields.
    - `points`: held-out points inside the domain, for the test loss of fields.
    - `walkers`, `burn_in`, `measurements`: as the options of the recipe, for the energy of a ground state; the walkers
      are fresh and settle ten times as long as in training.
    - `observables`: what else to measure on these walkers: functions by name, as `angd.problems.vmc.evaluate` takes
      them, or names, "dipole,density,pair,forces"; "variance" extrapolates the energies of all kept checkpoints to
      variance 0.

    **Returns:** what was found: `task`, `recipe`, `seed`, `step`; then `errors`, `test_loss` and `observables` by name,
    or `energy`, `standard_error`, `error` above the reference and how far the chain can be trusted, with `observables`
    (`value` and `error` by name) and an `extrapolation` where they were asked for.

    **Example:** `angd.evaluate("runs/vmc-be-angd-fr-0", walkers=4000)["energy"]`
    """
    _check(folder, grid, points)
    names = _names(observables)
    place = RunFolder(Path(folder))
    config = place.config()
    if problem is None and config.python:
        raise ValueError(
            f"{str(folder)!r} was made in Python: angd.evaluate(folder, problem), with what fit was given."
        )
    task = _task(config, problem)
    kept = Checkpoints(place.checkpoints, identity(config))
    if best and step is not None:
        raise ValueError("evaluate: give step or best, not both.")
    step = kept.best if best else kept.chosen(step)
    params = kept.params(task.start(jax.random.key(0)), step)
    counts = _given(dict(zip(COUNTS, (walkers, burn_in, measurements), strict=True)))
    judge = _Judge.of(config, task, counts)
    if judge is not None:
        _refuse(task, "a ground state is judged by its walkers", grid=grid, points=points)
        functions = observables if isinstance(observables, Mapping) else find_observables(names, task.problem)
        before = _before(kept, step) if EXTRAPOLATED in names else []
        found = judge(params, step, functions)
        if before:
            looks = [judge(kept.params(task.start(jax.random.key(0)), k), k) for k in before]
            found["extrapolation"] = _extrapolated([*looks, found], [*before, step])
    else:
        _refuse(task, "only the energy of a ground state is measured on walkers", observables=observables, **counts)
        found = _fields(Evaluator(task, counts=grid, points=points or TEST_POINTS), params)
    head = {"task": task.name, "recipe": config.recipe, "seed": config.seed, "step": step}
    found = head | found | _given({"grid": None if grid is None else list(grid), "points": points}) | counts
    place.write("evaluation.json", found)
    return found


def _task(config: Config, problem: Any) -> Task:
    """What was given, by itself or by its address, or what the configuration names."""
    if problem is None:
        return find_task(config.place, config.arguments)
    return find_task(problem) if isinstance(problem, str) else Task.of(problem)


def _names(observables: Any) -> Sequence[str]:
    """Those that were asked for by name, all known."""
    if observables is None or isinstance(observables, Mapping):
        return ()
    names = observables.split(",") if isinstance(observables, str) else list(observables)
    check_observables(names)
    return names


def _check(folder: Any, grid: Any, points: Any) -> None:
    """Refuse what is of another kind or out of range."""
    if not isinstance(folder, str | Path):
        raise ValueError(f"evaluate: folder must be the folder of a run, got {folder!r}.")
    if grid is not None and not (isinstance(grid, Sequence) and grid and all(_is_count(n, 2) for n in grid)):
        raise ValueError(f"evaluate: grid takes whole numbers of points, 2 at least, e.g. (200, 200), got {grid!r}.")
    if points is not None and not _is_count(points, 1):
        raise ValueError(f"evaluate: points must be a whole number, 1 at least, got {points!r}.")


def _is_count(value: Any, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _given(what: dict[str, Any]) -> dict[str, Any]:
    """What was asked for."""
    return {name: value for name, value in what.items() if value is not None}


class _Judge:
    """Measures a ground state on walkers that no step of its run has seen."""

    def __init__(self, config: Config, task: Task, counts: dict[str, int]):
        if config.python:
            known = {name: value for name, value in config.options.items() if name in COUNTS}
            self.recipe: Any = Vmc().changed(known | counts)
        else:
            recipe = named(str(config.recipe)).recipe.changed(config.options, config.recipe)
            self.recipe = recipe.changed(counts, config.recipe)
        self.task, self.key = task, jax.random.key(FRESH + config.seed)

    @classmethod
    def of(cls, config: Config, task: Task, counts: dict[str, int]) -> "_Judge | None":
        """None for other tasks."""
        is_state = task.is_density and hasattr(task.problem, "local_energies")
        found = cls(config, task, counts) if is_state else None
        return found if found is not None and found.recipe.final(task) is not None else None

    def __call__(self, params: Any, step: int, functions: Mapping[str, Any] | None = None) -> dict[str, Any]:
        measure = self.recipe.final(self.task, functions) if functions else self.recipe.final(self.task)
        found = measure(params, jax.random.fold_in(self.key, step))
        return {name: value if isinstance(value, dict) else finite(value) for name, value in found.items()}


def _before(kept: Checkpoints, step: int) -> list[int]:
    """Earlier checkpoints of the same phase."""
    phase = kept.read(step)[1]["phase"]
    found = [k for k in kept.steps if k < step and kept.read(k)[1]["phase"] == phase]
    if not found:
        raise ValueError(
            f"variance takes several checkpoints of one phase, and there is none before step {step}: train longer, "
            "or save more often with --checkpoint-seconds."
        )
    return found


def _extrapolated(looks: Sequence[Mapping[str, Any]], steps: Sequence[int]) -> dict[str, Any] | None:
    """To variance 0; None where nothing has a variance, as exact sums."""
    known = [(look, k) for look, k in zip(looks, steps, strict=True) if look.get("variance") is not None]
    if len({look["variance"] for look, _ in known}) < 2:
        return None
    states = [SimpleNamespace(**{**look, "error": look["standard_error"]}) for look, _ in known]
    found = {name: finite(value) for name, value in asdict(extrapolate(states)).items()}
    return found | {"steps": [k for _, k in known]}


def _fields(evaluator: Evaluator, params: Any) -> dict[str, Any]:
    seen = evaluator(params, None, float("nan"))
    return {
        "errors": {name: finite(value) for name, value in seen.errors.items()},
        "test_loss": None if seen.test_loss is None else finite(seen.test_loss),
        "observables": {name: finite(value) for name, value in seen.observables.items()},
    }


def _refuse(task: Task, why: str, **given: Any) -> None:
    wrong = list(_given(given))
    if wrong:
        raise ValueError(f"{task.name}: leave out {', '.join(wrong)}: {why}.")
