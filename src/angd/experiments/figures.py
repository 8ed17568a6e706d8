"""Figures of runs: how loss, test loss and error fall, against steps and against CPU seconds, in light and in dark."""

import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from angd.experiments.files import write_atomically
from angd.experiments.folder import Row, RunFolder

Curves = Mapping[str, Sequence[Sequence[Row]]]
TITLES = {"loss": "training loss", "test_loss": "test loss", "error": "error"}
AXES = {"step": "step", "seconds": "seconds", "cpu_seconds": "CPU seconds"}


@dataclass(frozen=True)
class Theme:
    """Ink, lines and the colours of curves."""

    ink: str
    grid: str
    colours: tuple[str, ...]


LIGHT = Theme("#1c1f23", "#d9dce0", ("#1f6fb4", "#c4502d", "#2a8c5a", "#8a5bb8", "#b8860b", "#d6568f", "#5f6b76"))
DARK = Theme("#e6e8eb", "#3b4148", ("#6db3f2", "#f08c68", "#63c795", "#bd9be6", "#e3b94f", "#f08fbc", "#a7b0ba"))


def draw(curves: Curves, quantities: Sequence[str], against: Sequence[str], theme: Theme = LIGHT) -> Figure:
    """One row of panels for each quantity, one column for each axis; every seed is a line."""
    figure = Figure(figsize=(4.6 * len(against), 2.9 * len(quantities)), layout="constrained")
    figure.patch.set_alpha(0.0 if theme is DARK else 1.0)
    panels = figure.subplots(len(quantities), len(against), squeeze=False)
    for i, quantity in enumerate(quantities):
        for j, axis in enumerate(against):
            _panel(panels[i][j], curves, quantity, axis, theme)
            if i + 1 == len(quantities):
                panels[i][j].set_xlabel(AXES[axis], color=theme.ink)
        panels[i][0].set_ylabel(TITLES[quantity], color=theme.ink)
    panels[0][0].legend(frameon=False, fontsize=8, labelcolor=theme.ink)
    return figure


def _panel(panel: Axes, curves: Curves, quantity: str, axis: str, theme: Theme) -> None:
    for n, (label, seeds) in enumerate(curves.items()):
        for k, rows in enumerate(seeds):
            points = [(getattr(row, axis), row.value(quantity)) for row in rows]
            points = [(x, y) for x, y in points if y is not None and math.isfinite(y) and y > 0]
            style: dict[str, Any] = {"color": theme.colours[n % len(theme.colours)], "linewidth": 1.5}
            panel.plot(*zip(*points, strict=True), label=label if k == 0 else None, **style) if points else None
    panel.set_yscale("log")
    panel.set_facecolor("none")
    panel.grid(color=theme.grid, linewidth=0.6)
    panel.tick_params(colors=theme.ink, which="both", labelsize=8)
    panel.spines[["top", "right"]].set_visible(False)
    for side in ("left", "bottom"):
        panel.spines[side].set_color(theme.ink)


def save(figure: Figure, path: Path) -> None:
    """To a file whose ending says the format."""
    write_atomically(path, lambda temporary: figure.savefig(temporary, format=path.suffix[1:], dpi=160))


def as_svg(figure: Figure) -> str:
    """To be put into a page."""
    text = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": "angd", "svg.fonttype": "path"}):
        figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()[text.getvalue().index("<svg") :]


def label(folder: RunFolder) -> str:
    """What a run is called where it stands beside others of its experiment."""
    return folder.config().optimizer


def draw_run(folder: RunFolder) -> None:
    """The figure of one run, in its folder."""
    rows = folder.rows()
    if rows:
        figure = draw({label(folder): [rows]}, ("loss", "test_loss", "error"), ("step", "cpu_seconds"))
        save(figure, folder.figures / "history.png")
