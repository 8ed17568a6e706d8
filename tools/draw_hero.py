"""The picture of README and home page: a solution, what each method's error costs, and what acceleration gains.

`python tools/draw_hero.py runs/demo [FOLDER]` draws it from what `make demo` has run and from results/*.json, into that
folder; `make demo` does it into its own, and docs/figures has the one of the README.
"""

import json
import math
import sys
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.gridspec import SubplotSpec

from angd.problems.solution import fields
from angd.train.folder import RunFolder, find_runs
from angd.view.curves import curves, draw_panel, save
from angd.view.fields import colours_of
from angd.view.labels import End, label_ends
from angd.view.theme import DARK, LIGHT, SCREEN, Theme, bare, inked, styles

RESULTS = Path(__file__).parent.parent / "results"


def result(name: str) -> dict[str, Any]:
    """The values of a committed result file."""
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))["values"]


def draw_hero(found: list[RunFolder], theme: Theme, narrow: bool = False) -> Figure:
    """A field, errors, and two small panels with what acceleration gains; `found` has the best run first. On a phone
    they are below each other."""
    with matplotlib.rc_context(SCREEN.rc | inked(theme)):
        figure = Figure(figsize=(4.4, 8.8) if narrow else (10.6, 4.2), layout="constrained")
        figure.patch.set_alpha(0.0 if theme is DARK else 1.0)
        field, errors, flat, spins = map(figure.add_subplot, _below(figure) if narrow else _beside(figure))
        draw_field(figure, field, found[0], theme)
        ends = draw_panel(errors, curves(found), "error", "cpu_seconds", theme, SCREEN)
        errors.set(xlabel="CPU seconds, compilation included")
        label_ends(errors, ends, 8.5, 3.4)
        draw_gain(flat, theme)
        draw_spins(spins, theme)
        errors.set_title("Burgers: relative L² error")
        flat.set_title("Burgers in L²: test loss")
        spins.set_title("Critical Ising ring: energy error")
    return figure


def _beside(figure: Figure) -> list[SubplotSpec]:
    cells = figure.add_gridspec(2, 3, width_ratios=[1.0, 1.35, 0.9])
    return [cells[:, 0], cells[:, 1], cells[0, 2], cells[1, 2]]


def _below(figure: Figure) -> list[SubplotSpec]:
    cells = figure.add_gridspec(4, 1, height_ratios=[1.1, 1.3, 0.7, 0.7])
    return [cells[k, 0] for k in range(4)]


def draw_field(figure: Figure, panel: Any, run: RunFolder, theme: Theme) -> None:
    """The first field of a run's solution over time and place."""
    solution = run.read_arrays("solution.npz")
    z, (name, (u, exact)) = solution["z"], next(iter(fields(solution).items()))
    first, second = (np.unique(z[:, i]) for i in (0, 1))
    colours, (low, high) = colours_of(u if exact is None else exact)
    values = u.reshape(len(first), len(second)).T
    mesh = panel.pcolormesh(first, second, values, cmap=colours, vmin=low, vmax=high, rasterized=True)
    place = panel.inset_axes((1.03, 0.0, 0.05, 1.0))
    figure.colorbar(mesh, cax=place).ax.tick_params(colors=theme.ink, labelsize=8)
    panel.set(xlabel="t", ylabel="x")
    panel.set_title(f"{run.about()['name'].capitalize()}: {name}(t, x) found by {run.config().recipe}")
    panel.tick_params(colors=theme.ink, labelsize=8)


def draw_gain(panel: Any, theme: Theme) -> None:
    """NGD and ANGD in L², both tuned: test loss against steps, geometric means of three seeds, which stand behind."""
    metrics, ends = result("comparison")["burgers"]["l2"], []
    looks = styles(("ngd-l2", "angd-l2"), theme)
    for method, look in looks.items():
        runs = metrics[method]["runs"]
        for run in runs:
            panel.plot(run["steps"], run["test_loss"], color=look.colour, linewidth=0.7, alpha=0.35)
        count = min(len(run["steps"]) for run in runs)
        mean = [math.exp(sum(math.log(run["test_loss"][i]) for run in runs) / len(runs)) for i in range(count)]
        panel.plot(runs[0]["steps"][:count], mean, color=look.colour, linewidth=1.8)
        ends.append(End(method, runs[0]["steps"][count - 1], mean[-1], look.colour))
    panel.set(yscale="log", xlabel="step", xlim=(0, metrics["iterations"]["test_loss"]["plain"]))
    bare(panel, theme)
    label_ends(panel, [end._replace(x=min(end.x, panel.get_xlim()[1])) for end in ends], 8.5, 1.4)


CRITICAL = "tfim-12-rbm"  # the largest ring at its critical point
GOALS = ("1e-03", "1e-04", "1e-05", "1e-06")


def draw_spins(panel: Any, theme: Theme) -> None:
    """Iterations that tuned methods need to relative energy errors: medians of five starts, ANGD with its better β."""
    found = result("lattice")[CRITICAL]
    faster = min((each for each in ("angd", "angd_beta") if each in found), key=lambda each: found[each]["1e-05"])
    methods, ends = {"ngd-fr": found["ngd"], "spring": found["spring"], "angd-fr": found[faster]}, []
    for method, look in styles(methods, theme).items():
        points = [(methods[method][goal], float(goal)) for goal in GOALS if methods[method][goal] is not None]
        panel.plot(*zip(*points, strict=True), "o-", color=look.colour, linewidth=1.6, markersize=3)
        ends.append(End(method, *points[-1], look.colour))
    panel.set(yscale="log", xlabel="step", xlim=(0, None))
    bare(panel, theme)
    label_ends(panel, ends, 8.5, 1.4)


def main(folder: Path, out: Path) -> None:
    """Beside each other and below each other, for light and for dark pages."""
    found = sorted(find_runs([folder]), key=lambda run: run.records()[-1].error)
    for theme, ending in ((LIGHT, ""), (DARK, "-dark")):
        save(draw_hero(found, theme), out / f"hero{ending}.png")
        save(draw_hero(found, theme, narrow=True), out / f"hero-narrow{ending}.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[-1]))
