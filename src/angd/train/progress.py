"""Progress on standard error: a live line on a terminal, a line now and then otherwise."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from angd.train.folder import Row

INTERVAL = 10.0  # seconds between lines where there is no terminal


@contextmanager
def progress_bar(title: str) -> Iterator[Callable[[float], None]]:
    """A function to be told the fraction that is done."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(f"{title} (compiling)", total=1.0)

        def report(fraction: float) -> None:
            progress.update(task, completed=fraction, description=title)

        yield report


class Watch:
    """One line about a run: where it is, how it does, how long it will take."""

    def __init__(self, title: str, share: Callable[[Any], float], console: Console | None = None):
        self.title, self.share, self.console = title, share, console or Console(stderr=True)
        self.began, self.due, self.first = time.monotonic(), 0.0, None
        self.live: Live | None = None

    def __enter__(self) -> "Watch":
        if self.console.is_terminal:
            self.live = Live(Text(f"{self.title}: compiling"), console=self.console, transient=True)
            self.live.start()
        else:
            self.console.print(f"{self.title}: compiling", highlight=False)
        return self

    def __exit__(self, *_: Any) -> None:
        if self.live is not None:
            self.live.stop()

    def __call__(self, stand: Any, report: Any, last: Row | None) -> None:
        """After every step; `last` is the last look."""
        now = time.monotonic()
        if self.first is None:
            self.first = (now, stand.k, self.share(stand))
            self._say(f"{self.title}: first step after {now - self.began:.1f} s of compilation", now)
        if self.live is not None:
            self.live.update(Text(self._line(stand, report, last, now)))
        elif now >= self.due:
            self._say(self._line(stand, report, last, now), now)

    def _say(self, text: str, now: float) -> None:
        if self.live is None:
            self.console.print(text, highlight=False, soft_wrap=True)
            self.due = now + INTERVAL

    def _line(self, stand: Any, report: Any, last: Row | None, now: float) -> str:
        assert self.first is not None
        began, k, share = self.first
        speed, done = (stand.k - k) / max(now - began, 1e-9), min(self.share(stand), 1.0)
        left = (1 - done) / (done - share) * (now - began) if done > share else float("nan")
        parts = [f"step {stand.k}", f"loss {report.loss:.5f}" if report.loss < 0 else f"loss {report.loss:.2e}"]
        parts += [f"error {last.error:.2e}"] if last is not None and last.errors else []
        parts += [f"λ {report.damping:.1e}"] if report.damping == report.damping else []
        parts += [f"|d| {report.norm:.1e}", "" if report.accepted else f"refused ({stand.refused})"]
        parts += _about_chain(last.chain) if last is not None else []
        parts += [f"{speed:.1f} steps/s", f"{done:.0%}", f"{left:.0f} s left" if left == left else ""]
        return f"{self.title}: " + ", ".join(part for part in parts if part)


def _about_chain(chain: dict[str, float | None]) -> list[str]:
    """The acceptance, and bad walkers if there are any."""
    acceptance = chain.get("acceptance")
    parts = [] if acceptance is None else [f"acceptance {acceptance:.0%}"]
    return parts + [f"{name} {chain[name]:.0f}" for name in ("masked", "respawned") if chain.get(name)]
