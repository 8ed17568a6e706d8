"""What a differential equation's run found, beside the exact solution: over time and space, or at one time."""

import numpy as np
from matplotlib.figure import Figure

from angd.problems.solution import Solution, fields
from angd.view.theme import DARK, LIGHT, Theme, bare

Pairs = dict[str, tuple[np.ndarray, np.ndarray]]
SLICES = 4


def draw_solution(solution: Solution, theme: Theme = LIGHT) -> Figure:
    """At points (t, x)."""
    draw = _over_time if len(np.unique(solution["z"][:, 0])) > 1 else _at_one_time
    figure = draw(solution["z"], fields(solution), theme)
    figure.patch.set_alpha(0.0 if theme is DARK else 1.0)
    for panel in figure.axes:
        panel.tick_params(colors=theme.ink, labelsize=8)
        panel.xaxis.label.set_color(theme.ink)
        panel.yaxis.label.set_color(theme.ink)
        panel.title.set_color(theme.ink)
    return figure


def _at_one_time(z: np.ndarray, pairs: Pairs, theme: Theme) -> Figure:
    """One panel for each field."""
    figure = Figure(figsize=(3.4 * len(pairs), 2.7), layout="constrained")
    t, x = z[0, 0], z[:, 1]
    panels = figure.subplots(1, len(pairs), squeeze=False)[0]
    for panel, (name, (found, exact)) in zip(panels, pairs.items(), strict=True):
        panel.plot(x, found, color=theme.colours[0], linewidth=1.6, label="found")
        panel.plot(x, exact, color=theme.ink, linewidth=1.0, linestyle=(0, (1, 2)), label="exact")
        panel.set(xlabel="x", title=f"{name} at t = {t:g}")
        bare(panel, theme)
    figure.axes[0].legend(frameon=False, fontsize=8, labelcolor=theme.ink)
    return figure


def _over_time(z: np.ndarray, pairs: Pairs, theme: Theme) -> Figure:
    """For each field: all of it, slices at some times, and where it is wrong."""
    figure = Figure(figsize=(10.2, 2.8 * len(pairs)), layout="constrained")
    times, places = (np.unique(column) for column in z.T)
    for row, (name, pair) in zip(figure.subplots(len(pairs), 3, squeeze=False), pairs.items(), strict=True):
        found, exact = (field.reshape(len(times), len(places)) for field in pair)
        error = np.log10(np.abs(found - exact) + 1e-16)
        low = np.quantile(error, 0.02)
        for panel, values, title, colours, limits in (
            (row[0], found, f"{name}(t, x)", "RdBu_r", (None, None)),
            (row[2], error, f"log₁₀ of the error of {name}", "magma", (low, None)),
        ):
            mesh = panel.pcolormesh(
                times, places, values.T, cmap=colours, vmin=limits[0], vmax=limits[1], shading="auto", rasterized=True
            )
            figure.colorbar(mesh, ax=panel).ax.tick_params(colors=theme.ink, labelsize=8)
            panel.set(xlabel="t", ylabel="x", title=title)
        for colour, i in zip(theme.colours, np.linspace(0, len(times) - 1, SLICES).astype(int), strict=False):
            row[1].plot(places, found[i], color=colour, linewidth=1.6, label=f"t = {times[i]:.2g}")
            row[1].plot(places, exact[i], color=theme.ink, linewidth=0.9, linestyle=(0, (1, 3)))
        row[1].set(xlabel="x", title=f"{name} (dots: exact)")
        row[1].legend(frameon=False, fontsize=8, labelcolor=theme.ink)
        bare(row[1], theme)
    return figure
