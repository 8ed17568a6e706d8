"""Figures of runs: how errors and losses fall, against steps and against CPU seconds, in light and in dark.

Every method has its colour and dash everywhere, and its name at the end of its curve. Time in which XLA compiles is a
gap, over which a thin dotted line leads.
"""

import base64
import io
import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median
from typing import Any

import matplotlib
import numpy as np

matplotlib.use("Agg")

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from angd.train.files import write_atomically
from angd.train.folder import Record, RunFolder
from angd.view.fields import draw_solution
from angd.view.labels import End, label_ends
from angd.view.table import groups
from angd.view.theme import DARK, LIGHT, SCREEN, Page, Style, Theme, bare, styles

Curves = Mapping[str, Sequence[Sequence[Record]]]
Bars = Mapping[str, Sequence[tuple[float, float]]]
TITLES = {
    "loss": "training loss",
    "test_loss": "test loss",
    "error": "relative L² error",
    "energy": "|E − reference|, mHa",
}
MILLI = 1e3
ACCURACY = 1.594  # mHa, a kilocalorie per mole: what chemists call accurate
WINDOW = 10  # evaluations over which training energies are averaged
DECADE = 10.0  # how many times more steps one method makes before steps are drawn on a logarithmic scale
JUMP, LEAST = 5.0, 0.2  # a step that takes so many times the usual one, and so many seconds, has compiled
AXES = {"step": "step", "seconds": "seconds", "cpu_seconds": "CPU seconds"}


def draw(
    curves: Curves,
    quantities: Sequence[str],
    against: Sequence[str],
    theme: Theme = LIGHT,
    page: Page = SCREEN,
    bars: Bars | None = None,
) -> Figure:
    """A panel for each quantity against each axis; every seed is a line, the first of them the strongest.

    **Arguments:**

    - `curves`: records by method and seed.
    - `quantities`: of `TITLES`; each is a row.
    - `against`: of `AXES`; each is a column, or a row of its own where the page is narrow.
    - `theme`, `page`: the paper.
    - `bars`: of ground states, energies above the reference on fresh walkers with their standard errors, in Hartree.

    **Returns:** a figure.
    """
    columns = min(len(against), page.columns)
    cells = [(quantity, axis) for quantity in quantities for axis in against]
    rows = math.ceil(len(cells) / columns)
    with matplotlib.rc_context(page.rc):
        size = page.size(rows, columns)
        figure = Figure(figsize=size, layout="constrained")
        figure.patch.set_alpha(0.0 if theme is DARK else 1.0)
        panels = figure.subplots(rows, columns, squeeze=False)
        for n, (quantity, axis) in enumerate(cells):
            i, j = divmod(n, columns)
            panel = panels[i][j]
            ends = draw_panel(panel, curves, quantity, axis, theme, page, bars)
            panel.set_xlabel(AXES[axis], color=theme.ink)
            if j == 0:
                panel.set_ylabel(TITLES[quantity], color=theme.ink)
            if j + 1 == columns:
                label_ends(panel, ends, page.letters - 0.5, 0.75 * size[1] / rows)
    return figure


def draw_panel(
    panel: Axes,
    curves: Curves,
    quantity: str,
    axis: str,
    theme: Theme = LIGHT,
    page: Page = SCREEN,
    bars: Bars | None = None,
) -> list[End]:
    """Curves of one quantity against one axis.

    **Arguments:** `panel`; the others as of `draw`.

    **Returns:** where the curves end, for `label_ends`.
    """
    looks, ends = styles(curves, theme), []
    for label, seeds in curves.items():
        found = [_points(records, quantity, axis) for records in seeds]
        for k, (points, gaps) in enumerate(found):
            _curve(panel, points, gaps, looks[label], page, k > 0)
        last = next((points[-1] for points, _ in found if points), None)
        if last is not None:
            measured = (bars or {}).get(label)
            if quantity == "energy" and measured:
                last = _bars(panel, found, measured, looks[label])
            ends.append(End(label, *last, looks[label].colour))
    if quantity == "energy":
        _accuracy(panel, theme, page)
    _scales(panel, curves, axis)
    bare(panel, theme, page)
    return ends


