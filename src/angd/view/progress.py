"""Progress that lives: one line on a terminal, a bar with the loss below it in a notebook; elsewhere plain lines.

Watch        one line, drawn again several times a second, so that nothing stands still while XLA compiles
Notebook     the same as a piece of HTML that is renewed (`angd.view.notebook`)
watch        the one that fits where the program runs
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from rich.console import Console
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from angd.train.pace import Plan
from angd.train.progress import AFTER, STOPPING, Lines, as_time, error_of, value_of
from angd.view.busy import REFRESH, is_live, one_line, spinning, working

BAR, LONG = 8, 0.5  # letters of the bar; seconds after which other work than steps is worth a word


def watch(title: str, plan: Plan) -> Lines:
    """What shows the progress of a run where the program runs.

    **Arguments:** `title`; `plan`, budget and phases.

    **Returns:** to be entered, and called after every step.
    """
    from angd.view.notebook import Notebook, display_of

    display = display_of()
    return Watch(title, plan) if display is None else Notebook(title, plan, display)


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
    with Progress(*columns, console=console, transient=True, disable=not is_live(console)) as progress:
        task = progress.add_task(f"{title} (compiling)", total=1.0)

        def report(fraction: float) -> None:
            progress.update(task, completed=fraction, description=title)

        yield report


class Part(NamedTuple):
    """A piece of the line; the higher its `rank`, the sooner it gives way."""

    text: str
    rank: int


class Watch(Lines):
    """A line about a run that is drawn again several times a second.

    **Arguments:** as of `Lines`; `console`, where it is shown.
    """

    def __init__(self, title: str, plan: Plan, console: Console | None = None, **rest: Any):
        super().__init__(title, plan, **rest)
        self.console = console or Console(stderr=True)
        self.live: Live | None = None

    def __enter__(self) -> "Watch":
        if is_live(self.console):
            self.live = Live(
                console=self.console, transient=True, refresh_per_second=REFRESH, get_renderable=lambda: self.drawn()
            )
            self.live.start()
        else:
            super().__enter__()
        return self

    def __exit__(self, *_: Any) -> None:
        if self.live is not None:
            self.live.stop()

    def show(self, state: Any, info: Any, last: Any, now: float) -> None:
        """A line when it is due, where none is live."""
        if self.live is None:
            super().show(state, info, last, now)

    def say(self, text: str) -> None:
        """Print it, where there is no live line."""
        if self.live is None:
            self.console.print(text, highlight=False, soft_wrap=True, markup=False)

    def stopping(self) -> None:
        """The next drawing says it."""
        self.asked = True
        if self.live is None:
            super().stopping()

    def drawn(self) -> Text:
        """The line as it stands."""
        return one_line(self.line(self.console.width - 1))

    def line(self, width: int) -> str:
        """What fits into a number of letters."""
        spent = self.clock() - self.since
        if self.last is None or (self.work and spent > LONG):
            return fitted(self._working(spent), width)
        return fitted(self._stepping(*self.last, spent), width)

    def _working(self, spent: float) -> list[Part]:
        parts = [Part(spinning(spent), 0), Part(f"{self.title}:", 3), Part(working(self.work, spent), 0)]
        return parts + self._asked()

    def _stepping(self, state: Any, info: Any, last: Any, spent: float) -> list[Part]:
        done = min(self.plan.budget.spent(state), 1.0)
        phase, speed = self.plan.title(state.phase).removeprefix("phase "), self.pace.speed
        rest = self.parts(state, info, last)[-5:]
        parts = [
            Part(spinning(spent + self.clock()), 0),
            Part(self.title, 3),
            Part(phase, 5),
            Part(bar(done, BAR), 6),
            Part(f"{done:.0%}", 1),
            Part(self.time_left(state), 2),
            Part(error_of(last), 3),
            Part(value_of(float(info.loss)), 7 if error_of(last) else 3),
            Part("" if info.accepted else f"rejected ({state.rejected})", 4),
            Part(f"step {state.k}", 8),
            Part("" if speed is None else f"{speed:.3g} steps/s", 9),
            *(Part(text, 10) for text in rest if not text.startswith("rejected")),
        ]
        return parts + self._asked() + ([Part(f"{as_time(spent)} in this step", 2)] if spent > 2 else [])

    def _asked(self) -> list[Part]:
        return [Part(STOPPING, 0)] if self.asked and not self.work.startswith(AFTER) else []


def bar(done: float, letters: int) -> str:
    """A share as a bar."""
    full = min(max(round(done * letters), 0), letters)
    return "━" * full + "─" * (letters - full)


def fitted(parts: Sequence[Part], width: int) -> str:
    """The parts side by side; those of the highest rank are left out until the rest fits."""
    kept = [part for part in parts if part.text]
    while len(text := "  ".join(part.text for part in kept)) > width:
        last = max(kept, key=lambda part: part.rank)
        if last.rank == 0:
            return text[: max(width - 1, 0)] + "…"
        kept.remove(next(part for part in reversed(kept) if part.rank == last.rank))
    return text
