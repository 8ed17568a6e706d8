"""Measure physics-informed training into results/pinn.json: accuracy at equal CPU time, ours and the rivals'.

    python tools/measure_pinn.py [table | rivals | ROW]... [--seeds=0,1,2] [--again]

Every run is `angd run` in a process of its own on one core, and its budget is the CPU time of that process, compilation
included, the evaluation of errors not. Runs that the file already has are kept, so that a long suite can be made in
pieces.
"""

import sys
from pathlib import Path
from statistics import median
from typing import Any

from runs import Suites, measure

OUT = Path(__file__).parent.parent / "results" / "pinn.json"
FIVE, FIFTEEN = 600, 1800  # minutes of two cores, in CPU seconds
SUITES: Suites = {
    "table": {
        "minus_sin": f"burgers --max-cpu-seconds {FIVE}",
        "minus_sin_long": f"burgers --max-cpu-seconds {FIFTEEN}",
        "sin": f"burgers-sin --max-cpu-seconds {FIVE}",
        "cos": f"burgers-cos --max-cpu-seconds {FIVE}",
        "euler": f"euler --max-cpu-seconds {FIVE}",
        "paper_network": f"burgers --optimizer energy-large --network paper --max-cpu-seconds {FIVE}",
    },
    # as tuned by `angd sweep`: docs/pinn.md says how
    "rivals": {
        "adam": f"burgers --optimizer adam --set rate=0.01 halving=12000 --max-cpu-seconds {FIVE}",
        "lbfgs": f"burgers --optimizer lbfgs --set keep=500 interior=3000 memory=100 --max-cpu-seconds {FIVE}",
        "ssbroyden": f"burgers --optimizer ssbroyden --max-cpu-seconds {FIVE}",
    },
}


def summary(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Medians over seeds of each row's last errors."""
    values: dict[str, Any] = {}
    for row in sorted({r["row"] for r in runs}):
        mine = [r for r in runs if r["row"] == row]
        names = mine[0]["columns"][3:]
        last = [r["records"][-1] for r in mine]
        values[row] = {name: median(r[3 + i] for r in last) for i, name in enumerate(names)} | {
            "seeds": len(mine),
            "cpu_seconds": round(median(r[0] for r in last)),
            "steps": round(median(r[1] for r in last)),
        }
    ratios = {rival: values[rival]["u"] / values["minus_sin"]["u"] for rival in SUITES["rivals"] if rival in values}
    return values | {"times_below": {rival: float(f"{ratio:.2g}") for rival, ratio in ratios.items()}}


if __name__ == "__main__":
    measure(OUT, SUITES, summary, sys.argv[1:])
