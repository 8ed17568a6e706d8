"""Which recipe suits a task: by what its problem can do, and by its size. The one place that says so."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from angd.recipes.base import Recipe, unknown
from angd.recipes.inference import Inference
from angd.recipes.named import DENSITIES, FIELDS, INFERENCE, named
from angd.recipes.pinn import GaussNewton
from angd.recipes.vmc import Vmc


def default(task: Any) -> str:
    """The name of the recipe for a task when nobody names one.

    Problems with residuals get Gauss–Newton (its variant for large networks where there are more parameters than
    residuals), densities the accelerated Fisher–Rao method (in the recipe for independent samples where the problem
    draws them), other fields accelerated L².

    **Arguments:**

    - `task`: an `angd.Task`.

    **Returns:** a name of `angd.recipes.named.RECIPES`.
    """
    if task.is_residual:
        rows = task.rows(GaussNewton.interior, GaussNewton.condition)
        return "energy-large" if task.size > rows else "energy"
    if task.is_density:
        return "inference" if task.is_drawn else "angd-fr"
    if hasattr(task.problem, "field") and hasattr(task.problem, "loss"):
        return "angd-l2"
    raise ValueError(
        f"{task.name}: no recipe fits a {type(task.problem).__name__}: it needs `residual` or `residuals`, "
        "`log_density` and `variation`, or `field` and `loss`; or name a method."
    )


def check_fit(name: str, is_density: bool, task_name: str) -> None:
    """Refuse a named recipe that is not for a kind of task."""
    if name in FIELDS and is_density:
        raise ValueError(f"{name} is not for {task_name}: take one of {', '.join(DENSITIES)}.")
    if (name in DENSITIES or name in INFERENCE) and not is_density:
        raise ValueError(f"{name} is not for {task_name}: take one of {', '.join(FIELDS)}.")


def suited(recipe: Recipe, task: Any, changes: Mapping[str, Any] | None = None, name: str | None = None) -> Recipe:
    """A named recipe with the task's own options, where it says nothing itself, and a person's changes.

    **Arguments:** `recipe`; `task`, whose `options` are meant for the family of its default recipe; `changes`, which
    win; `name`, how messages call the recipe.

    **Returns:** the recipe to run.
    """
    family = next((kind for kind in (Vmc, Inference, GaussNewton) if isinstance(recipe, kind)), None)
    usual = {} if family is None else {spec.name: spec.default for spec in fields(family)}
    if usual and not task.options.keys() <= usual.keys():
        wrong = min(task.options.keys() - usual)
        raise ValueError(unknown(f"option of {name}, which {task.name} wants,", wrong, usual))
    hints = {k: v for k, v in task.options.items() if k in usual and getattr(recipe, k) == usual[k]}
    return recipe.changed(hints | dict(changes or {}), name)


def chosen(name: str | None, task: Any, changes: Mapping[str, Any] | None = None) -> tuple[str, Recipe]:
    """A named recipe, or the default one, for a task.

    **Returns:** its name and the recipe, with the task's options and the changes.
    """
    name = name or default(task)
    check_fit(name, task.is_density, task.name)
    return name, suited(named(name).recipe, task, changes, name)
