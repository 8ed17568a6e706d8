"""What a differential equation's run found, beside the exact solution if that is known: over a plane, or on a line."""

from collections.abc import Mapping
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from angd.problems.solution import Solution, fields, relative_errors
from angd.view.theme import DARK, LIGHT, SCREEN, Page, Theme, bare

Pairs = dict[str, tuple[np.ndarray, np.ndarray | None]]
SLICES = 4
NOISE = 0.03  # of its height: what a network may have below zero where the field is positive


def draw_solution(solution: Solution, theme: Theme = LIGHT, page: Page = SCREEN) -> Figure:
    """Over the two coordinates that vary first, or along the one that does.

    **Arguments:** `solution`, as `angd.problems.solution` keeps it; `theme`; `page`.

    **Returns:** a figure.
    """
    with matplotlib.rc_context(page.rc):
        return _draw_solution(solution, theme, page)


def _draw_solution(solution: Solution, theme: Theme, page: Page) -> Figure:
    z, names, varying = solution["z"], _names(solution), _varying(solution)
    if len(varying) == 2:
        figure = _on_a_plane(z[:, varying], [names[i] for i in varying], fields(solution), theme, page)
    else:
        fixed = ", ".join(f"{names[i]} = {z[0, i]:g}" for i in range(z.shape[1]) if i not in varying)
        figure = _on_a_line(z[:, varying[0]], names[varying[0]], fixed, fields(solution), theme, page)
    _inked(figure, theme, page)
    return figure


def _names(solution: Solution) -> list[str]:
    return [str(name) for name in solution.get("coordinates", ("t", "x"))]


def _varying(solution: Solution) -> list[int]:
    """The coordinates that are drawn: the first two that vary."""
    z = solution["z"]
    return [i for i in range(z.shape[1]) if np.ptp(z[:, i]) > 0][:2]


def _inked(figure: Figure, theme: Theme, page: Page) -> None:
    """All text in the ink of the theme."""
    figure.patch.set_alpha(0.0 if theme is DARK else 1.0)
    for panel in figure.axes:
        panel.tick_params(colors=theme.ink, labelsize=page.letters - 1)
        panel.xaxis.label.set_color(theme.ink)
        panel.yaxis.label.set_color(theme.ink)
        panel.title.set_color(theme.ink)


def draw_errors(solutions: Mapping[str, Solution], theme: Theme = LIGHT) -> dict[str, Figure]:
    """A small figure for each method: where it is wrong, or, where nothing is exact, what it found; on one scale.

    **Arguments:** `solutions` by method, all on the same points; `theme`.

    **Returns:** figures by method; of several fields the one whose error is largest.
    """
    shown = {label: _worst(solution) for label, solution in solutions.items()}
    low = min(float(np.nanquantile(values, 0.02)) for _, values in shown.values())
    high = max(float(np.nanmax(values)) for _, values in shown.values())
    return {
        label: _small(solutions[label], f"{label}: {name}", values, (low, high), theme)
        for label, (name, values) in shown.items()
    }


def _worst(solution: Solution) -> tuple[str, np.ndarray]:
    """The name and log₁₀ |error| of the field whose error is largest, or the first field where nothing is exact."""
    known = relative_errors(solution)
    if not known:
        name, (found, _) = next(iter(fields(solution).items()))
        return name, found
    name = max(known, key=lambda field: known[field])
    found, exact = fields(solution)[name]
    assert exact is not None
    return f"{name}, {known[name]:.1e}", np.log10(np.abs(found - exact) + 1e-16)


def _small(solution: Solution, title: str, values: np.ndarray, ends: tuple[float, float], theme: Theme) -> Figure:
    """One of the small figures."""
    z, names, varying = solution["z"], _names(solution), _varying(solution)
    figure = Figure(figsize=(2.7, 2.2), layout="constrained")
    panel = figure.subplots()
    if len(varying) == 2:
        first, second = (np.unique(z[:, i]) for i in varying)
        u = values.reshape(len(first), len(second)).T
        mesh = panel.pcolormesh(first, second, u, cmap="magma", vmin=ends[0], vmax=ends[1], rasterized=True)
        figure.colorbar(mesh, ax=panel).ax.tick_params(labelsize=7)
        panel.set(ylabel=names[varying[1]])
    else:
        panel.plot(z[:, varying[0]], values, color=theme.colours[0], linewidth=1.2)
        panel.set_ylim(*ends)
        bare(panel, theme)
    panel.set(xlabel=names[varying[0]])
    panel.set_title(title, fontsize=8)
    _inked(figure, theme, Page(letters=8.0))
    return figure


