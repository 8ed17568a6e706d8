"""Which processes work on a run together: as one says, or as `srun` and `mpirun` say. Imports nothing heavy."""

import os
from collections.abc import Mapping
from typing import NamedTuple

TOGETHER = "--coordinator HOST:PORT, --processes N and --process I belong together: give all three"
HEARTBEAT = 30  # seconds without a sign of life after which a process counts as dead
RANGES = {"heartbeat": (2, 3600), "processes": (1, 100_000), "watchdog": (1, 10**9)}
MOST_DEVICES = 1024  # of one process


class Cluster(NamedTuple):
    """Processes that work together.

    **Attributes:** `coordinator`, host and port of process 0, None where JAX finds it; `processes`, how many;
    `process`, which one this is.
    """

    coordinator: str | None
    processes: int
    process: int


class _Launcher(NamedTuple):
    """The variables in which a launcher says how many processes it has started, which one this is, and, where JAX can
    find the coordinator from it, one more."""

    name: str
    processes: str
    process: str
    place: str | None = None


LAUNCHERS = (
    # The number of tasks of the step: SLURM_NTASKS is set in a batch script as well, which is one process.
    _Launcher("srun", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_STEP_NODELIST"),
    _Launcher("mpirun", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_MCA_orte_hnp_uri"),
    _Launcher("mpirun", "PMI_SIZE", "PMI_RANK"),
)


def cluster_of(
    coordinator: str | None,
    processes: int | None,
    process: int | None,
    environment: Mapping[str, str] = os.environ,
) -> Cluster | None:
    """The processes that options and launcher speak of; None where this one works alone.

    **Arguments:** `coordinator`, `processes`, `process`, as given, None where not; `environment`.

    **Returns:** a `Cluster`; what does not fit together raises one sentence.
    """
    if coordinator is None and process is None and processes in (None, 1):
        return None if processes == 1 else _launched(environment)
    if coordinator is not None:
        _check_address(coordinator)
    launcher = _launcher(environment)
    if coordinator is not None and processes is None and process is None and launcher is not None:
        return Cluster(coordinator, *_numbers(launcher, environment))
    if coordinator is None or processes is None or process is None:
        raise ValueError(f"{TOGETHER}, or none of them under srun or mpirun.")
    _check_range("processes", processes)
    if not 0 <= process < processes:
        raise ValueError(f"--process counts from 0: it must be from 0 to {processes - 1}, got {process}.")
    return Cluster(coordinator, processes, process)


def _launched(environment: Mapping[str, str]) -> Cluster | None:
    """The processes of a launcher, None where there is none, or one process."""
    launcher = _launcher(environment)
    if launcher is None:
        return None
    numbers = _numbers(launcher, environment)
    if launcher.place is None or launcher.place not in environment:
        raise ValueError(
            f"{launcher.name} has started {numbers[0]} processes, but does not say where the first one is: add "
            "--coordinator HOST:PORT with the host of process 0 and a free port, or --processes 1 for separate runs."
        )
    return Cluster(None, *numbers)


def _launcher(environment: Mapping[str, str]) -> _Launcher | None:
    """The one that has started this process and others."""
    return next((known for known in LAUNCHERS if _is_several(known, environment)), None)


def _is_several(launcher: _Launcher, environment: Mapping[str, str]) -> bool:
    numbers = environment.get(launcher.processes, ""), environment.get(launcher.process, "")
    return all(number.isdecimal() for number in numbers) and int(numbers[0]) > 1


def _numbers(launcher: _Launcher, environment: Mapping[str, str]) -> tuple[int, int]:
    return int(environment[launcher.processes]), int(environment[launcher.process])


def _check_address(coordinator: str) -> None:
    host, _, port = coordinator.rpartition(":")
    if not host or " " in coordinator or not (port.isdecimal() and 0 < int(port) < 2**16):
        raise ValueError(f"--coordinator takes HOST:PORT of process 0, e.g. node1:6543, got {coordinator!r}.")


def _check_range(name: str, value: int | float) -> None:
    low, high = RANGES[name]
    if not low <= value <= high:
        raise ValueError(f"--{name} must be from {low} to {high}, got {value:g}.")


def check_patience(heartbeat: int | None, watchdog: float | None) -> None:
    """Refuse times out of range."""
    for name, value in (("heartbeat", heartbeat), ("watchdog", watchdog)):
        if value is not None:
            _check_range(name, value)


def devices_of(text: str | None) -> int | None:
    """How many devices of each process are wanted: a number, None for all of them or where nothing is said."""
    if text in (None, "all"):
        return None
    if not (text.isdecimal() and 1 <= int(text) <= MOST_DEVICES):
        raise ValueError(f"--devices must be a whole number from 1 to {MOST_DEVICES}, or all, got {text!r}.")
    return int(text)
