"""Tune the rivals on Burgers from −sin(πx) by successive halving on the test loss: results/rivals.json.

    python tools/tune_rivals.py [METHOD…] [--work=DIR]

`angd sweep` for each, on one core; what is in DIR is not run again. tools/measure_pinn.py then
runs the winners for longer.
"""

import json
import sys
from pathlib import Path

from angd.program.arguments import parse
from angd.program.commands.sweep import SweepOptions, sweep
from angd.train.environment import stamp
from angd.train.files import write_atomically

OUT = Path(__file__).parent.parent / "results" / "rivals.json"
# method: steps of those that reach the end, and what is tried
GRIDS: dict[str, tuple[int, str]] = {
    "adam": (30000, "--rate 2e-3,5e-3,1e-2 --halving 6000,12000 --points fresh,adaptive"),
    "lbfgs": (6000, "--keep 100,500,2000 --interior 1000,3000 --memory 50,100"),
    "ssbroyden": (4000, "--keep 100,500,2000 --interior 1000,3000"),
}


def tune(method: str, work: Path) -> dict[str, object]:
    """The best options, and what it took to find them."""
    steps, grid = GRIDS[method]
    size = ["--steps", str(steps), "--out", str(work / f"sw-{method}")]
    options = parse(["sweep", "burgers", method, *grid.split(), *size], {"sweep": SweepOptions})
    options.check()
    best, ranked, _ = sweep(options)
    spent = sum(records[-1].cpu_seconds for _, records in ranked if records)
    last = ranked[0][1][-1]
    return {
        "tried": len(ranked),
        "steps": steps,
        "cpu_seconds": round(spent),
        "best": {name: best.options[name] for name in options.values()},
        "best_error": last.error,
        "best_cpu_seconds": round(last.cpu_seconds),
    }


def main(arguments: list[str]) -> None:
    work = Path(next((a[7:] for a in arguments if a.startswith("--work=")), "runs/rivals"))
    values = json.loads(OUT.read_text(encoding="utf-8"))["values"] if OUT.exists() else {}
    for method in [a for a in arguments if not a.startswith("--")] or list(GRIDS):
        values[method] = tune(method, work)
        print(method, values[method], flush=True)
        text = json.dumps(stamp("python tools/tune_rivals.py", [0]) | {"values": values}, indent=1) + "\n"
        write_atomically(OUT, lambda path, text=text: path.write_text(text, encoding="utf-8"))


if __name__ == "__main__":
    main(sys.argv[1:])
