"""What a process of the program does once: precision, devices, the task of a configuration. Imports nothing heavy."""

import os
from pathlib import Path
from typing import Any

from angd import address
from angd.program.terminal import tell
from angd.train.cache import keep_compiled, keep_nothing
from angd.train.config import Config
from angd.train.folder import RunFolder

RUNS = Path("runs")
THREADS = 8


def begin(precision: str, cache: bool = True) -> None:
    """Set the precision of this process, see that JAX finds a device, and keep what is compiled, or nothing."""
    # With as many threads as two cores, batched LU factorisations may wait for each other for ever in one pool of XLA.
    os.environ.setdefault("PJRT_NPROC", str(max(THREADS, os.cpu_count() or 1)))
    import jax

    jax.config.update("jax_enable_x64", precision == "f64")
    if cache:
        keep_compiled()
    else:
        keep_nothing()
    try:
        jax.devices()
    except RuntimeError as error:
        wanted = os.environ.get("JAX_PLATFORMS", "")
        why = f"JAX_PLATFORMS={wanted} asks for devices that are not here" if wanted else str(error)
        raise ValueError(f"JAX finds no device: {why}.") from None


def opened(config: Config, cache: bool = True) -> tuple[Config, Any, Any]:
    """The configuration with all that the task decides, the task, and the recipe.

    Without the cache nothing that an earlier process compiled is used, where compilation counts.
    """
    from angd.problems.lookup import find_task

    begin(config.precision, cache)
    task = find_task(config.place, config.arguments)
    complete, recipe = config.completed(task)
    return complete, task, recipe


def check_source(config: Config, folder: RunFolder) -> Config:
    """Say that the user's file has changed since the run began; the run goes on with the new one."""
    now = address.source(config.place)
    if config.source is not None and now is not None and now["sha256"] != config.source["sha256"]:
        tell(f"{config.task} has changed since {str(folder.path)!r} was begun; the run goes on with the new text.")
    if config.source is not None and now is None:
        raise ValueError(f"{config.source['path']!r}, which this run was made with, is not there any more.")
    return config
