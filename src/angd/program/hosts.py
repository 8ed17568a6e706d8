"""This process among others: it joins them, and leaves at once where one of them is gone.

JAX ends a process whose peer is gone by `abort`, with pages of C++ on standard error. Here that becomes a sentence and
an exit code: what other people's libraries write goes to a file of its own, and the signal of `abort` is answered.
Imports nothing heavy.
"""

import ctypes
import os
import re
import signal
import socket
import sys
import tempfile
import threading
from typing import Any

from angd.program import terminal
from angd.program.machines import Machines
from angd.program.terminal import tell
from angd.train.hosts.cluster import Cluster
from angd.train.hosts.watchdog import Watchdog

GONE = 75  # the exit code of a run that may be started again: a peer is gone, or hangs
PATIENCE = 300  # seconds in which all processes must have come, and in which all must have ended
FAREWELL = 5.0  # seconds in which the others may fail for the same reason as this one
FATAL = "JAX distributed service detected fatal errors"


class _Joined:
    """What this process knows of the others; there is one at most."""

    def __init__(self, cluster: Cluster, log: int):
        self.cluster, self.log, self.hint = cluster, log, ""
        self.met, self.ended = False, False
        self.saying = threading.Lock()
        self.handler: Any = None


_joined: _Joined | None = None


def enter(machines: Machines) -> None:
    """Be one of several processes from now on, before anything is drawn on the terminal."""
    global _joined
    if machines.cluster is None:
        return
    coordinator, processes, process = machines.cluster
    if coordinator is not None and process == 0:
        _check_port(coordinator)
    terminal.who = f"[{process}/{processes}] "
    _joined = _Joined(machines.cluster, _divert())
    _answer_abort(_joined)


def join(machines: Machines) -> None:
    """Connect with the other processes, before JAX looks for devices."""
    if _joined is None:
        return
    import jax

    coordinator, processes, process = _joined.cluster
    jax.config.update("jax_enable_preemption_service", False)  # SIGTERM is ours
    try:
        jax.distributed.initialize(
            coordinator,
            processes,
            process,
            cluster_detection_method=None if coordinator is None else "deactivate",
            initialization_timeout=PATIENCE,
            heartbeat_timeout_seconds=machines.heartbeat,
            shutdown_timeout_seconds=PATIENCE,
        )
    except (RuntimeError, ValueError):
        _end(_sentence(_joined))
    _joined.met = True


def _check_port(coordinator: str) -> None:
    """Refuse a port that another program has; JAX would crash."""
    port = int(coordinator.rpartition(":")[2])
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError as error:
            raise ValueError(f"--coordinator: port {port} is taken here ({error.strerror}); choose another.") from None


def watchdog(machines: Machines, hint: str) -> Watchdog | None:
    """What ends this process where steps end no more; for one process only where somebody asked for it.

    **Arguments:** `hint`, how one goes on.
    """
    if _joined is not None:
        _joined.hint = hint
    if machines.cluster is None and machines.watchdog is None:
        return None

    def late(seconds: float) -> None:
        culprit = "this process hangs" if machines.cluster is None else "this process or another one hangs"
        _end(f"no step was completed in {seconds:.0f} s, so {culprit}; {hint}")

    return Watchdog(late, machines.watchdog)


def ended_together() -> None:
    """All processes have made their last step, and know it."""
    if _joined is not None:
        _joined.ended = True


def is_joined() -> bool:
    """Does this process work with others?"""
    return _joined is not None


def is_lost(error: BaseException) -> bool:
    """Does an error say that another process is gone?"""
    if _joined is None:
        return False
    from angd.train.hosts.peers import is_gone

    return is_gone(error)


def lose() -> None:
    """Another process is gone: say so, and end."""
    assert _joined is not None
    _end(_sentence(_joined))


def leave(code: int) -> int:
    """End this process; where there are others, so that none of them waits for it."""
    if _joined is None:
        return code
    import jax

    farewell = threading.Thread(target=_quietly, args=(jax.distributed.shutdown,), daemon=True)
    farewell.start()
    farewell.join(None if _joined.ended else FAREWELL)
    return _go(code)


def _quietly(function: Any) -> None:
    try:
        function()
    except Exception:  # the others may be gone by now
        return


def _go(code: int) -> Any:
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


def _end(sentence: str) -> None:
    """Say why, and end, from whatever thread; only the first of several reasons is said."""
    if _joined is not None and not _joined.saying.acquire(blocking=False):
        threading.Event().wait()
    if terminal.is_terminal(sys.stderr):
        print("\r\033[2K\033[?25h", end="", file=sys.stderr)  # the live line, and its hidden cursor
    tell(sentence)
    _go(GONE)


def _sentence(joined: _Joined, said: str = "") -> str:
    """Who is gone, as far as one can know."""
    if not joined.met:
        where = joined.cluster.coordinator or "the address that the launcher gives"
        return f"the processes did not find each other at {where} in {PATIENCE} s; start all of them again."
    found = re.findall(r"stopped sending heartbeats\):\s*((?:\d+\s+)+|\S*task:\d+)", said)
    numbers = re.findall(r"(\d+)\s*$", found[-1].strip()) if found else []
    who = f"process {numbers[0]}" if numbers else "another process"
    if joined.cluster.processes == 2:
        who = f"process {1 - joined.cluster.process}"
    return f"{who} is gone or out of reach; {joined.hint or 'start all of them again.'}"


def _divert() -> int:
    """Let other people's libraries write into a file, and Python where it wrote before; returns the file."""
    sys.stdout.flush()
    sys.stderr.flush()
    with tempfile.TemporaryFile() as log:
        for name, number in (("stdout", 1), ("stderr", 2)):
            kept = os.fdopen(os.dup(number), "w", buffering=1, encoding="utf-8", errors="replace")
            os.dup2(log.fileno(), number)
            setattr(sys, name, kept)
        return os.dup(log.fileno())


def _answer_abort(joined: _Joined) -> None:
    """Where JAX aborts because a peer is gone, say that; where something else aborts, show what it said."""
    if os.name != "posix":
        return

    def answer(number: int) -> None:
        said = os.pread(joined.log, 1 << 16, max(0, os.fstat(joined.log).st_size - (1 << 16))).decode(errors="replace")
        if FATAL in said:
            _end(_sentence(joined, said[said.rindex(FATAL) :]))
        print(said, file=sys.stderr)
        _go(128 + number)

    joined.handler = ctypes.CFUNCTYPE(None, ctypes.c_int)(answer)
    libc = ctypes.CDLL(None)
    libc.signal.argtypes = [ctypes.c_int, type(joined.handler)]
    libc.signal.restype = ctypes.c_void_p
    libc.signal(signal.SIGABRT, joined.handler)
