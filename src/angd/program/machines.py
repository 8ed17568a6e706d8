"""On what a run runs: devices of this process, or of several. Imports nothing heavy."""

from typing import Any, NamedTuple

from angd.program.terminal import tell
from angd.train.hosts.cluster import HEARTBEAT, Cluster, check_patience, cluster_of, devices_of


class Machines(NamedTuple):
    """On what a run runs.

    **Attributes:** `devices`, how many of each process, None for all; `is_mesh`, whether samples are split at all;
    `cluster`, None for one process; `heartbeat`, seconds; `watchdog`, seconds, None where nobody asked for it.
    """

    devices: int | None = None
    is_mesh: bool = False
    cluster: Cluster | None = None
    heartbeat: int = HEARTBEAT
    watchdog: float | None = None

    @classmethod
    def of(cls, options: Any) -> "Machines":
        """From the options of a command; what cannot be raises one sentence."""
        cluster = cluster_of(options.coordinator, options.processes, options.process)
        check_patience(options.heartbeat, options.watchdog)
        count = devices_of(options.devices)
        split = options.devices is not None or cluster is not None
        return cls(count, split, cluster, options.heartbeat or HEARTBEAT, options.watchdog)

    @property
    def is_first(self) -> bool:
        """Does this process have the folder?"""
        return self.cluster is None or self.cluster.process == 0


def introduce(machines: Machines, mesh: Any) -> None:
    """Say which process this is and what it has: N runs of one process each are the usual mistake."""
    if not machines.is_mesh:
        return
    import jax

    here, kind = len([d for d in mesh.devices.flat if d.process_index == jax.process_index()]), jax.default_backend()
    several = "" if machines.cluster is None else f" on {machines.cluster.processes} processes"
    tell(f"{_devices(here, kind)} here, {_devices(mesh.size, kind)} in all{several}.")


def _devices(count: int, kind: str) -> str:
    return f"{count} {kind} device" + "s" * (count != 1)


def joint_mesh(machines: Machines) -> Any:
    """The devices over which samples are split: as many of every process, None where nothing is split."""
    if not machines.is_mesh:
        return None
    import jax

    from angd.method.parallel import mesh
    from angd.train.hosts.peers import peers_of

    own = [[d for d in jax.devices() if d.process_index == i] for i in range(jax.process_count())]
    counts = [len(devices) for devices in own]
    wanted = [int(n) for n in peers_of(mesh()).shared([machines.devices or 0])[:, 0]]
    if len(set(wanted)) > 1:
        raise ValueError(f"The processes were given --devices {_each(wanted)}: give all of them the same.")
    if machines.devices is None and len(set(counts)) > 1:
        raise ValueError(f"The processes have {_each(counts)} devices: --devices {min(counts)} takes as many of each.")
    count = machines.devices or counts[0]
    if count > min(counts):
        raise ValueError(f"--devices {count}: there are {min(counts)} {jax.default_backend()} devices here.")
    return mesh([device for devices in own for device in devices[:count]])


def _each(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers[:-1])) + f" and {numbers[-1]}"
