"""Runs beside each other: medians over seeds, and who is ahead. Imports nothing heavy.

Runs belong together if everything that was chosen is the same but the seed. Where no solution is known, runs are ranked
by their test loss, and how far seeds are apart estimates the error.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from angd.train.config import BUDGETS, Config
from angd.train.folder import RunFolder

INFINITE = float("inf")


@dataclass(frozen=True)
class Group:
    """Runs that differ in their seed alone."""

    label: str
    folders: list[RunFolder]

    @property
    def seeds(self) -> list[int]:
        return sorted({folder.config().seed for folder in self.folders})


def groups(folders: Sequence[RunFolder]) -> list[Group]:
    """Runs by everything that was chosen; names say the recipe, and what else differs between its groups."""
    kinds: dict[str, list[tuple[Config, RunFolder]]] = {}
    for folder in folders:
        config = folder.config()
        kinds.setdefault(str(config.recipe), []).append((config, folder))
    found: dict[str, list[RunFolder]] = {}
    for recipe, runs in kinds.items():
        varying = _varying([chosen(config) for config, _ in runs])
        for config, folder in runs:
            own = chosen(config)
            said = ", ".join(f"{name} {own.get(name)}" for name in varying)
            found.setdefault(short_name(recipe) + (f" ({said})" if said else ""), []).append(folder)
    return [Group(label, runs) for label, runs in found.items()]


def chosen(config: Config) -> dict[str, Any]:
    """Everything that makes a run what it is, but its seed and limits."""
    found = {**config.options, **config.arguments, "precision": config.precision}
    start = config.start or {}
    return found | ({"from": f"{start.get('folder')}, step {start.get('step')}"} if start else {})


def limits(config: Config) -> tuple[Any, ...]:
    """The budget."""
    return tuple(getattr(config, name) for name in BUDGETS)


def _varying(all_chosen: list[dict[str, Any]]) -> list[str]:
    names = dict.fromkeys(name for one in all_chosen for name in one)
    return [name for name in names if len({repr(one.get(name)) for one in all_chosen}) > 1]


def short_name(recipe: str) -> str:
    """An optimiser that was made in Python is known by the name of its class."""
    return recipe.partition("(")[0].partition("\n")[0]


def table(folders: Sequence[RunFolder]) -> list[dict[str, Any]]:
    """One line for each group: medians over its seeds, the best first."""
    budgets = {limits(folder.config()) for folder in folders}
    rows = [row for group in groups(folders) if (row := _row(group, len(budgets) > 1))]
    return sorted(rows, key=rank)


def rank(row: dict[str, Any]) -> float:
    """By error where that is known, else by test loss, else by loss."""
    for name in ("error", "test_loss", "loss"):
        if row[name] is not None:
            return row[name]
    return INFINITE


def _row(group: Group, unequal: bool) -> dict[str, Any] | None:
    """Medians of the runs that ended; None where there are none."""
    found = [summary for folder in group.folders if (summary := folder.read("summary.json")) and folder.records()]
    if not found:
        return None
    return {
        "recipe": group.label,
        "seeds": len(group.seeds),
        "steps": round(median(summary["steps"] for summary in found)),
        "seconds": round(median(summary["seconds"] for summary in found), 1),
        "cpu_seconds": round(median(summary["cpu_seconds"] for summary in found), 1),
        "loss": middle([summary["loss"] for summary in found]),
        "test_loss": middle([summary["test_loss"] for summary in found]),
        "error": middle([summary["largest_error"] for summary in found]),
        "standard_error": max((summary.get("standard_error") or 0.0 for summary in found), default=0.0),
        "apart": _apart(group),
        "budget": _budget(group) if unequal else None,
    }


def _apart(group: Group) -> float | None:
    """How far the solutions of several seeds are from their mean; None where there is one seed, or no solution."""
    if len(group.seeds) < 2:
        return None
    solutions = [found for folder in group.folders if (found := folder.read_arrays("solution.npz"))]
    if len(solutions) < 2:
        return None
    from angd.problems.solution import differences

    return max(differences(solutions).values())


def _budget(group: Group) -> str:
    """What the runs were allowed; runs with different budgets are not a comparison."""
    shown = []
    for folder in group.folders:
        parts = zip(BUDGETS, limits(folder.config()), strict=True)
        shown.append(", ".join(f"{value:g} {name.replace('_', ' ')}" for name, value in parts if value is not None))
    return " or ".join(dict.fromkeys(shown))


def middle(values: Sequence[float | None]) -> float | None:
    """The median, where all values are numbers."""
    return None if None in values else median(value for value in values if value is not None)


def times(ratio: float) -> str:
    """A ratio as one says it: 2.13, 41.2, 1410."""
    return f"{ratio:.3g}" if ratio < 100 else f"{float(f'{ratio:.3g}'):.0f}"


def short(value: float | None) -> str:
    """A number in a table: losses by their order, energies, which are negative, by their digits."""
    if value is None:
        return "–"
    return f"{value:.5f}" if value < 0 else f"{value:.2e}"
