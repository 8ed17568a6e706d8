"""`angd list`: what can be run by name; `angd list NAME` tells more of one. Imports nothing heavy."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

import tyro

from angd.problems.library import TASKS, Builtin
from angd.program.flow_catalogue import FLOWS
from angd.program.terminal import columns, folded, is_terminal
from angd.recipes.base import Recipe, unknown
from angd.recipes.named import DENSITIES, FIELDS, INFERENCE, RECIPES, Named
from angd.train.config import usual_recipe


@dataclass(frozen=True)
class ListOptions:
    """angd list [NAME]: what can be run by name, or more about one task, recipe or manifold.

    Of a task it says which recipes fit and how long it takes; of a recipe, its options and its tasks.
    """

    examples: ClassVar[tuple[str, ...]] = (
        "angd list",
        "angd list burgers",
        "angd list angd-l2",
    )

    name: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="NAME", help_behavior_hint="")] = None
    """A task, a recipe or a manifold."""

    def check(self) -> None:
        """Refuse a name that nobody knows."""
        known = [*TASKS, *RECIPES, *FLOWS]
        if self.name is not None and self.name not in known:
            raise ValueError(unknown("task, recipe or manifold", self.name, known))


def run_list(options: ListOptions) -> int:
    """Print the catalogue, or a page of it."""
    name = options.name
    if name is None:
        catalogue()
    elif name in TASKS:
        tell_task(name)
    elif name in RECIPES:
        tell_recipe(name)
    else:
        show(f"functionals on {name} (angd flow --manifold {name})", FLOWS[name])
    return 0


def catalogue() -> None:
    """Everything, with one line each."""
    own = "of your own: front.py[:name], package.module:name, water.xyz"
    show(f"tasks (angd run TASK); {own}", {name: task.about for name, task in TASKS.items()})
    fields = "recipes for differential equations and other fields (angd run TASK RECIPE)"
    show(fields, {name: entry.about for name, entry in FIELDS.items()})
    show("recipes for ground states and other densities", {name: entry.about for name, entry in DENSITIES.items()})
    draws = "recipes for densities that draw their own samples"
    show(draws, {name: entry.about for name, entry in INFERENCE.items()})
    flows = {f"{manifold} {name}": line for manifold, found in FLOWS.items() for name, line in found.items()}
    show("flows (angd flow --manifold NAME --functional NAME)", flows)
    print("angd list NAME tells more of one.")


def tell_task(name: str) -> None:
    """What a task is, which recipes fit it, and how long a run takes."""
    task, usual = TASKS[name], usual_recipe(name, {})
    print(f"{name}: {task.about}")
    print(f"takes {duration(task.cpu_seconds)} of CPU time where no limit is given")
    print(f"usual recipe: {usual}{_said(task.options)}")
    fitting = recipes_for(task)
    show(f"recipes that fit (angd run {name} RECIPE)", {key: entry.about for key, entry in fitting.items()})
    second = next(key for key in fitting if key != usual)
    lines = (f"angd run {name}", f"angd run {name} --dry-run", f"angd compare {name} {usual},{second}")
    print("\n".join(["try:", *(f"  {line}" for line in lines)]))


def tell_recipe(name: str) -> None:
    """What a recipe is, its options with their values, the tasks that it fits and how long they take."""
    entry = RECIPES[name]
    print(f"{name}: {entry.about}")
    show(f"options (angd run TASK {name} --help)", values(entry.recipe))
    fitting = {key: task for key, task in TASKS.items() if name in recipes_for(task)}
    show("tasks that fit, and their usual CPU time", {key: duration(t.cpu_seconds) for key, t in fitting.items()})
    first = next(iter(fitting))
    lines = [f"angd run {first} {name}", f"angd run {first} {name} --help"]
    lines += [f"angd sweep {first} {name}"] if entry.grid else []
    print("\n".join(["try:", *(f"  {line}" for line in lines)]))


def recipes_for(task: Builtin) -> Mapping[str, Named]:
    """The recipes of its kind."""
    if not task.density:
        return FIELDS
    return INFERENCE if task.recipe in INFERENCE else DENSITIES


def values(recipe: Recipe) -> dict[str, str]:
    """Options as one types them, with their values."""
    shown = {True: "on", False: "off"}
    return {
        f"--{name.replace('_', '-')}": shown[value] if isinstance(value, bool) else f"{value}"
        for name, value in recipe.options().items()
    }


def show(title: str, entries: Mapping[str, str]) -> None:
    """A title and lines in two columns, folded where a terminal is narrow."""
    width = max(map(len, entries))
    room = columns(sys.stdout) if is_terminal(sys.stdout) else 10**6
    print(folded(title, room))
    for name, line in entries.items():
        print(folded(f"  {name:<{width}}  {line}", room, " " * (width + 4)))


def duration(seconds: float) -> str:
    """As one says it."""
    return f"{seconds:g} s" if seconds < 120 else f"{seconds / 60:g} min" if seconds < 7200 else f"{seconds / 3600:g} h"


def _said(options: Mapping[str, object]) -> str:
    """The task's own options."""
    own = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in options.items())
    return f" ({own})" if own else ""
