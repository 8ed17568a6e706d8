"""The curves of a report as data for its script: few enough points, no numbers that JSON does not know.

What goes into a page is escaped: `<`, `>` and `&` cannot end the element that it stands in.
"""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from angd.train.folder import Record
from angd.view.curves import ACCURACY, AXES, MILLI, TITLES, compilations, course
from angd.view.theme import DARK, LIGHT, styles

MOST = 240  # points of a curve


def as_data(curves: Mapping[str, Sequence[Sequence[Record]]], quantities: Sequence[str]) -> str:
    """JSON for the script of a report.

    **Arguments:** `curves`, records by method and seed; `quantities` that may be shown, the first one at first.

    **Returns:** text that may stand in a `<script>` element.
    """
    light, dark = styles(curves, LIGHT), styles(curves, DARK)
    found = {
        "quantities": {name: TITLES[name] for name in quantities},
        "axes": {"cpu_seconds": AXES["cpu_seconds"], "step": AXES["step"], "seconds": AXES["seconds"]},
        "band": ACCURACY if "energy" in quantities else None,
        "methods": [
            {
                "name": label,
                "light": light[label].colour,
                "dark": dark[label].colour,
                "dash": dashes(light[label].dash),
                "runs": [_run(records, quantities) for records in seeds],
            }
            for label, seeds in curves.items()
        ],
    }
    return escaped(json.dumps(found, ensure_ascii=False, allow_nan=False, separators=(",", ":")))


def _run(records: Sequence[Record], quantities: Sequence[str]) -> dict[str, Any]:
    """Columns of one run."""
    kept = thinned(records)
    columns: dict[str, Any] = {
        "step": [record.step for record in kept],
        "seconds": [record.seconds for record in kept],
        "cpu_seconds": [record.cpu_seconds for record in kept],
        "gaps": _gaps(records, kept),
    }
    for name in quantities:
        known = {id(record): value for record, value in course(records, name)}
        columns[name] = [_number(known.get(id(record)), MILLI if name == "energy" else 1.0) for record in kept]
    return columns


def thinned(records: Sequence[Record]) -> Sequence[Record]:
    """Not more than `MOST` of them, evenly, with the last one."""
    every = max(1, math.ceil(len(records) / MOST))
    kept = list(records[::every])
    return kept if not records or kept[-1] is records[-1] else [*kept, records[-1]]


def _gaps(records: Sequence[Record], kept: Sequence[Record]) -> list[int]:
    """Before which of the points that are kept XLA compiled."""
    paused = [record.step for record, pause in zip(records, compilations(records), strict=True) if pause > 0]
    steps = [0, *(record.step for record in kept)]
    return [i for i in range(1, len(kept)) if any(steps[i] < step <= steps[i + 1] for step in paused)]


def _number(value: float | None, scale: float) -> float | None:
    return None if value is None or not math.isfinite(value) else float(f"{scale * value:.5g}")


def dashes(dash: Any) -> str:
    """As SVG writes them."""
    return "" if isinstance(dash, str) else " ".join(f"{length:g}" for length in dash[1])


def escaped(text: str) -> str:
    """JSON that no HTML can be hidden in."""
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text
