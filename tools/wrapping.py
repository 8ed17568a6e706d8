"""Wrap the prose of Markdown at 100 characters: `python tools/wrapping.py PAGE…`.

Paragraphs with a longer line are wrapped anew; code, fenced or indented, tables, formulas on their own and HTML stay as
they are. Inline code and inline formulas are never broken.
"""

import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

WIDTH = 100
LEAD = re.compile(r"\s*(?:(?:[-*]|\d+\.|>)\s+)?")
ITEM = re.compile(r"\s*(?:[-*]|\d+\.)\s")
INDENTED = re.compile(r"(?: {4}|\t)\s*\S")
WHOLE = re.compile(r"`[^`]+`|\$[^$]+\$")
OTHER = ("|", "#", "<", ":::", "![", "---")
SPACE = "\0"


def wrapped(text: str) -> str:
    """The text with every paragraph that is too wide wrapped."""
    return "\n".join(line for part in _parts(text.split("\n")) for line in _narrow(part))


def _parts(lines: list[str]) -> Iterator[list[str]]:
    """Paragraphs and items; every other line is a part by itself."""
    part: list[str] = []
    within = ""
    for line in lines:
        block = bool(INDENTED.match(line)) and not part and not ITEM.match(line)
        verbatim = bool(within) or block or line.strip().startswith(("```", "$$"))
        within = _opened(within, line.strip())
        alone = verbatim or not line.strip() or line.strip().startswith(OTHER)
        if part and (alone or ITEM.match(line)):
            yield part
            part = []
        if alone:
            yield ["", line] if verbatim else [line]
        else:
            part.append(line)
    if part:
        yield part


def _opened(within: str, line: str) -> str:
    """Which fence is open after this line: of code, of a formula, or none."""
    if within:
        return "" if within in line else within
    if line.startswith("```"):
        return "```"
    return "$$" if line.startswith("$$") and line.count("$$") == 1 else ""


def _narrow(part: list[str]) -> list[str]:
    if len(part) == 2 and part[0] == "":
        return part[1:]
    if max(map(len, part)) <= WIDTH or part[0].strip().startswith(OTHER):
        return part
    lead = LEAD.match(part[0])
    assert lead is not None
    quoted = lead[0].strip() == ">"
    rest = [line.strip().removeprefix("> ") if quoted else line.strip() for line in part[1:]]
    text = WHOLE.sub(lambda match: match[0].replace(" ", SPACE), " ".join([part[0][lead.end() :], *rest]))
    lines = textwrap.wrap(
        text,
        WIDTH,
        initial_indent=lead[0],
        subsequent_indent=lead[0] if quoted else " " * lead.end(),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace(SPACE, " ") for line in lines]


if __name__ == "__main__":
    for page in map(Path, sys.argv[1:]):
        page.write_text(wrapped(page.read_text(encoding="utf-8")), encoding="utf-8")