def _on_a_line(x: np.ndarray, axis: str, fixed: str, pairs: Pairs, theme: Theme, page: Page) -> Figure:
    """One panel for each field."""
    columns = min(len(pairs), page.columns)
    rows = -(-len(pairs) // columns)
    figure = Figure(figsize=_size(page, rows, columns), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for spare in panels[len(pairs) :]:
        spare.remove()
    for panel, (name, (found, exact)) in zip(panels, pairs.items(), strict=False):
        panel.plot(x, found, color=theme.colours[0], linewidth=1.6, label="found")
        if exact is not None:
            panel.plot(x, exact, color=theme.ink, linewidth=1.0, linestyle=(0, (1, 2)), label="exact")
        panel.set(xlabel=axis, title=f"{name} at {fixed}" if fixed else name)
        bare(panel, theme)
    figure.axes[0].legend(frameon=False, fontsize=8, labelcolor=theme.ink)
    return figure


def _on_a_plane(z: np.ndarray, axes: list[str], pairs: Pairs, theme: Theme, page: Page) -> Figure:
    """For each field: all of it, slices at some values of the first coordinate, and where it is wrong, if known."""
    columns = 3 if all(exact is not None for _, exact in pairs.values()) else 2
    across = min(columns, page.columns)
    rows = len(pairs) * -(-columns // across)
    figure = Figure(figsize=_size(page, rows, across), layout="constrained")
    first, second = (np.unique(column) for column in z.T)
    panels = figure.subplots(rows, across, squeeze=False).reshape(len(pairs), -1)
    for spare in panels[:, columns:].ravel():
        spare.remove()
    for row, (name, (found, exact)) in zip(panels[:, :columns], pairs.items(), strict=True):
        u = found.reshape(len(first), len(second))
        known = None if exact is None else exact.reshape(u.shape)
        _mesh(figure, row[0], (first, second, u), *colours_of(u if known is None else known))
        row[0].set(xlabel=axes[0], ylabel=axes[1], title=f"{name}({', '.join(axes)})")
        _slices(row[1], first, second, u, known, axes[0], theme)
        row[1].set(xlabel=axes[1], title=name if known is None else f"{name} (dots: exact)")
        if known is not None:
            error = np.log10(np.abs(u - known) + 1e-16)
            _mesh(figure, row[2], (first, second, error), "magma", (float(np.quantile(error, 0.02)), None))
            row[2].set(xlabel=axes[0], ylabel=axes[1], title=f"log₁₀ |error of {name}|")
        for panel in row:
            panel.xaxis.label.set_color(theme.ink)
    return figure


def _size(page: Page, rows: int, columns: int) -> tuple[float, float]:
    """Of a figure with so many panels, in inches."""
    return (3.4 * columns, 2.8 * rows) if page.width is None else (page.width, rows * 0.82 * page.width / columns)


def colours_of(u: np.ndarray) -> tuple[str, tuple[float | None, float | None]]:
    """A sequential map for fields of one sign, a diverging one about zero for others.

    **Arguments:** `u`, values.

    **Returns:** the name of the map, and the values at its ends.
    """
    low, high = float(np.nanmin(u)), float(np.nanmax(u))
    slack = NOISE * max(abs(low), abs(high))
    if low >= -slack:
        return "viridis", (None, None)
    if high <= slack:
        return "viridis_r", (None, None)
    return "RdBu_r", (-max(-low, high), max(-low, high))


def _mesh(figure: Figure, panel: Any, values: tuple[Any, Any, Any], colours: str, ends: tuple[Any, Any]) -> None:
    first, second, u = values
    mesh = panel.pcolormesh(
        first, second, u.T, cmap=colours, vmin=ends[0], vmax=ends[1], shading="auto", rasterized=True
    )
    figure.colorbar(mesh, ax=panel).ax.tick_params(labelsize=8)


def _slices(panel: Any, first: Any, second: Any, u: Any, known: Any, axis: str, theme: Theme) -> None:
    for colour, i in zip(theme.colours, np.linspace(0, len(first) - 1, SLICES).astype(int), strict=False):
        panel.plot(second, u[i], color=colour, linewidth=1.6, label=f"{axis} = {first[i]:.2g}")
        if known is not None:
            panel.plot(second, known[i], color=theme.ink, linewidth=0.9, linestyle=(0, (1, 3)))
    panel.legend(frameon=False, fontsize=8, labelcolor=theme.ink)
    bare(panel, theme)
