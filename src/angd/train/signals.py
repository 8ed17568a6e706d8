"""Ctrl-C, SIGTERM, a closed terminal: a run ends with a checkpoint, however often one asks. Imports nothing heavy."""

import signal
import threading
import time
from collections.abc import Callable
from typing import Any

PATIENCE = 1.0  # seconds in which further signals are taken for the same one
WORDS = {"SIGINT": "interrupted", "SIGTERM": "terminated", "SIGHUP": "the terminal was closed"}
SIGNALS = {getattr(signal, name): word for name, word in WORDS.items() if hasattr(signal, name)}


class Stopped(KeyboardInterrupt):
    """A signal ends the program.

    **Arguments:** `number` of the signal, which decides the exit code; `sentence`, how to go on, where one can.
    """

    def __init__(self, number: int, sentence: str = ""):
        super().__init__(sentence)
        self.number, self.code = number, 128 + number


class Stopper:
    """While it is entered, the first signal asks; one that comes later does not wait for the answer.

    Signals within a moment of the first one are the same one, also for a `Stopper` around this one. Whatever must be
    whole is held together with `uninterrupted`.

    **Arguments:** `ask(name, number)`, called with the first signal's name and number.
    """

    def __init__(self, ask: Callable[[str, int], None]):
        self.ask, self.first, self.saving, self.before = ask, None, False, {}

    def __enter__(self) -> "Stopper":
        self.install()
        return self

    def install(self) -> None:
        """Handle signals from now on, in the main thread."""
        if threading.current_thread() is threading.main_thread():
            self.before = {number: signal.signal(number, self._handle) for number in SIGNALS if not _without(number)}

    def __exit__(self, *_: Any) -> None:
        outer = getattr(self.before.get(signal.SIGINT), "__self__", None)
        if isinstance(outer, Stopper):
            outer.first = outer.first or self.first
        for number, handler in self.before.items():
            signal.signal(number, handler)

    def uninterrupted(self, saving: bool) -> None:
        """Say that something is being written that must be whole, or no longer."""
        self.saving = saving

    def _handle(self, number: int, _: Any) -> None:
        now = time.monotonic()
        if self.first is None:
            self.first = number, now
            self.ask(SIGNALS[number], number)
        elif not self.saving and now - self.first[1] > PATIENCE:
            raise Stopped(self.first[0])


def _without(number: int) -> bool:
    """Whether `nohup`, or the like, has said that this signal shall do nothing."""
    return number not in (signal.SIGINT, signal.SIGTERM) and signal.getsignal(number) is signal.SIG_IGN


def end_at_once(name: str, number: int) -> None:
    """What a `Stopper` asks where nothing has to be saved."""
    raise Stopped(number, f"{name}.")


def ignore_signals() -> None:
    """Of a process whose last word is said: nothing may change its exit code any more."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
