"""A second look at a run: its last or best checkpoint on a finer grid, at more points, or on more walkers."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax

from angd.problems.evaluation import Evaluator
from angd.problems.lookup import find_task
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

    **Returns:** what was found: `task`, `recipe`, `seed`, `step`; then `errors`, `test_loss` and `observables` by name,
    or `energy`, `standard_error`, `error` above the reference and how far the chain can be trusted.

    **Example:** `angd.evaluate("runs/vmc-be-angd-fr-0", walkers=4000)["energy"]`
    """
    _check(folder, grid, points)
    place = RunFolder(Path(folder))
    config = place.config()
    if problem is None and config.python:
        raise ValueError(
            f"{str(folder)!r} was made in Python: angd.evaluate(folder, problem), with what fit was given."
        )
    task = find_task(config.place, config.arguments) if problem is None else Task.of(problem)
    kept = Checkpoints(place.checkpoints, identity(config))
    if best and step is not None:
        raise ValueError("evaluate: give step or best, not both.")
    step = kept.best if best else kept.chosen(step)
    params = kept.params(task.start(jax.random.key(0)), step)
    counts = _given(dict(zip(COUNTS, (walkers, burn_in, measurements), strict=True)))
    final = _final(config, task, counts)
    if final is not None:
        _refuse(task, "a ground state is judged by its walkers", grid=grid, points=points)
        found = final(params, jax.random.fold_in(jax.random.key(FRESH + config.seed), step))
        found = {name: finite(value) for name, value in found.items()}
    else:
        _refuse(task, "only the energy of a ground state is measured on walkers", **counts)
        found = _fields(Evaluator(task, counts=grid, points=points or TEST_POINTS), params)
    head = {"task": task.name, "recipe": config.recipe, "seed": config.seed, "step": step}
    found = head | found | _given({"grid": None if grid is None else list(grid), "points": points}) | counts
    place.write("evaluation.json", found)
    return found


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


def _final(config: Config, task: Task, counts: dict[str, int]) -> Any:
    """How a ground state is judged, None for other tasks."""
    if not (task.is_density and hasattr(task.problem, "local_energies")):
        return None
    if config.python:
        known = {name: value for name, value in config.options.items() if name in COUNTS}
        return Vmc().changed(known | counts).final(task)
    recipe = named(str(config.recipe)).recipe.changed(config.options, config.recipe)
    return recipe.changed(counts, config.recipe).final(task)


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
