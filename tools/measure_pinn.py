"""Measure physics-informed training into results/pinn.json: accuracy at equal CPU time, ours and the rivals'.

    python tools/measure_pinn.py [table | rivals | ROW]... [--seeds=0,1,2] [--again]

Every run is `angd run` in a process of its own on one core, and its budget is the CPU time of that process, compilation
included, the evaluation of errors not. Runs that the file already has are kept, so that a long suite can be made in
pieces.
"""

import json
import sys
from pathlib import Path
from statistics import median
from typing import Any

from suites import Suites, measure

OUT = Path(__file__).parent.parent / "results" / "pinn.json"
RIVALS = OUT.parent / "rivals.json"
FIVE, FIFTEEN = 600, 1800  # minutes of two cores, in CPU seconds
LONGER = 2  # than the runs of the sweep


def tuned(rival: str) -> str:
    """What tools/tune_rivals.py found; a rate that halved in so many steps does so more slowly in a longer run."""
    if not RIVALS.exists():
        return ""
    best = json.loads(RIVALS.read_text(encoding="utf-8"))["values"].get(rival, {}).get("best", {})
    chosen = {name: LONGER * value if name == "halving" else value for name, value in best.items()}
    return " ".join(
        f"--{name} {value:g}" if isinstance(value, float) else f"--{name} {value}" for name, value in chosen.items()
    )


SUITES: Suites = {
    "table": {
        "minus_sin": f"burgers --cpu-seconds {FIVE}",
        "minus_sin_long": f"burgers --cpu-seconds {FIFTEEN}",
        "sin": f"burgers-sin --cpu-seconds {FIVE}",
        "cos": f"burgers-cos --cpu-seconds {FIVE}",
        "euler": f"euler --cpu-seconds {FIVE}",
        "paper_network": f"burgers energy-large --network paper --cpu-seconds {FIVE}",
    },
    "rivals": {
        rival: f"burgers {rival} {tuned(rival)} --cpu-seconds {FIVE}" for rival in ("adam", "lbfgs", "ssbroyden")
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
    if "minus_sin" not in values:
        return values
    ratios = {rival: values[rival]["u"] / values["minus_sin"]["u"] for rival in SUITES["rivals"] if rival in values}
    return values | {"times_below": {rival: round(ratio) for rival, ratio in ratios.items()}}


if __name__ == "__main__":
    measure(OUT, SUITES, summary, sys.argv[1:])
