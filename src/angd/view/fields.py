"""What a differential equation's run found, beside the exact solution if that is known: over a plane, or on a line."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from angd.problems.solution import Solution, fields
from angd.view.theme import DARK, LIGHT, Theme, bare

Pairs = dict[str, tuple[np.ndarray, np.ndarray | None]]
SLICES = 4


def draw_solution(solution: Solution, theme: Theme = LIGHT) -> Figure:
    """Over the two coordinates that vary first, or along the one that does.

    **Arguments:** `solution`, as `angd.problems.solution` keeps it; `theme`.

    **Returns:** a figure.
    """
    z = solution["z"]
    names = [str(name) for name in solution.get("coordinates", ("t", "x"))]
    varying = [i for i in range(z.shape[1]) if np.ptp(z[:, i]) > 0][:2]
    if len(varying) == 2:
        figure = _on_a_plane(z[:, varying], [names[i] for i in varying], fields(solution), theme)
    else:
        fixed = ", ".join(f"{names[i]} = {z[0, i]:g}" for i in range(z.shape[1]) if i not in varying)
        figure = _on_a_line(z[:, varying[0]], names[varying[0]], fixed, fields(solution), theme)
    figure.patch.set_alpha(0.0 if theme is DARK else 1.0)
    for panel in figure.axes:
        panel.tick_params(colors=theme.ink, labelsize=8)
        panel.xaxis.label.set_color(theme.ink)
        panel.yaxis.label.set_color(theme.ink)
        panel.title.set_color(theme.ink)
    return figure


def _on_a_line(x: np.ndarray, axis: str, fixed: str, pairs: Pairs, theme: Theme) -> Figure:
    """One panel for each field."""
    figure = Figure(figsize=(3.4 * len(pairs), 2.7), layout="constrained")
    panels = figure.subplots(1, len(pairs), squeeze=False)[0]
    for panel, (name, (found, exact)) in zip(panels, pairs.items(), strict=True):
        panel.plot(x, found, color=theme.colours[0], linewidth=1.6, label="found")
        if exact is not None:
            panel.plot(x, exact, color=theme.ink, linewidth=1.0, linestyle=(0, (1, 2)), label="exact")
        panel.set(xlabel=axis, title=f"{name} at {fixed}" if fixed else name)
        bare(panel, theme)
    figure.axes[0].legend(frameon=False, fontsize=8, labelcolor=theme.ink)
    return figure


def _on_a_plane(z: np.ndarray, axes: list[str], pairs: Pairs, theme: Theme) -> Figure:
    """For each field: all of it, slices at some values of the first coordinate, and where it is wrong, if known."""
    columns = 3 if all(exact is not None for _, exact in pairs.values()) else 2
    figure = Figure(figsize=(3.4 * columns, 2.8 * len(pairs)), layout="constrained")
    first, second = (np.unique(column) for column in z.T)
    for row, (name, (found, exact)) in zip(
        figure.subplots(len(pairs), columns, squeeze=False), pairs.items(), strict=True
    ):
        u = found.reshape(len(first), len(second))
        known = None if exact is None else exact.reshape(u.shape)
        _mesh(figure, row[0], (first, second, u), "RdBu_r", None)
        row[0].set(xlabel=axes[0], ylabel=axes[1], title=f"{name}({', '.join(axes)})")
        _slices(row[1], first, second, u, known, axes[0], theme)
        row[1].set(xlabel=axes[1], title=name if known is None else f"{name} (dots: exact)")
        if known is not None:
            error = np.log10(np.abs(u - known) + 1e-16)
            _mesh(figure, row[2], (first, second, error), "magma", float(np.quantile(error, 0.02)))
            row[2].set(xlabel=axes[0], ylabel=axes[1], title=f"log₁₀ of the error of {name}")
        for panel in row:
            panel.xaxis.label.set_color(theme.ink)
    return figure


def _mesh(figure: Figure, panel: Any, values: tuple[Any, Any, Any], colours: str, low: float | None) -> None:
    first, second, u = values
    mesh = panel.pcolormesh(first, second, u.T, cmap=colours, vmin=low, shading="auto", rasterized=True)
    figure.colorbar(mesh, ax=panel)


def _slices(panel: Any, first: Any, second: Any, u: Any, known: Any, axis: str, theme: Theme) -> None:
    for colour, i in zip(theme.colours, np.linspace(0, len(first) - 1, SLICES).astype(int), strict=False):
        panel.plot(second, u[i], color=colour, linewidth=1.6, label=f"{axis} = {first[i]:.2g}")
        if known is not None:
            panel.plot(second, known[i], color=theme.ink, linewidth=0.9, linestyle=(0, (1, 3)))
    panel.legend(frameon=False, fontsize=8, labelcolor=theme.ink)
    bare(panel, theme)
