"""Measure ground states into results/vmc.json: the energy on fresh walkers at a given CPU time.

    python tools/measure_vmc.py [table | ROW]... [--seeds=0,1,2] [--again]

Every run is `angd run` in a process of its own on one core; its budget is the CPU time of that process, compilation and
pretraining included, the final evaluation not. Errors are above the reference energy, in thousandths of a Hartree.
"""

import sys
from pathlib import Path
from statistics import median
from typing import Any

from suites import Suites, measure

OUT = Path(__file__).parent.parent / "results" / "vmc.json"
METROPOLIS = "--chain metropolis"  # measured before there was a better chain
SUITES: Suites = {
    "table": {
        "he": "vmc-he --cpu-seconds 300",
        "be": f"vmc-be {METROPOLIS} --cpu-seconds 1200",
        "be_spring": "vmc-be spring --cpu-seconds 1200",
        "li2": f"vmc-li2 {METROPOLIS} --cpu-seconds 1800",
        "h10": "vmc-h10 --cpu-seconds 3600",
        "n2_start_400": f"vmc-n2 {METROPOLIS} --pretrain 400 --steps 400",
        "n2_start": f"vmc-n2 {METROPOLIS} --steps 2000",
        "n2": "vmc-n2 --cpu-seconds 7200",
    },
}


def summary(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Medians over seeds, and the largest standard error among them."""
    values: dict[str, Any] = {}
    for row in sorted({r["row"] for r in runs}):
        mine = [r for r in runs if r["row"] == row]
        values[row] = {
            "millihartree": round(1e3 * median(r["error"] for r in mine), 2),
            "standard_error": round(1e3 * max(r["standard_error"] for r in mine), 2),
            "of_seeds": [round(1e3 * r["error"], 2) for r in mine],
            "above_hartree_fock": round(median(r["energy"] - r["hartree_fock"] for r in mine), 3),
            "energy": round(median(r["energy"] for r in mine), 5),
            "rhat": round(max(r["rhat"] for r in mine), 2),
            "variance": float(f"{median(r['variance'] for r in mine):.2g}"),
            "seeds": len(mine),
            "steps": round(median(r["records"][-1][1] for r in mine)),
            "cpu_seconds": round(median(r["records"][-1][0] for r in mine)),
        }
    return values


if __name__ == "__main__":
    measure(OUT, SUITES, summary, sys.argv[1:])
