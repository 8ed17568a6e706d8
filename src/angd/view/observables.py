"""What was measured in cells, a density for one: a curve with its error band, or a plane in colours."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure

from angd.train.folder import RunFolder
from angd.view.curves import save_all
from angd.view.theme import DARK, LIGHT, SCREEN, Page, Theme, bare

STEEP = 30.0  # a curve that falls by more is drawn on a logarithmic scale


def drawn(observables: Mapping[str, Any] | None) -> dict[str, Mapping[str, Any]]:
    """Those that say where their components are, `at` the middles of cells along one or two coordinates."""
    known = {name: found for name, found in (observables or {}).items() if isinstance(found, Mapping)}
    return {name: found for name, found in known.items() if len(found.get("at", ())) in (1, 2)}


def draw_observables(folder: RunFolder) -> list[Path]:
    """Figures of what `evaluation.json` has, in the folder of the run.

    **Arguments:** `folder`.

    **Returns:** their PNG files; PDF and SVG are beside them.
    """
    known = drawn((folder.read("evaluation.json") or {}).get("observables"))
    for name, found in known.items():
        save_all(lambda theme, n=name, f=found: draw_observable(n, f, theme), folder.figures / name)
    return [folder.figures / f"{name}.png" for name in known]


def draw_observable(name: str, found: Mapping[str, Any], theme: Theme = LIGHT, page: Page = SCREEN) -> Figure:
    """One of them.

    **Arguments:** `name`; `found`, with `value`, `error`, `at` and perhaps `unit`; `theme`; `page`.

    **Returns:** a figure.
    """
    with matplotlib.rc_context(page.rc):
        figure = Figure(figsize=page.size(1, 1), layout="constrained")
        figure.patch.set_alpha(0.0 if theme is DARK else 1.0)
        panel = figure.subplots()
        value = np.array(found["value"], float)
        (_curve if len(found["at"]) == 1 else _plane)(figure, panel, value, found, theme)
        panel.set_title(name)
        for text in (panel.title, panel.xaxis.label, panel.yaxis.label):
            text.set_color(theme.ink)
        for axes in figure.axes:
            axes.tick_params(colors=theme.ink, labelsize=page.letters - 1)
        return figure


def _curve(figure: Figure, panel: Any, value: np.ndarray, found: Mapping[str, Any], theme: Theme) -> None:
    ((axis, at),) = found["at"].items()
    error, colour = np.array(found["error"], float), theme.colours[0]
    seen = value[value > 0]
    if len(seen) and not np.any(value < 0) and seen.max() > STEEP * seen.min():
        panel.set_yscale("log", nonpositive="mask")
        panel.set_ylim(seen.min() / 3, seen.max() * 2)
    panel.plot(at, np.where(value == 0, np.nan, value), color=colour, linewidth=1.6)
    panel.fill_between(at, value - error, value + error, color=colour, alpha=0.3, linewidth=0)
    panel.set(xlabel=f"{axis} (a₀)", ylabel=found.get("unit", ""))
    bare(panel, theme)


def _plane(figure: Figure, panel: Any, value: np.ndarray, found: Mapping[str, Any], theme: Theme) -> None:
    """The square root of the value sets the colour, or cores would be all that is seen."""
    (first, x), (second, y) = found["at"].items()
    norm = PowerNorm(0.5, vmin=min(float(np.nanmin(value)), 0.0), vmax=float(np.nanmax(value)) or 1.0)
    mesh = panel.pcolormesh(x, y, value.T, cmap="viridis", norm=norm, shading="auto", rasterized=True)
    bar = figure.colorbar(mesh, ax=panel, label=found.get("unit", ""))
    bar.ax.yaxis.label.set_color(theme.ink)
    panel.set(xlabel=f"{first} (a₀)", ylabel=f"{second} (a₀)", aspect="equal")
