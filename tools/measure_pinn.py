"""Measure physics-informed training into results/pinn.json: accuracy at equal CPU time, ours and the rivals'.

    python tools/measure_pinn.py [table | rivals]... [--seeds 0,1,2] [--again]

Every run is a process of its own on one core, and its budget is the CPU time of that process, compilation included, the
evaluation of errors not. Runs that the file already has are kept, so that a long suite can be made in pieces.
"""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from statistics import median
from threading import Lock
from typing import Any

from angd.experiments.files import write_atomically
from environment import stamp

ROOT = Path(__file__).parent.parent
OUT = ROOT / "results" / "pinn.json"
FIVE, FIFTEEN = 600.0, 1800.0  # minutes of two cores, in CPU seconds
LOOKS = 30
# name of a row: (problem, method, network, CPU seconds, options)
SUITES: dict[str, dict[str, tuple[str, str, str, float, dict[str, Any]]]] = {
    "table": {
        "minus_sin": ("burgers", "energy", "small", FIVE, {}),
        "minus_sin_long": ("burgers", "energy", "small", FIFTEEN, {}),
        "sin": ("burgers-sin", "energy", "small", FIVE, {}),
        "cos": ("burgers-cos", "energy", "small", FIVE, {"interior": 4000}),
        "euler": ("euler", "energy", "small", FIVE, {"interior": 1000, "condition": 200}),
        "paper_network": ("burgers", "energy-large", "paper", FIVE, {}),
    },
    "rivals": {
        "adam": ("burgers", "adam", "small", FIVE, {}),
        "lbfgs": ("burgers", "lbfgs", "small", FIVE, {}),
        "ssbroyden": ("burgers", "ssbroyden", "small", FIVE, {}),
    },
}


def run(row: str, seed: int) -> dict[str, Any]:
    """One run, in this process: its records, thinned."""
    import jax

    jax.config.update("jax_enable_x64", True)
    from angd.experiments.pinn import METHODS, PROBLEMS
    from angd.experiments.runner import Budget, train

    problem_name, method, network, seconds, options = find(row)
    experiment = PROBLEMS[problem_name]
    problem = experiment.problem(network)
    start, budget = problem.init(jax.random.key(seed)), Budget(cpu_seconds=seconds, look=seconds / LOOKS)
    phases, errors = METHODS[method].build(problem, **options), experiment.errors(problem)
    rows, columns = [], []
    for r, _ in train(problem, phases, start, jax.random.key(1000 + seed), budget, errors):
        rows.append([round(r.cpu_seconds, 1), r.step, r.loss, *r.errors.values()])
        columns = ["cpu_seconds", "step", "loss", *r.errors]
        print(f"{row} {seed}: {r.cpu_seconds:.0f} s, step {r.step}, loss {r.loss:.1e}, {r.errors}", file=sys.stderr)
    return {"row": row, "seed": seed, "columns": columns, "records": rows}


def find(row: str) -> tuple[str, str, str, float, dict[str, Any]]:
    return next(rows[row] for rows in SUITES.values() if row in rows)


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


def start(row: str, seed: int, core: int) -> dict[str, Any]:
    """A run in a process on one core."""
    environment = os.environ | {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false"}
    command = ["taskset", "-c", str(core), sys.executable, __file__, "--one", row, str(seed)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment, check=True)
    return json.loads(done.stdout)


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
        found = start(*job, core)
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
    if "--one" in arguments:
        row, seed = arguments[arguments.index("--one") + 1 :]
        print(json.dumps(run(row, int(seed))))
        return
    seeds = [int(s) for s in next((a[8:] for a in arguments if a.startswith("--seeds=")), "0,1,2").split(",")]
    names = [a for a in arguments if not a.startswith("--")] or list(SUITES)
    rows = [row for name in names for row in SUITES.get(name, [name])]
    measure(rows, seeds, "--again" in arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
