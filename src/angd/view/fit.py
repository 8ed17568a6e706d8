"""Figures of a `Fit`: how loss and errors fell, beside the solution where there is one."""

import html
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from angd.problems.evaluation import solution_of
from angd.problems.solution import fields
from angd.view.curves import as_png
from angd.view.fields import colours_of
from angd.view.theme import LIGHT, bare


def draw_fit(fit: Any) -> Figure:
    """The course of training and the solution.

    **Arguments:** `fit`, an `angd.Fit`.

    **Returns:** a figure.
    """
    found = solution_of(fit.task)
    solution = None if found is None else {name: np.asarray(value) for name, value in found(fit.params).items()}
    names = [] if solution is None else list(fields(solution))
    figure = Figure(figsize=(4.4 * (1 + len(names)), 3.2), layout="constrained")
    panels = figure.subplots(1, 1 + len(names), squeeze=False)[0]
    _course(panels[0], fit)
    for panel, name in zip(panels[1:], names, strict=True):
        assert solution is not None
        _field(figure, panel, solution, name)
    return figure


def as_html(fit: Any, sentence: str) -> str:
    """For notebooks."""
    return f'<p>{html.escape(sentence)}</p><img alt="how training went" src="{as_png(draw_fit(fit))}">'


def _course(panel: Any, fit: Any) -> None:
    """Loss of every step; errors and test loss where they were evaluated."""
    error = "relative L² error" if fit.task.energy is None else "|E − reference|, Ha"
    lines: dict[str, tuple[Sequence[float], Sequence[float]]] = {
        "loss": (fit.history["step"], fit.history["loss"]),
        "test loss": _known(fit.records, lambda record: record.test_loss),
        error: _known(fit.records, lambda record: record.error if record.errors else None),
    }
    drawn = {name: (x, y) for name, (x, y) in lines.items() if np.any(np.isfinite(np.asarray(y, float)))}
    for colour, (name, (x, y)) in zip(LIGHT.colours, drawn.items(), strict=False):
        panel.plot(x, y, color=colour, linewidth=1.5, label=name)
    positive = all(np.nanmin(np.asarray(y, float)) > 0 for _, y in drawn.values())
    panel.set_yscale("log" if drawn and positive else "linear")
    panel.set(xlabel="step", title=fit.task.name)
    if drawn:
        panel.legend(frameon=False, fontsize=8)
    bare(panel, LIGHT)


def _known(records: Sequence[Any], read: Any) -> tuple[list[float], list[float]]:
    pairs = [(record.step, value) for record in records if (value := read(record)) is not None and math.isfinite(value)]
    return [step for step, _ in pairs], [value for _, value in pairs]


def _field(figure: Figure, panel: Any, solution: Any, name: str) -> None:
    """One field over its first two coordinates that vary, or along the only one."""
    z, (values, exact) = solution["z"], fields(solution)[name]
    axes = [str(axis) for axis in solution["coordinates"]]
    varying = [i for i in range(z.shape[1]) if np.ptp(z[:, i]) > 0][:2]
    if len(varying) < 2:
        panel.plot(z[:, varying[0]], values, color=LIGHT.colours[0], label="found")
        if exact is not None:
            panel.plot(z[:, varying[0]], exact, color=LIGHT.ink, linestyle=(0, (1, 2)), label="exact")
            panel.legend(frameon=False, fontsize=8)
        panel.set(xlabel=axes[varying[0]], title=name)
        bare(panel, LIGHT)
        return
    first, second = (np.unique(z[:, i]) for i in varying)
    colours, (low, high) = colours_of(values if exact is None else exact)
    u = values.reshape(len(first), -1).T
    mesh = panel.pcolormesh(first, second, u, cmap=colours, vmin=low, vmax=high, rasterized=True)
    figure.colorbar(mesh, ax=panel)
    panel.set(xlabel=axes[varying[0]], ylabel=axes[varying[1]], title=name)