def _accuracy(panel: Axes, theme: Theme, page: Page) -> None:
    """The band of chemical accuracy, with its name."""
    panel.axhspan(0, ACCURACY, color=theme.hues["green"], alpha=0.12, linewidth=0)
    style: dict[str, Any] = {"color": theme.ink, "alpha": 0.7, "fontsize": page.letters - 2, "clip_on": True}
    place = panel.get_yaxis_transform()
    panel.text(0.01, 0.93 * ACCURACY, "chemical accuracy", transform=place, verticalalignment="top", **style)


def _scales(panel: Axes, curves: Curves, axis: str) -> None:
    """Logarithmic where numbers are positive; steps where methods make very different numbers of them."""
    heights = [y for line in panel.get_lines() for y in np.asarray(line.get_ydata(), float) if y == y]
    panel.set_yscale("log" if heights and all(y > 0 for y in heights) else "linear")
    lengths = [records[-1].step for seeds in curves.values() for records in seeds if records]
    if axis == "step" and lengths and max(lengths) > DECADE * min(lengths):
        panel.set_xscale("log")
    else:
        panel.set_xlim(left=0)


def _points(
    records: Sequence[Record], quantity: str, axis: str
) -> tuple[list[tuple[float, float]], list[tuple[int, float]]]:
    """What is drawn: the points that are finite, and before which of them XLA compiled since when."""
    scale = MILLI if quantity == "energy" else 1.0
    known = [(record, y) for record, y in course(records, quantity) if y is not None and math.isfinite(y)]
    points = [(float(getattr(record, axis)), scale * y) for record, y in known]
    return points, [] if axis == "step" else _gaps([record for record, _ in known], axis)


def _gaps(records: Sequence[Record], axis: str) -> list[tuple[int, float]]:
    """The records before which XLA compiled, and when it began."""
    pauses = compilations(records, axis)
    starts = [0.0, *(float(getattr(record, axis)) for record in records)]
    return [(i, starts[i]) for i in range(len(records)) if pauses[i]]


def compilations(records: Sequence[Record], axis: str = "seconds") -> list[float]:
    """Seconds of compilation before each record: the first, and those with which a phase begins and that took long.

    **Arguments:** `records` of one run; `axis`, "seconds" or "cpu_seconds".

    **Returns:** seconds, 0 where there was none, one for each record.
    """
    times = [0.0, *(float(getattr(record, axis)) for record in records)]
    steps = [0, *(record.step for record in records)]
    each = [(times[i + 1] - times[i]) / max(steps[i + 1] - steps[i], 1) for i in range(len(records))]
    usual = median(each) if each else 0.0
    found = []
    for i, record in enumerate(records):
        begins = i == 0 or record.phase != records[i - 1].phase
        spent = times[i + 1] - times[i] - usual * (steps[i + 1] - steps[i])
        found.append(spent if begins and spent > max(JUMP * usual, LEAST) else 0.0)
    return found


def _curve(
    panel: Axes,
    points: Sequence[tuple[float, float]],
    gaps: Sequence[tuple[int, float]],
    look: Style,
    page: Page,
    behind: bool,
) -> None:
    """One run: pieces between compilations, and dotted lines over these."""
    style: dict[str, Any] = {"color": look.colour, "alpha": 0.4 if behind else 1.0}
    cuts = [0, *(i for i, _ in gaps if i > 0), len(points)]
    for first, last in pairwise(cuts):
        if last > first:
            x, y = zip(*points[first:last], strict=True)
            marker = {"marker": "o", "markersize": 2.5} if last - first == 1 else {}
            panel.plot(x, y, linestyle=look.dash, linewidth=page.line * (0.6 if behind else 1), **style, **marker)
    for i, began in gaps:
        before = points[i - 1][1] if i else points[i][1]
        panel.plot([began, points[i][0]], [before] * 2, linestyle=(0, (1, 3)), linewidth=0.7 * page.line, **style)


def _bars(panel: Axes, found: Sequence[Any], bars: Sequence[tuple[float, float]], look: Style) -> tuple[float, float]:
    """Energies on fresh walkers with their standard errors, at the ends of their runs; gives the first one's place."""
    places = [points[-1][0] for points, _ in found if points]
    heights = [MILLI * abs(error) for error, _ in bars][: len(places)]
    sizes = [MILLI * bar for _, bar in bars][: len(places)]
    style: dict[str, Any] = {"fmt": "o", "markersize": 3.5, "capsize": 2.5, "linewidth": 1.0}
    panel.errorbar(places[: len(heights)], heights, sizes, color=look.colour, **style)
    return places[0], heights[0]


