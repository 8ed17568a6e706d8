"""A spinner beside a few words, for what takes its time before there is anything to show. Imports nothing heavy."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.text import Text

FRAMES, FRAME = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", 0.15  # of the spinner, and seconds of one
REFRESH = 6  # times a second


def is_live(console: Console) -> bool:
    """Can a line be drawn again there?"""
    return console.is_terminal and not console.is_dumb_terminal


@contextmanager
def busy(what: str) -> Iterator[None]:
    """Say what is being done while nothing else is said; only on a terminal, where the line goes away again."""
    console = Console(stderr=True)
    if not is_live(console):
        yield
        return
    began = console.get_time()

    def drawn() -> Text:
        spent = console.get_time() - began
        return one_line(f"{spinning(spent)}  {working(what, spent)}")

    with Live(console=console, transient=True, refresh_per_second=REFRESH, get_renderable=drawn):
        yield


def working(what: str, spent: float) -> str:
    """Some work, and for how long."""
    return f"{what} … {spent:.0f} s" if spent >= 1 else f"{what} …"


def spinning(seconds: float) -> str:
    """The spinner at a time."""
    return FRAMES[int(seconds / FRAME) % len(FRAMES)]


def one_line(text: str) -> Text:
    """What does not fit is left out."""
    return Text(text, no_wrap=True, overflow="ellipsis")
