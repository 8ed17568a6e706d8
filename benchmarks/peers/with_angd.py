"""Burgers' equation as a user of this library trains it: the default recipe, nothing set."""

from typing import Any

import jax
from watch import Watch

import angd
from angd.tree import count

jax.config.update("jax_enable_x64", True)


def train(method: str, seed: int, watch: Watch) -> int:
    """`method` is the name of a recipe; "default" is what the library chooses."""
    from angd.problems.library import burgers

    task = burgers()

    def callback(state: Any, info: Any) -> str | None:
        return None if watch(task.field, state.params, state.k) else "stop"

    name = None if method == "default" else method
    fit = angd.fit(task, name, key=seed, cpu_seconds=2 * watch.budget, callback=callback, progress=False)
    return count(fit.params)
