"""Times of several jobs, measured side by side."""

import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np


def best_times(jobs: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """Best of several interleaved repetitions, after one to compile."""
    best = dict.fromkeys(jobs, np.inf)
    for repeat in range(repeats + 1):
        for name, job in jobs.items():
            start = time.perf_counter()
            jax.block_until_ready(job())
            best[name] = min(best[name], time.perf_counter() - start) if repeat else np.inf
    return best
