"""`--help`: what the command does, tyro's tables of options, three examples. Imports nothing heavy."""

import codecs
import io
import re
import sys
from collections.abc import Callable
from contextlib import redirect_stdout, suppress

from angd.program.terminal import BOLD, PLAIN, columns, folded, has_colour

WIDEST = 100  # letters in a line of prose
CORNER = re.compile(r"^[╭+]", re.MULTILINE)  # of the first table
OPTION = re.compile(r"(?<=[│|] )(--?[a-z][a-z-]*)")


def with_help(kind: type, prog: str, read: Callable[[], None]) -> None:
    """Show the help of a command.

    **Arguments:** `kind`, its class of options, whose docstring says what it does; `prog`, as one types it; `read`,
    which makes tyro print its tables.
    """
    encoding = codecs.lookup(getattr(sys.stdout, "encoding", None) or "utf-8").name
    shown = io.TextIOWrapper(io.BytesIO(), encoding, "replace")
    with redirect_stdout(shown), suppress(SystemExit):
        read()
    shown.seek(0)
    usage, tables = _parts(shown.read())
    width = min(columns(sys.stdout), WIDEST)
    head = [f"usage: {folded(usage, width - 7, '  ')}", *paragraphs(kind.__doc__ or "", width)]
    text = "\n\n".join([*head, tables.rstrip(), examples(kind, prog)])
    print(coloured(text) if has_colour(sys.stdout) else text)


def _parts(shown: str) -> tuple[str, str]:
    """The line of usage and the tables, of what tyro prints."""
    usage = " ".join(shown.split("\n\n")[0].removeprefix("usage:").split())
    start = CORNER.search(shown)
    return usage, shown[start.start() :] if start else ""


def paragraphs(text: str, width: int) -> list[str]:
    """Those of a docstring, folded."""
    return [folded(" ".join(part.split()), width) for part in text.strip().split("\n\n")]


def examples(kind: type, prog: str) -> str:
    """Commands that one may copy, on lines of their own."""
    return "\n".join(["examples:", *(f"  {line}" for line in getattr(kind, "examples", ()))])


def coloured(text: str) -> str:
    """Options and their words in bold."""
    return OPTION.sub(rf"{BOLD}\1{PLAIN}", text)
