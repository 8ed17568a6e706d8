"""What a terminal shows of a sentence: folded between words, coloured where that is wanted. Imports nothing heavy.

A stream that is no terminal gets one line, so that scripts can read it.
"""

import os
import re
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAME = "angd: "
USUAL, LEAST = 80, 24  # columns where nobody knows them, and at least
who = ""  # which of several processes this is, before every sentence
RED, BOLD, DIM, PLAIN = "\033[31m", "\033[1m", "\033[2m", "\033[0m"


def tell(sentence: str, flush: bool = True) -> None:
    """Say something on standard error, under the program's name."""
    stream, sentence = sys.stderr, who + sentence
    if not is_terminal(stream):
        print(f"{NAME}{sentence}", file=stream, flush=flush)
        return
    text = folded(NAME + sentence, columns(stream), "      ")
    head = f"{BOLD}{RED}angd:{PLAIN}" if has_colour(stream) else "angd:"
    print(head + text.removeprefix("angd:"), file=stream, flush=flush)


def tell_page(text: str) -> None:
    """Say a text of several lines on standard output; on a terminal, what follows a gap keeps its column."""
    if not is_terminal(sys.stdout):
        print(text)
        return
    width = columns(sys.stdout)
    for line in text.split("\n"):
        found = re.match(r"\s+\S+( \S+)*\s{2,}(?=\S)", line)
        hanging = len(found[0]) if found and 2 * len(found[0]) < width else len(line) - len(line.lstrip()) + 2
        print(folded(line, width, " " * hanging))


def tell_result(sentence: str) -> None:
    """Say something on standard output: folded on a terminal, one line elsewhere."""
    print(folded(sentence, columns(sys.stdout), "  ") if is_terminal(sys.stdout) else sentence)


@contextmanager
def waiting(what: str, quiet: bool = False) -> Iterator[None]:
    """Show a spinner while something takes its time, on a terminal; elsewhere nothing."""
    if quiet or not is_terminal(sys.stderr):
        yield
        return
    from angd.view.busy import busy

    with busy(what):
        yield


def linked(path: Path) -> str:
    """A path on standard output that a terminal opens when it is clicked; plain elsewhere."""
    if not has_colour(sys.stdout):
        return str(path)
    return f"\033]8;;{path.resolve().as_uri()}\033\\{path}\033]8;;\033\\"


def is_terminal(stream: Any) -> bool:
    """Does a person look at it?"""
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # it is closed
        return False


def has_colour(stream: Any) -> bool:
    """Does the terminal know colours, and does nobody mind them? See no-color.org."""
    return is_terminal(stream) and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") != "dumb"


def columns(stream: Any) -> int:
    """How wide a terminal is."""
    said = os.environ.get("COLUMNS", "")
    if said.isdecimal() and int(said) > 0:
        return max(int(said), LEAST)
    try:
        found = os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError, AttributeError):
        found = 0
    return max(found or USUAL, LEAST)


def folded(text: str, width: int, hanging: str = "") -> str:
    """Lines of at most so many letters; words, options and paths stay whole.

    **Arguments:** `text`, one paragraph; `width`; `hanging`, what lines after the first begin with.

    **Returns:** the lines, as one text.
    """
    wrap = textwrap.TextWrapper(
        width, subsequent_indent=hanging, break_long_words=False, break_on_hyphens=False, tabsize=2
    )
    return "\n".join(wrap.wrap(text))
