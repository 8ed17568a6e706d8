"""Names at the ends of curves, in the colours of the curves: nobody has to look from a legend to a line and back."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes

LINE = 1.25  # heights of a letter between two names
INSIDE = 0.6  # a curve that ends before this share of the panel has its name beside its end, others beside the panel
GAP = 0.02  # of the width of a panel, between the panel and the names


class End(NamedTuple):
    """Where a curve ends, and what it is called."""

    name: str
    x: float
    y: float
    colour: str


def label_ends(panel: Axes, ends: Sequence[End], letters: float, height: float) -> None:
    """Write the names where curves end, or to the right of the panel, each as near to its curve as the others allow.

    **Arguments:** `panel`, whose limits are set; `ends`; `letters`, their size in points; `height` of the panel in
    inches.
    """
    if not ends:
        return
    places = [_place(panel, end) for end in ends]
    heights = spread([y for _, y in places], LINE * letters / 72 / height)
    for end, (x, y), up in zip(ends, places, heights, strict=True):
        place = x if x < INSIDE else 1.0
        style: dict[str, Any] = {"color": end.colour, "transform": panel.transAxes, "clip_on": False}
        panel.text(place + GAP, up, end.name, fontsize=letters, verticalalignment="center", **style)
        if place - x > 2 * GAP or abs(up - y) > GAP:
            panel.plot([min(x, 1.0), place + 0.8 * GAP], [y, up], linewidth=0.5, alpha=0.6, **style)


def _place(panel: Axes, end: End) -> tuple[float, float]:
    """In shares of the panel."""
    x, y = panel.transAxes.inverted().transform(panel.transData.transform((end.x, end.y)))
    return float(x), float(np.clip(y, 0.0, 1.0))


def spread(heights: Sequence[float], least: float) -> list[float]:
    """The nearest heights that are at least so far apart, in the same order.

    **Arguments:** `heights`, shares of a panel; `least` distance.

    **Returns:** heights, in the order that was given.
    """
    order = np.argsort(np.asarray(heights), kind="stable")
    shifted = np.asarray(heights)[order] - least * np.arange(len(order))
    found = np.empty(len(order))
    found[order] = isotonic(shifted) + least * np.arange(len(order))
    return found.tolist()


def isotonic(values: np.ndarray) -> np.ndarray:
    """The nearest values, by squares, that do not fall: neighbours that do are replaced by their mean."""
    blocks: list[tuple[float, int]] = []
    for value in values:
        blocks.append((float(value), 1))
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            (a, n), (b, m) = blocks[-2:]
            blocks[-2:] = [((a * n + b * m) / (n + m), n + m)]
    return np.concatenate([np.full(n, value) for value, n in blocks])
