"""Figures of runs: how loss, test loss and error fall, against steps and against CPU seconds, in light and in dark."""

import base64
import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import matplotlib
import numpy as np

matplotlib.use("Agg")

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from angd.train.files import write_atomically
from angd.train.folder import Record, RunFolder
from angd.view.fields import draw_solution
from angd.view.table import groups
from angd.view.theme import DARK, LIGHT, Theme, bare

Curves = Mapping[str, Sequence[Sequence[Record]]]
TITLES = {
    "loss": "training loss",
    "test_loss": "test loss",
    "error": "error",
    "energy": "|E − reference| in training, Ha",
}
WINDOW = 10  # evaluations over which training energies are averaged
AXES = {"step": "step", "seconds": "seconds", "cpu_seconds": "CPU seconds"}


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
    if panels[0][0].get_legend_handles_labels()[0]:
        panels[0][0].legend(frameon=False, fontsize=8, labelcolor=theme.ink)
    return figure


def _panel(panel: Axes, curves: Curves, quantity: str, axis: str, theme: Theme) -> None:
    for n, (label, seeds) in enumerate(curves.items()):
        for k, records in enumerate(seeds):
            points = [(getattr(record, axis), y) for record, y in course(records, quantity)]
            points = [(x, y) for x, y in points if y is not None and math.isfinite(y)]
            style: dict[str, Any] = {"color": theme.colours[n % len(theme.colours)], "linewidth": 1.5}
            panel.plot(*zip(*points, strict=True), label=label if k == 0 else None, **style) if points else None
    heights = [y for line in panel.get_lines() for y in np.asarray(line.get_ydata(), float)]
    panel.set_yscale("log" if all(y > 0 for y in heights) else "linear")
    bare(panel, theme)


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
    names = ("error", "loss", "test_loss")
    return tuple(name for name in names if any(_is_number(record.value(name)) for record in records)) or ("loss",)


def _is_number(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


def save(figure: Figure, path: Path) -> None:
    """To a file whose ending says the format."""
    write_atomically(path, lambda temporary: figure.savefig(temporary, format=path.suffix[1:], dpi=160))


def as_svg(figure: Figure) -> str:
    """To be put into a page."""
    text = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": "angd", "svg.fonttype": "path"}):
        figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()[text.getvalue().index("<svg") :]


def as_png(figure: Figure) -> str:
    """To be put into a page as the address of a picture: smaller than vectors where there are fields of colour."""
    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=110)
    return "data:image/png;base64," + base64.b64encode(data.getvalue()).decode()


def curves(folders: Sequence[RunFolder]) -> dict[str, list[list[Record]]]:
    """All records, by what was chosen."""
    return {group.label: [folder.records() for folder in group.folders] for group in groups(folders)}


def draw_run(folder: RunFolder) -> None:
    """The figures of one run, in its folder."""
    if folder.records():
        figure = draw(curves([folder]), quantities([folder]), ("step", "cpu_seconds"))
        save(figure, folder.figures / "history.png")
    solution = folder.read_arrays("solution.npz")
    if solution:
        save(draw_solution(solution), folder.figures / "solution.png")
