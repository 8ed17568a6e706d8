"""`angd list`: what can be run by name, with one line each. Imports nothing heavy."""

from dataclasses import dataclass

from angd.problems.library import TASKS
from angd.program.flow_catalogue import FLOWS
from angd.recipes.named import DENSITIES, FIELDS


@dataclass(frozen=True)
class ListOptions:
    """Show what can be run by name, with one line each."""

    def check(self) -> None:
        """There is nothing to refuse."""


def run_list(options: ListOptions) -> int:
    """Print the catalogue."""
    parts = {
        "tasks (angd run TASK); of your own: front.py[:name], package.module:name, water.xyz": {
            name: task.about for name, task in TASKS.items()
        },
        "recipes for differential equations and other fields (angd run TASK RECIPE)": {
            name: entry.about for name, entry in FIELDS.items()
        },
        "recipes for ground states and other densities": {name: entry.about for name, entry in DENSITIES.items()},
        "flows (angd flow --manifold NAME --functional NAME)": {
            f"{manifold} {name}": line for manifold, functionals in FLOWS.items() for name, line in functionals.items()
        },
    }
    for title, entries in parts.items():
        print(title)
        width = max(map(len, entries))
        for name, line in entries.items():
            print(f"  {name:<{width}}  {line}")
    return 0
