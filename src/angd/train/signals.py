"""Ctrl-C and SIGTERM: a run ends with a checkpoint, however often one asks. Imports nothing heavy."""

import signal
import threading
import time
from collections.abc import Callable
from typing import Any

PATIENCE = 1.0  # seconds in which further signals are taken for the same one


class Stopper:
    """While it is entered, the first signal lets the present step end; one that comes later does not wait for it.

    Either way the last whole step is saved: whoever saves holds signals back with `uninterrupted`.

    **Arguments:** `ask(name, number)`, called with the first signal's name and number.
    """

    def __init__(self, ask: Callable[[str, int], None]):
        self.ask, self.first, self.saving, self.before = ask, None, False, {}

    def __enter__(self) -> "Stopper":
        if threading.current_thread() is threading.main_thread():
            self.before = {number: signal.signal(number, self._handle) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *_: Any) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)

    def uninterrupted(self, saving: bool) -> None:
        """Say that something is being written that must be whole, or no longer."""
        self.saving = saving

    def _handle(self, number: int, _: Any) -> None:
        now = time.monotonic()
        if self.first is None:
            self.first = now
            self.ask("interrupted" if number == signal.SIGINT else "terminated", number)
        elif not self.saving and now - self.first > PATIENCE:
            raise KeyboardInterrupt
