"""Tuning with an equal budget for every method: configurations from a grid, and successive halving.

All configurations start; at each rung the better third goes on from where it stands, and the others stop. A run that
diverged is the worst of its rung. What a sweep spends is the sum over rungs, and it is reported, so that rivals can be
given the same.
"""

import math
import random
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from angd.train.folder import Record

Options = dict[str, Any]
MOST_COMBINATIONS = 10**6


@dataclass
class Entry:
    """One configuration: its options, and the evaluations of its run so far."""

    options: Options
    records: list[Record] = field(default_factory=list)

    def score(self, by: Callable[[Record], float | None]) -> float:
        """The last value; infinite where there is none or it is not a number."""
        value = by(self.records[-1]) if self.records else None
        return value if value is not None and math.isfinite(value) else math.inf


def configurations(grid: Mapping[str, Sequence[Any]], most: int | None = None, seed: int = 0) -> list[Options]:
    """Every combination of the grid's values, or `most` of them chosen at random."""
    count = math.prod(len(values) for values in grid.values())
    if count > MOST_COMBINATIONS:
        raise ValueError(f"The grid has {count} combinations, and at most {MOST_COMBINATIONS} make sense: try fewer.")
    found = [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]
    return found if most is None or len(found) <= most else random.Random(seed).sample(found, most)


def halving(
    start: Callable[[Options], Iterator[Record]],
    candidates: Sequence[Options],
    rungs: Sequence[int],
    by: Callable[[Record], float | None],
    keep: float = 1 / 3,
    least: int = 3,
) -> list[Entry]:
    """All entries, the best first: those that came further before those that stopped, then by score; diverged last.

    **Arguments:** `start(options)` begins a run, an iterator of records; `rungs` are the steps at which runs are
    compared; `by` says what should be small; `keep` is the share that goes on, but at least `least` runs do, so that
    one which diverges late does not take the sweep with it.
    """
    if not candidates or not rungs or sorted(set(rungs)) != list(rungs) or not (0 < keep <= 1 and least >= 1):
        raise ValueError("halving: it takes candidates, increasing rungs, 0 < keep ≤ 1 and least ≥ 1.")
    alive = [(Entry(options), start(options)) for options in candidates]
    stopped: list[Entry] = []
    try:
        for i, rung in enumerate(rungs):
            for entry, run in alive:
                _advance(entry, run, rung)
            alive.sort(key=lambda pair: pair[0].score(by))
            cut = max(least, round(keep * len(alive))) if i + 1 < len(rungs) else len(alive)
            for _, run in alive[cut:]:
                _close(run)
            stopped = [entry for entry, _ in alive[cut:]] + stopped
            alive = alive[:cut]
    finally:
        for _, run in alive:
            _close(run)
    return sorted([entry for entry, _ in alive] + stopped, key=lambda entry: entry.score(by) == math.inf)


def _advance(entry: Entry, run: Iterator[Record], rung: int) -> None:
    while not entry.records or entry.records[-1].step < rung:
        record = next(run, None)
        if record is None:
            return
        entry.records.append(record)


def _close(run: Iterator[Record]) -> None:
    """Let a run that goes no further save what it has."""
    if isinstance(run, Generator):
        run.close()
