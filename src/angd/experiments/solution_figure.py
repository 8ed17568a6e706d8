"""What a differential equation's run found, beside the exact solution: over time and space, or at one time."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from angd.experiments.themes import DARK, LIGHT, Theme, bare

Solution = Mapping[str, np.ndarray]
SLICES = 4


def draw_solution(solution: Solution, theme: Theme = LIGHT) -> Figure:
    """Points (t, x) and fields `NAME found` with `NAME exact`."""
    names = [key.removesuffix(" found") for key in solution if key.endswith(" found")]
    draw = _over_time if len(np.unique(solution["z"][:, 0])) > 1 else _at_one_time
    figure = draw(solution, names, theme)
    figure.patch.set_alpha(0.0 if theme is DARK else 1.0)
    for panel in figure.axes:
        panel.tick_params(colors=theme.ink, labelsize=8)
        panel.xaxis.label.set_color(theme.ink)
        panel.yaxis.label.set_color(theme.ink)
        panel.title.set_color(theme.ink)
    return figure


def _at_one_time(solution: Solution, names: list[str], theme: Theme) -> Figure:
    """One panel for each field."""
    figure = Figure(figsize=(3.4 * len(names), 2.7), layout="constrained")
    t, x = solution["z"][0, 0], solution["z"][:, 1]
    for panel, name in zip(figure.subplots(1, len(names), squeeze=False)[0], names, strict=True):
        panel.plot(x, solution[f"{name} found"], color=theme.colours[0], linewidth=1.6, label="found")
        panel.plot(x, solution[f"{name} exact"], color=theme.ink, linewidth=1.0, linestyle=(0, (1, 2)), label="exact")
        panel.set(xlabel="x", title=f"{name} at t = {t:g}")
        bare(panel, theme)
    figure.axes[0].legend(frameon=False, fontsize=8, labelcolor=theme.ink)
    return figure


def _over_time(solution: Solution, names: list[str], theme: Theme) -> Figure:
    """For each field: all of it, slices at some times, and where it is wrong."""
    figure = Figure(figsize=(10.2, 2.8 * len(names)), layout="constrained")
    times, places = (np.unique(column) for column in solution["z"].T)
    for row, name in zip(figure.subplots(len(names), 3, squeeze=False), names, strict=True):
        found, exact = (solution[f"{name} {kind}"].reshape(len(times), len(places)) for kind in ("found", "exact"))
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
