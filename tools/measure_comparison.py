"""Accelerated against plain natural gradients, and both against SGD and Adam: results/comparison.json.

    python tools/measure_comparison.py [problem…] [--metric=l2|h1|h2]

Every method has the same number of configurations, chosen by successive halving on the training loss at fresh points;
the winner runs with three seeds. "iterations" is how many steps the accelerated method needs to reach, and keep, the
loss at which the plain one ends (running medians of nine steps, because losses at fresh points are noisy).
"""

import json
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax

from angd.experiments.files import write_atomically
from angd.experiments.pinn import METHODS, PROBLEMS
from angd.experiments.runner import Budget, Record, train
from angd.experiments.sweep import Options, configurations, halving
from angd.problems.pinn import Problem
from environment import stamp

OUT = Path(__file__).parent.parent / "results" / "comparison.json"
MOST, SEEDS, WINDOW = 24, (0, 1, 2), 9
# A step of a first-order method costs about a tenth of a natural gradient's.
RUNGS = {"natural": (30, 100, 300), "first": (300, 1000, 3000)}


def course(problem: Problem, method: str, options: Options, seed: int, steps: int) -> Iterator[tuple[Record, Any]]:
    """A run, step by step, without errors."""
    phases, start = METHODS[method].build(problem, **options), problem.init(jax.random.key(seed))
    budget = Budget(steps=steps, look=1e-9)
    return train(problem, phases, start, jax.random.key(1000 + seed), budget, lambda _: {"unknown": 0.0})


def tuned(problem: Problem, method: str, rungs: tuple[int, ...]) -> tuple[Options, float]:
    """The winner of a sweep, and the CPU seconds spent."""
    began = time.process_time()

    def start(options: Options) -> Iterator[Record]:
        return (record for record, _ in course(problem, method, options, 0, rungs[-1]))

    entries = halving(start, configurations(METHODS[method].grid, MOST), rungs, by=lambda r: r.loss)
    return entries[0].options, time.process_time() - began


def final(name: str, problem: Problem, method: str, options: Options, seed: int, steps: int) -> dict[str, Any]:
    """Losses of the winner step by step, and its last errors."""
    seen = list(course(problem, method, options, seed, steps))
    thin = [record for record, _ in seen[:: max(1, len(seen) // 300)]]
    return {
        "seed": seed,
        "steps": [r.step for r in thin],
        "cpu_seconds": [round(r.cpu_seconds, 2) for r in thin],
        "losses": [float(f"{r.loss:.4g}") for r in thin],
        "errors": PROBLEMS[name].errors(problem)(seen[-1][1]),
    }


def smooth(losses: list[float]) -> list[float]:
    """Running medians."""
    return [statistics.median(losses[max(0, i - WINDOW + 1) : i + 1]) for i in range(len(losses))]


def iterations_to(losses: list[float], goal: float) -> int | None:
    """The first step from which on the smoothed loss stays at or below a goal."""
    calm = smooth(losses)
    above = [i for i, value in enumerate(calm) if not value <= goal]
    first = above[-1] + 1 if above else 0
    return first + 1 if first < len(calm) else None


def compare(name: str, metric: str) -> dict[str, Any]:
    problem, found = PROBLEMS[name].problem(), {}
    for method in ("sgd", "adam", f"ngd-{metric}", f"angd-{metric}"):
        rungs = RUNGS["natural" if "ngd" in method else "first"]
        options, seconds = tuned(problem, method, rungs)
        runs = [final(name, problem, method, options, seed, rungs[-1]) for seed in SEEDS]
        found[method] = {"options": options, "tuning_cpu_seconds": round(seconds), "runs": runs}
        print(name, method, options, f"{seconds:.0f} s", [run["losses"][-1] for run in runs], flush=True)
    return found | {"iterations": speed(found[f"ngd-{metric}"]["runs"], found[f"angd-{metric}"]["runs"])}


def speed(plain: list[dict[str, Any]], fast: list[dict[str, Any]]) -> dict[str, Any]:
    """Iterations of the accelerated method to the plain one's final loss, seed by seed."""
    goals = [smooth(run["losses"])[-1] for run in plain]
    needed = [iterations_to(run["losses"], goal) for run, goal in zip(fast, goals, strict=True)]
    steps = plain[0]["steps"][-1]
    shares = [n / steps if n else float("inf") for n in needed]
    return {"plain": steps, "accelerated": needed, "share": statistics.median(shares)}


def main(arguments: list[str]) -> None:
    jax.config.update("jax_enable_x64", True)
    metric = next((a[9:] for a in arguments if a.startswith("--metric=")), "l2")
    names = [a for a in arguments if not a.startswith("--")] or ["burgers", "burgers-cos", "euler"]
    values = json.loads(OUT.read_text(encoding="utf-8"))["values"] if OUT.exists() else {}
    for name in names:
        values.setdefault(name.replace("-", "_"), {})[metric] = compare(name, metric)
        report = stamp("python tools/measure_comparison.py", list(SEEDS)) | {"values": values}
        text = json.dumps(report, indent=1)
        write_atomically(OUT, lambda path, text=text: path.write_text(text + "\n", encoding="utf-8"))


if __name__ == "__main__":
    main(sys.argv[1:])
