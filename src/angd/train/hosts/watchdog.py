"""Notice that no step ends any more: a peer, a disk or a driver hangs. Imports nothing heavy.

A process that waits for a frozen peer cannot raise an exception: a thread beside it ends it.
"""

import threading
import time
from collections.abc import Callable
from typing import Any

FIRST = 1800.0  # seconds for the first step, which compiles
LEAST, TIMES = 120.0, 10.0  # later ones may take so many seconds, or so many times as long as the slowest so far


class Watchdog:
    """Calls a function where no step was completed for too long.

    **Arguments:** `late(seconds)`, what is called, from another thread; `limit` in seconds, by default ten times the
    slowest step so far, two minutes at least. The first step, which compiles, has half an hour. `clock`.
    """

    def __init__(
        self, late: Callable[[float], Any], limit: float | None = None, clock: Callable[[], float] = time.monotonic
    ):
        self.late, self.limit, self.clock = late, limit, clock
        self.steps, self.slowest, self.last, self.looked = 0, 0.0, clock(), clock()
        self._over = threading.Event()

    def __enter__(self) -> "Watchdog":
        self.last = self.looked = self.clock()
        threading.Thread(target=self._watch, name="angd-watchdog", daemon=True).start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.rest()

    def rest(self) -> None:
        """No step is expected any more."""
        self._over.set()

    def beat(self) -> None:
        """A step was completed."""
        now = self.clock()
        self.steps, self.slowest, self.last = self.steps + 1, max(self.slowest, now - self.last), now

    @property
    def patience(self) -> float:
        """Seconds that the present step may take."""
        if not self.steps:
            return max(FIRST, self.limit or 0.0)
        return max(LEAST, TIMES * self.slowest) if self.limit is None else self.limit

    def look(self) -> None:
        """See how long the present step takes; time in which this process itself was stopped does not count."""
        now = self.clock()
        if now - self.looked > max(10.0, 0.5 * self.patience):
            self.last = now
        self.looked = now
        if now - self.last > self.patience:
            self.late(now - self.last)

    def _watch(self) -> None:
        while not self._over.wait(min(1.0, self.patience / 10)):
            self.look()
