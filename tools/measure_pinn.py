"""Measure physics-informed training into results/pinn.json: accuracy at equal CPU time, ours and the rivals'.

    python tools/measure_pinn.py [table | rivals | ROW]... [--seeds=0,1,2] [--again]

Every run is `angd run` in a process of its own on one core, and its budget is the CPU time of that process, compilation
included, the evaluation of errors not. Runs that the file already has are kept, so that a long suite can be made in
pieces.
"""

import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from statistics import median
from threading import Lock
from typing import Any

from angd.experiments.files import write_atomically
from angd.experiments.folder import RunFolder
from environment import stamp

ROOT = Path(__file__).parent.parent
OUT = ROOT / "results" / "pinn.json"
FIVE, FIFTEEN = 600, 1800  # minutes of two cores, in CPU seconds
LOOKS = 60
# name of a row: arguments of `angd run`
SUITES: dict[str, dict[str, str]] = {
    "table": {
        "minus_sin": f"burgers --max-cpu-seconds {FIVE}",
        "minus_sin_long": f"burgers --max-cpu-seconds {FIFTEEN}",
        "sin": f"burgers-sin --max-cpu-seconds {FIVE}",
        "cos": f"burgers-cos --max-cpu-seconds {FIVE}",
        "euler": f"euler --max-cpu-seconds {FIVE}",
        "paper_network": f"burgers --optimizer energy-large --network paper --max-cpu-seconds {FIVE}",
    },
    "rivals": {
        "adam": f"burgers --optimizer adam --max-cpu-seconds {FIVE}",
        "lbfgs": f"burgers --optimizer lbfgs --max-cpu-seconds {FIVE}",
        "ssbroyden": f"burgers --optimizer ssbroyden --max-cpu-seconds {FIVE}",
    },
}


def find(row: str) -> str:
    """Arguments of a row."""
    for rows in SUITES.values():
        if row in rows:
            return rows[row]
    raise SystemExit(f"There is no row called {row!r}: {', '.join(r for rows in SUITES.values() for r in rows)}.")


def run(row: str, seed: int, core: int) -> dict[str, Any]:
    """One run in a process on one core: its looks, thinned."""
    environment = os.environ | {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false"}
    with tempfile.TemporaryDirectory() as place:
        folder = RunFolder(Path(place) / "run")
        angd = [sys.executable, "-m", "angd.cli", "run", *find(row).split(), "--seed", str(seed)]
        command = ["taskset", "-c", str(core), *angd, "--out", str(folder.path), "--checkpoint-seconds", "300"]
        subprocess.run(command, stdout=subprocess.DEVNULL, env=environment, check=True)
        rows = folder.rows()
    names = list(rows[-1].errors)
    kept = rows[:: max(1, len(rows) // LOOKS)]
    kept = kept if kept[-1] is rows[-1] else [*kept, rows[-1]]
    records = [[round(r.cpu_seconds, 1), r.step, r.loss, *r.errors.values()] for r in kept]
    return {"row": row, "seed": seed, "columns": ["cpu_seconds", "step", "loss", *names], "records": records}


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
    return values


def measure(rows: list[str], seeds: list[int], again: bool) -> None:
    runs = json.loads(OUT.read_text(encoding="utf-8"))["runs"] if OUT.exists() else []
    todo = [(row, seed) for seed in seeds for row in rows]
    if not again:
        done = {(r["row"], r["seed"]) for r in runs}
        todo = [job for job in todo if job not in done]
    free, lock = SimpleQueue(), Lock()
    for core in sorted(os.sched_getaffinity(0)):
        free.put(core)

    def one(job: tuple[str, int]) -> None:
        core = free.get()
        found = run(*job, core)
        free.put(core)
        with lock:
            runs[:] = [r for r in runs if (r["row"], r["seed"]) != job] + [found]
            runs.sort(key=lambda r: (r["row"], r["seed"]))
            save(runs)

    with ThreadPoolExecutor(free.qsize()) as pool:
        list(pool.map(one, todo))


def save(runs: list[dict[str, Any]]) -> None:
    report = stamp("python tools/measure_pinn.py", sorted({r["seed"] for r in runs}))
    report |= {"values": summary(runs), "runs": runs}
    text = json.dumps(report, indent=1).replace("\n     ", " ").replace("\n    ]", "]")
    write_atomically(OUT, lambda path: path.write_text(text + "\n", encoding="utf-8"))


def main(arguments: list[str]) -> None:
    seeds = [int(s) for s in next((a[8:] for a in arguments if a.startswith("--seeds=")), "0,1,2").split(",")]
    names = [a for a in arguments if not a.startswith("--")] or list(SUITES)
    rows = [row for name in names for row in SUITES.get(name, {name: ""})]
    for row in rows:
        find(row)
    measure(rows, seeds, "--again" in arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
