"""What a process of the program does once: precision, devices, the task of a configuration. Imports nothing heavy."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from angd import address
from angd.program.hosts import join
from angd.program.machines import Machines, joint_mesh
from angd.program.terminal import tell
from angd.train.cache import keep_compiled, keep_nothing
from angd.train.config import Config
from angd.train.folder import RunFolder

RUNS = Path("runs")
THREADS = 8


ALONE = Machines()


def begin(precision: str, cache: bool = True, machines: Machines = ALONE) -> Any:
    """Set the precision of this process, join others, see that JAX finds devices, and keep what is compiled, or not.

    **Returns:** a mesh of the devices over which samples are split, None where they are not.
    """
    # With as many threads as two cores, batched LU factorisations may wait for each other for ever in one pool of XLA;
    # every simulated device may block one more.
    os.environ.setdefault("PJRT_NPROC", str(max(THREADS, os.cpu_count() or 1) + (machines.devices or 0)))
    import jax

    if machines.devices is not None:
        jax.config.update("jax_num_cpu_devices", machines.devices)
    join(machines)
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
    return joint_mesh(machines)


def opened(config: Config, cache: bool = True) -> tuple[Config, Any, Any]:
    """The configuration with all that the task decides, the task, and the recipe.

    Without the cache nothing that an earlier process compiled is used, where compilation counts.
    """
    begin(config.precision, cache)
    return completed(config)


def completed(config: Config) -> tuple[Config, Any, Any]:
    """The configuration with all that the task decides, the task, and the recipe, in a process that has begun."""
    from angd.problems.lookup import find_task

    task = find_task(config.place, config.arguments)
    complete, recipe = config.completed(task)
    return complete, task, recipe


def agreed(config: Config | None, mesh: Any) -> Config:
    """The configuration of process 0, which the others must have been given too.

    **Arguments:** `config` of this process, None where only process 0 knows it; `mesh`, the devices of the run.
    """
    import jax

    from angd.train.hosts.peers import peers_of

    peers = peers_of(mesh)
    theirs = Config.from_dict(peers.found(lambda: config.to_dict() if config is not None else {}), "process 0")
    same = config is None or _without_place(config) == _without_place(theirs)
    if not peers.shared([same])[:, 0].all():
        raise ValueError("The processes were given different commands: give all of them the same.")
    jax.config.update("jax_enable_x64", theirs.precision == "f64")
    return theirs if config is None else config


def shared_path(mesh: Any, choose: Callable[[], Path]) -> Path:
    """The path that process 0 chooses."""
    from angd.train.hosts.peers import peers_of

    return Path(peers_of(mesh).found(lambda: str(choose())))


def _without_place(config: Config) -> dict[str, Any]:
    """A file of the user's must have the same text everywhere, wherever it is."""
    source = config.source and config.source.get("sha256")
    return config.to_dict() | {"source": source}


def check_source(config: Config, folder: RunFolder) -> Config:
    """Say that the user's file has changed since the run began; the run goes on with the new one."""
    now = address.source(config.place)
    if config.source is not None and now is not None and now["sha256"] != config.source["sha256"]:
        tell(f"{config.task} has changed since {str(folder.path)!r} was begun; the run goes on with the new text.")
    if config.source is not None and now is None:
        raise ValueError(f"{config.source['path']!r}, which this run was made with, is not there any more.")
    return config
