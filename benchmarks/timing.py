"""Times of several jobs, measured side by side, and kept."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np

from angd.train.environment import stamp
from angd.train.files import write_atomically

RESULTS = Path(__file__).parent.parent / "results"


def best_times(jobs: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """Best of several interleaved repetitions, after one to compile."""
    best = dict.fromkeys(jobs, np.inf)
    for repeat in range(repeats + 1):
        for name, job in jobs.items():
            start = time.perf_counter()
            jax.block_until_ready(job())
            best[name] = min(best[name], time.perf_counter() - start) if repeat else np.inf
    return best


def milliseconds(times: dict[str, float]) -> dict[str, float]:
    """To three digits, under names that a page can quote."""
    return {name.replace(", ", "_").replace(" ", "_"): float(f"{1e3 * t:.3g}") for name, t in times.items()}


def record(benchmark: str, case: str, found: dict[str, Any]) -> None:
    """Put one case into results/speed_<benchmark>.json."""
    save(RESULTS / f"speed_{benchmark}.json", f"python benchmarks/{benchmark}.py --record", case, found)


def save(out: Path, command: str, case: str, found: dict[str, Any]) -> None:
    """Put one case into a result file, beside those that are there."""
    values = json.loads(out.read_text(encoding="utf-8"))["values"] if out.exists() else {}
    report = stamp(command, 0) | {"values": values | {case: found}}
    write_atomically(out, lambda path: path.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8"))
