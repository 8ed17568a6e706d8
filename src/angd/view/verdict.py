"""What a comparison found, in a sentence, and what it leaves open. Imports nothing heavy.

A ratio without error bars, with another budget, or against recipes that nobody tuned is easily taken for more than it
is; so the same box says what is not known.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from angd.train.folder import RunFolder
from angd.view.table import groups, short, times

Spans = Mapping[str, tuple[float, float]]
MEASURES = ("error", "test_loss", "loss")
WORDS = {"error": "relative L² error", "test_loss": "test loss", "loss": "training loss"}
COUNTED = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def judged(rows: Sequence[Mapping[str, Any]]) -> str:
    """The best of a table and how far the others are behind.

    **Arguments:** `rows` of `angd.view.table.table`, the best first.

    **Returns:** a sentence, or one that says that no run has ended.
    """
    if not rows:
        return "No run has ended yet."
    best, *others = rows
    what = next((name for name in MEASURES if best[name] is not None), None)
    if what is None:
        return f"{best['recipe']} has no finite loss."
    if any(row["standard_error"] for row in rows):
        return _energies(rows, what)
    behind = [
        f"{times(row[what] / best[what])} times less than {row['recipe']}"
        for row in others
        if row[what] and best[what] and row[what] > 0 and best[what] > 0
    ]
    reached = f"{best['recipe']} reaches a {WORDS[what]} of {short(best[what])}{_listed(behind)}."
    unsure = best["error"] is None and best["apart"] is not None
    return f"{reached} Its seeds are {best['apart']:.1e} apart." if unsure else reached


def _energies(rows: Sequence[Mapping[str, Any]], what: str) -> str:
    """Energies have error bars, so they get no ratios."""
    if what == "error":
        found = [f"{r['recipe']} {1e3 * r[what]:.2f} ± {1e3 * r['standard_error']:.2f}" for r in rows if r[what]]
        return f"Distance from the reference energy, mHa: {', '.join(found)}."
    found = [f"{r['recipe']} {short(r[what])} ± {r['standard_error']:.0e}" for r in rows if r[what] is not None]
    return f"Energy, Ha: {', '.join(found)}."


FIRST_ORDER = ("adam", "sgd", "adam-vmc")
SAME = 1.05  # a smaller ratio is called none


def gains(rows: Sequence[Mapping[str, Any]], folders: Sequence[RunFolder] = ()) -> list[str]:
    """What the metric gained or lost, and what acceleration: every plain natural gradient against the best first-order
    method, and `angd-…` against `ngd-…` in the same metric.

    **Arguments:** `rows` of `angd.view.table.table`; `folders` of the runs, to see whether seeds overlap.

    **Returns:** sentences; none where nothing of the kind was compared, or where energies have error bars.
    """
    what = next((name for name in MEASURES if rows and rows[0][name] is not None), None)
    if what is None or any(row["standard_error"] for row in rows):
        return []
    known = {row["recipe"]: row[what] for row in rows if row[what] and row[what] > 0}
    spans = _spans(folders, what)
    plain = [name for name in known if name.startswith(("energy", "ngd-", "engd")) and "accelerated" not in name]
    first = [name for name in known if name in FIRST_ORDER]
    pairs = [(name, name.removeprefix("a")) for name in known if name.startswith("angd-")]
    found = []
    if plain and first:
        best = min(first, key=lambda name: known[name])
        found.append(f"By the metric: {_against(known, spans, sorted(plain, key=known.__getitem__), best, what)}")
    return found + [f"By acceleration: {_against(known, spans, [a], b, what)}" for a, b in pairs if b in known]


def _against(known: Mapping[str, float], spans: Spans, names: Sequence[str], other: str, what: str) -> str:
    """How methods end, the best first, beside another one."""
    said = [f"{name} {_beside(known[other] / known[name], _apart(spans, name, other))}" for name in names]
    return f"{WORDS[what]} against {other}, {', '.join(said)}."


def _beside(ratio: float, apart: bool) -> str:
    if 1 / SAME < ratio < SAME:
        return "the same"
    said = f"{times(ratio)} times less" if ratio > 1 else f"{times(1 / ratio)} times more"
    return said if apart else f"{said}, but their seeds overlap"


def _apart(spans: Spans, one: str, other: str) -> bool:
    """Whether no seed of the worse is as good as one of the better; single seeds are."""
    if one not in spans or other not in spans:
        return True
    (low, high), (lowest, highest) = spans[one], spans[other]
    return high < lowest or highest < low


def _listed(parts: Sequence[str]) -> str:
    if not parts:
        return ""
    return ", " + (parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}")


def unknowns(rows: Sequence[Mapping[str, Any]], folders: Sequence[RunFolder], errors: str | None) -> list[str]:
    """What the numbers do not tell, in sentences.

    **Arguments:** `rows` of the table; `folders` of the runs; `errors`, "fields", "energy", or None where no solution
    is known.

    **Returns:** sentences; there is nearly always one.
    """
    seeds = min((row["seeds"] for row in rows), default=0)
    found = []
    if seeds == 1:
        found.append("One seed: no error bars.")
    elif seeds > 1:
        found += _ranges(folders, rows)
    if errors is None:
        found.append("No solution is known: a smaller test loss need not be a smaller error.")
    if any(row["budget"] for row in rows):
        found.append("The runs had different budgets: this is no comparison.")
    waiting = sum(folder.read("summary.json") is None for folder in folders)
    if waiting:
        found.append(f"{_counted(waiting)} {'run has' if waiting == 1 else 'runs have'} not ended, or was killed.")
    if len(rows) > 1 and not any(folder.config().changes() for folder in folders):
        found.append("All recipes have their default options: none was tuned here.")
    return found


def _ranges(folders: Sequence[RunFolder], rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """How far seeds are apart, and whether that is as much as the methods are."""
    what = next((name for name in MEASURES if rows[0][name] is not None), "loss")
    spans = _spans(folders, what)
    best, *others = [row["recipe"] for row in rows if row["recipe"] in spans]
    low, high = spans[best]
    said = [f"{_counted(rows[0]['seeds'])} seeds: those of {best} range from {short(low)} to {short(high)}."]
    near = [name for name in others if spans[name][0] <= high]
    return said + ([f"The ranges of {best} and {', '.join(near)} overlap: that is no difference."] if near else [])


def _spans(folders: Sequence[RunFolder], what: str) -> dict[str, tuple[float, float]]:
    """By recipe, the smallest and the largest of its seeds' numbers."""
    key = "largest_error" if what == "error" else what
    found: dict[str, tuple[float, float]] = {}
    for group in groups(folders):
        values = [(folder.read("summary.json") or {}).get(key) for folder in group.folders]
        known = [value for value in values if value is not None]
        if known:
            found[group.label] = min(known), max(known)
    return found


def _counted(number: int) -> str:
    word = COUNTED[number] if number < len(COUNTED) else str(number)
    return word[0].upper() + word[1:]
