"""A run as a strip: its phases along the seconds, where XLA compiled, and which evaluated steps were rejected."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from angd.train.folder import Record
from angd.view.curves import compilations


class Piece(NamedTuple):
    """A stretch of a strip, in percent of its length: a phase, or a compilation (`phase` is None)."""

    start: float
    width: float
    phase: int | None
    text: str


class Strip(NamedTuple):
    """**Attributes:** `name`; `pieces`; `rejected` and `restarted`, in percent; `text`, for who cannot see it."""

    name: str
    pieces: list[Piece]
    rejected: list[float]
    restarted: list[float]
    text: str


def strip(name: str, records: Sequence[Record], phases: Sequence[str], longest: float) -> Strip:
    """The strip of one run.

    **Arguments:** `name`; `records`; `phases`, their names; `longest`, the seconds that the whole width stands for.

    **Returns:** its pieces.
    """
    pauses, pieces, before = compilations(records), list[Piece](), 0.0
    scale = 100 / max(longest, 1e-9)
    for record, pause in zip(records, pauses, strict=True):
        if pause > 0:
            pieces.append(Piece(before * scale, pause * scale, None, f"compiling, {pause:.1f} s"))
            before += pause
        last = pieces[-1] if pieces else None
        width = (record.seconds - before) * scale
        if last is not None and last.phase == record.phase:
            pieces[-1] = last._replace(width=last.width + width)
        else:
            pieces.append(Piece(before * scale, width, record.phase, title(phases, record.phase)))
        before = record.seconds
    refused = [record.seconds * scale for record in records if not record.accepted]
    again = [record.seconds * scale for record in records if record.restarted]
    said = f"{sum(pauses):.0f} s of compilation, {records[-1].seconds:.0f} s in all, {len(refused)} steps rejected"
    return Strip(name, pieces, refused, again, said if records else "")


def title(phases: Sequence[str], number: int) -> str:
    """A phase by its name, or by its number."""
    known = phases[number] if number < len(phases) else ""
    return f"phase {number + 1}" + (f": {known}" if known else "")


def strips(runs: Sequence[tuple[str, Sequence[Record], Sequence[str]]]) -> list[Strip]:
    """Those of several runs, on one scale."""
    known: list[Any] = [(name, records, phases) for name, records, phases in runs if records]
    longest = max((records[-1].seconds for _, records, _ in known), default=1.0)
    return [strip(name, records, phases, longest) for name, records, phases in known]
