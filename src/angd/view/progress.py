"""Progress that lives on a terminal or in a notebook; elsewhere a line now and then."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from angd.train.folder import Record
from angd.train.progress import Lines


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


class Watch(Lines):
    """A line about a run that is renewed after every step."""

    def __init__(self, title: str, share: Callable[[Any], float], console: Console | None = None):
        super().__init__(title, share)
        self.console = console or Console(stderr=True)
        self.live: Live | None = None

    def __enter__(self) -> "Watch":
        if self.console.is_terminal or self.console.is_jupyter:
            self.live = Live(_one_line(f"{self.title}: compiling"), console=self.console, transient=True)
            self.live.start()
        else:
            super().__enter__()
        return self

    def __exit__(self, *_: Any) -> None:
        if self.live is not None:
            self.live.stop()

    def show(self, state: Any, info: Any, last: Record | None, now: float) -> None:
        """Renew the line, or print one when it is due."""
        if self.live is None:
            super().show(state, info, last, now)
        else:
            self.live.update(_one_line(self.line(state, info, last, now)))

    def say(self, text: str) -> None:
        """Print it, where there is no live line."""
        if self.live is None:
            self.console.print(text, highlight=False, soft_wrap=True)


def _one_line(text: str) -> Text:
    """What does not fit is left out: the most important things come first."""
    return Text(text, no_wrap=True, overflow="ellipsis")
