"""Do networks on top of one another pay? The default recipe with and without them, into results/stages.json.

    python tools/measure_stages.py [burgers | others | ROW]... [--seeds=0,1,2] [--again]

Every run is `angd run` in a process of its own on one core, and its budget is the CPU time of that process, compilation
included, the evaluation of errors not.
"""

import sys
from pathlib import Path
from statistics import median
from typing import Any

from suites import Suites, measure

OUT = Path(__file__).parent.parent / "results" / "stages.json"
LATE = 6  # of some 60 looks
ALONE = "_alone"  # the same without stages


def both(name: str, task: str, seconds: int, options: str = "") -> dict[str, str]:
    """A task with and without stages."""
    budget = f"{options} --cpu-seconds {seconds}".strip()
    return {name: f"{task} energy {budget}", name + ALONE: f"{task} energy --stages 0 {budget}"}


SUITES: Suites = {
    "burgers": both("minus_sin", "burgers", 600),
    "others": both("cos", "burgers-cos", 300)
    | both("kovasznay", "examples/kovasznay.py", 150)
    | both("poisson", "examples/poisson.py", 90, "--interior 1000 --condition 100"),
}


def summary(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Medians over seeds of each row's last errors, and how much larger those without stages are.

    Errors go up and down with the points, so that `late` is the median of the last looks, a tenth of all.
    """
    values: dict[str, Any] = {}
    for row in sorted({r["row"] for r in runs}):
        mine = [r for r in runs if r["row"] == row]
        last = [r["records"][-1] for r in mine]
        errors = {name: median(r[3 + i] for r in last) for i, name in enumerate(mine[0]["columns"][3:])}
        values[row] = errors | {"seeds": len(mine), "cpu_seconds": round(median(r[0] for r in last))}
        late = [median(max(look[3:]) for look in r["records"][-LATE:]) for r in mine]
        values[row] |= {"steps": round(median(r[1] for r in last)), "largest": max(errors.values())}
        values[row] |= {"late": median(late)}
    pairs = {row: values[row + ALONE] for row in values if row + ALONE in values}
    return values | {"gain": {row: alone["late"] / values[row]["late"] for row, alone in pairs.items()}}


if __name__ == "__main__":
    measure(OUT, SUITES, summary, sys.argv[1:])
