"""Progress as plain lines on standard error, now and then; `angd.view.progress` has a live one for terminals."""

import sys
import time
from collections.abc import Callable
from typing import Any

from angd.train.folder import Record

INTERVAL = 10.0  # seconds between lines


class Lines:
    """One line about a run every few seconds: where it is, how it does, how long it will take.

    **Arguments:** `title`; `share`, a function of a `TrainState`: how much of the budget is used.
    """

    def __init__(self, title: str, share: Callable[[Any], float]):
        self.title, self.share = title, share
        self.began, self.due = time.monotonic(), 0.0
        self.first: tuple[float, int, float] | None = None

    def __enter__(self) -> "Lines":
        self.say(f"{self.title}: compiling")
        return self

    def __exit__(self, *_: Any) -> None:
        """Nothing to close."""

    def __call__(self, state: Any, info: Any, last: Record | None) -> None:
        """After every step; `last` is the last evaluation."""
        now = time.monotonic()
        if self.first is None:
            self.first = (now, state.k, self.share(state))
            self.say(f"{self.title}: first step after {now - self.began:.1f} s of compilation")
            self.due = now + INTERVAL
        self.show(state, info, last, now)

    def show(self, state: Any, info: Any, last: Record | None, now: float) -> None:
        """A line, when it is due."""
        if now >= self.due:
            self.say(self.line(state, info, last, now))
            self.due = now + INTERVAL

    def say(self, text: str) -> None:
        """Print it."""
        print(text, file=sys.stderr, flush=True)

    def line(self, state: Any, info: Any, last: Record | None, now: float) -> str:
        """All there is to say."""
        assert self.first is not None
        began, k, share = self.first
        speed, done = (state.k - k) / max(now - began, 1e-9), min(self.share(state), 1.0)
        left = (1 - done) / (done - share) * (now - began) if done > share else float("nan")
        parts = [
            f"{done:.0%}",
            f"step {state.k}",
            f"loss {info.loss:.5f}" if info.loss < 0 else f"loss {info.loss:.2e}",
        ]
        parts += [f"error {last.error:.2e}"] if last is not None and last.errors else []
        parts += [f"{left:.0f} s left" if left == left else "", f"{speed:.1f} steps/s"]
        parts += ["" if info.accepted else f"rejected ({state.rejected})"]
        parts += [f"λ {info.damping:.1e}"] if info.damping == info.damping else []
        parts += [f"|d| {info.norm:.1e}", *(_about_chain(last.observables) if last is not None else [])]
        return f"{self.title}: " + ", ".join(part for part in parts if part)


class Silent(Lines):
    """Says nothing."""

    def say(self, text: str) -> None:
        """Nothing."""


def _about_chain(seen: dict[str, float | None]) -> list[str]:
    """The acceptance, and bad walkers if there are any."""
    acceptance = seen.get("acceptance")
    parts = [] if acceptance is None else [f"acceptance {acceptance:.0%}"]
    return parts + [f"{name} {seen[name]:.0f}" for name in ("masked", "respawned") if seen.get(name)]
