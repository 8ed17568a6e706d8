"""Measure the equations by name into results/equations.json: the default recipe, nothing tuned for a problem.

    python tools/measure_equations.py [short | budget | ROW]... [--seeds=0] [--again]

Every run is `angd run NAME` in a process of its own on one core, and its budget is the CPU time of that process,
compilation included, the evaluation of errors not. `short` is a minute for each, `budget` the time of its goal.
"""

import sys
from pathlib import Path
from statistics import median
from typing import Any

from suites import Suites, measure

OUT = Path(__file__).parent.parent / "results" / "equations.json"
MINUTE = 60
BUDGETS = {
    "poisson-5d": 300,
    "allen-cahn": 600,
    "kovasznay": 300,
    "helmholtz": 300,
    "wave": 300,
    "kdv": 900,
    "poisson-10d": 300,
    "kuramoto-sivashinsky": 900,
    "cavity": 300,
}
OTHERS = ("poisson", "heat-4d", "insulated", "viscosity", "viscosity-family", "sod")


def row(name: str) -> str:
    """A name as a key."""
    return name.replace("-", "_")


SUITES: Suites = {
    "short": {f"{row(name)}_short": f"{name} --cpu-seconds {MINUTE}" for name in (*BUDGETS, *OTHERS)},
    "budget": {row(name): f"{name} --cpu-seconds {seconds}" for name, seconds in BUDGETS.items()},
}


def summary(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Medians over seeds of each row's last errors, and the largest of them."""
    values: dict[str, Any] = {}
    for name in sorted({r["row"] for r in runs}):
        mine = [r for r in runs if r["row"] == name]
        last = [r["records"][-1] for r in mine]
        known = [i for i, error in enumerate(last[0][3:], 3) if error is not None]
        errors = {mine[0]["columns"][i]: median(r[i] for r in last) for i in known}
        values[name] = errors | {
            "largest": max(errors.values()),
            "seeds": len(mine),
            "cpu_seconds": round(median(r[0] for r in last)),
            "steps": round(median(r[1] for r in last)),
        }
    return values


if __name__ == "__main__":
    measure(OUT, SUITES, summary, sys.argv[1:])
