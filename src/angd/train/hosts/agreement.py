"""When processes agree: the clock is that of process 0, and a signal to any of them is one to all.

They agree after every step where steps are long, and about ten times a second where they are short; in between, the
clock goes on at the pace of the last steps. Every process so takes the same decisions at the same step.
"""

import time
from collections.abc import Callable
from typing import NamedTuple

from angd.train.hosts.peers import Alone

APART = 0.1  # seconds between two agreements, where steps are shorter


class Spent(NamedTuple):
    """Seconds and CPU seconds of a run."""

    seconds: float
    cpu_seconds: float


class Agreement:
    """The clock of a run that several processes read.

    **Arguments:** `peers`; `asked`, the number of a signal that this process got, 0 for none; `heard`, called with the
    number of a signal that any of them got.
    """

    def __init__(self, peers: Alone, asked: Callable[[], int], heard: Callable[[int], None]):
        self.peers, self.asked, self.heard = peers, asked, heard
        self.now = float(peers.shared([time.monotonic()])[0, 0])
        self.phase, self.wait, self.steps = (-1, -1), 1, 0
        self.last, self.pace = Spent(0.0, 0.0), Spent(0.0, 0.0)

    def __call__(self, spent: tuple[float, float], phase: tuple[int, int]) -> tuple[float, float]:
        """What all processes hold for spent after a step.

        **Arguments:** `spent`, what this one has measured; `phase`, its number and round.
        """
        if self.peers.count == 1:
            self.now = time.monotonic()
            return spent
        self.steps += 1
        if phase == self.phase and self.steps < self.wait:
            return Spent(*(a + self.steps * b for a, b in zip(self.last, self.pace, strict=True)))
        return self._agree(spent, phase)

    def _agree(self, spent: tuple[float, float], phase: tuple[int, int]) -> Spent:
        rows = self.peers.shared([*spent, time.monotonic(), self.asked()])
        now, number = Spent(*rows[0, :2].tolist()), int(rows[:, 3].max())
        self.now = float(rows[0, 2])
        # The first step of a phase compiles, and says nothing about the next ones.
        usual = phase == self.phase
        self.pace = Spent(*((a - b) / self.steps for a, b in zip(now, self.last, strict=True))) if usual else now
        self.wait = max(1, round(APART / max(self.pace.seconds, 1e-6))) if usual else 1
        self.last, self.phase, self.steps = now, phase, 0
        if number:
            self.heard(number)
        return now