def course(records: Sequence[Record], quantity: str) -> list[tuple[Record, float | None]]:
    """A quantity at every evaluation; training energies are so noisy that the mean of the last ones is taken."""
    if quantity != "energy":
        return [(record, record.value(quantity)) for record in records]
    known = [(record, record.errors.get("energy")) for record in records]
    signed = [(record, error) for record, error in known if error is not None]
    recent = [[error for _, error in signed[max(0, i + 1 - WINDOW) : i + 1]] for i in range(len(signed))]
    return [(record, abs(fmean(errors))) for (record, _), errors in zip(signed, recent, strict=True)]


def quantities(folders: Sequence[RunFolder]) -> tuple[str, ...]:
    """What is worth drawing: energies where there is a reference, else whatever is known."""
    if any(folder.about().get("errors") == "energy" for folder in folders):
        return ("energy",)
    records = [record for folder in folders for record in folder.records()]
    names = ("error", "test_loss", "loss")
    return tuple(name for name in names if any(_is_number(record.value(name)) for record in records)) or ("loss",)


def _is_number(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


def save(figure: Figure, path: Path, page: Page = SCREEN) -> None:
    """To a file whose ending says the format; letters are embedded as TrueType."""
    with matplotlib.rc_context(page.rc):
        metadata = {"Date": None} if path.suffix == ".svg" else {"CreationDate": None} if path.suffix == ".pdf" else {}
        write_atomically(
            path, lambda temporary: figure.savefig(temporary, format=path.suffix[1:], dpi=160, metadata=metadata)
        )


def address_of(path: Path) -> str:
    """A picture that was saved (PNG), as an address that holds it."""
    return "data:image/png;base64," + base64.b64encode(path.read_bytes()).decode()


def as_png(figure: Figure) -> str:
    """To be put into a page as the address of a picture: smaller than vectors where there are fields of colour."""
    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=110)
    return "data:image/png;base64," + base64.b64encode(data.getvalue()).decode()


def curves(folders: Sequence[RunFolder]) -> dict[str, list[list[Record]]]:
    """All records, by what was chosen."""
    return {group.label: [folder.records() for folder in group.folders] for group in groups(folders)}


def bars(folders: Sequence[RunFolder]) -> dict[str, list[tuple[float, float]]]:
    """Energies above the reference on fresh walkers with their standard errors, by what was chosen."""
    found: dict[str, list[tuple[float, float]]] = {}
    for group in groups(folders):
        summaries = [folder.read("summary.json") or {} for folder in group.folders]
        known: list[Any] = [(s.get("error"), s.get("standard_error")) for s in summaries]
        found[group.label] = [pair for pair in known if _is_number(pair[1]) and isinstance(pair[0], float)]
    return found


def _last_drawn(folder: RunFolder) -> Path:
    """The figure that is drawn last."""
    return folder.figures / ("solution.svg" if (folder.path / "solution.npz").exists() else "history.png")


def is_drawn(folder: RunFolder) -> bool:
    """Are all figures of a run there? A process that is killed while it draws leaves some out."""
    return _last_drawn(folder).exists()


def draw_run(folder: RunFolder) -> None:
    """The figures of one run, in its folder; the solution also for documents (PDF, SVG)."""
    _last_drawn(folder).unlink(missing_ok=True)
    if folder.records():
        known, drawn = curves([folder]), quantities([folder])
        save(draw(known, drawn, ("step", "cpu_seconds"), bars=bars([folder])), folder.figures / "history.png")
    solution = folder.read_arrays("solution.npz")
    if solution:
        save_all(lambda theme: draw_solution(solution, theme), folder.figures / "solution")


def save_all(make: Callable[[Theme], Figure], place: Path, page: Page = SCREEN, dark: bool = False) -> None:
    """PNG, PDF and SVG of one figure, and PNG on dark paper where that is asked for."""
    light = make(LIGHT)
    place.parent.mkdir(parents=True, exist_ok=True)
    light.draw_without_rendering()
    light.set_layout_engine(None)  # what is laid out once need not be again for every format
    for ending in (".png", ".pdf", ".svg"):
        save(light, place.with_name(place.name + ending), page)
    if dark:
        save(make(DARK), place.with_name(f"{place.name}-dark.png"), page)
