"""Draw the figure of each results page from the committed results/*.json, for light and for dark pages: `make figures`.

Methods have the colours that they have everywhere (`angd.view.theme.styles`).
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from angd.view.curves import save
from angd.view.theme import DARK, LIGHT, Theme, bare, inked, styles

ROOT = Path(__file__).parent.parent
OUT = ROOT / "docs" / "figures"
STARTS = {"burgers": "−sin(πx)", "burgers_sin": "sin(πx)", "burgers_cos": "1 − cos(2πx)", "euler": "Euler"}
METRICS = {"l2": "L²", "h1": "H¹", "h2": "H²"}


def results(name: str) -> dict[str, Any]:
    """All of results/NAME.json."""
    return json.loads((ROOT / "results" / f"{name}.json").read_text(encoding="utf-8"))


def paper(theme: Theme, width: float = 7.2, height: float = 3.4, columns: int = 1, **shared: Any) -> tuple[Figure, Any]:
    """An empty figure, and its panel or panels."""
    figure = Figure(figsize=(width, height), layout="constrained")
    figure.patch.set_alpha(0.0 if theme is DARK else 1.0)
    panels = figure.subplots(1, columns, **shared)
    for panel in np.ravel(panels):
        bare(panel, theme)
    return figure, panels


def colour(method: str, theme: Theme) -> str:
    """Of a method, by the name of its recipe."""
    return styles((method,), theme)[method].colour


def ends(panel: Axes, x: float, y: float, text: str, colour: str) -> None:
    """A label at the end of a curve."""
    panel.annotate(text, (x, y), (4, 0), textcoords="offset points", color=colour, fontsize=8, va="center")


def accuracy(theme: Theme) -> Figure:
    """Error of Burgers' equation against CPU seconds: every seed, and a label with the median at the end."""
    figure, panel = paper(theme)
    found = results("pinn")
    names = {"minus_sin": ("energy metric", "energy"), "lbfgs": ("L-BFGS", "lbfgs"), "adam": ("Adam", "adam")}
    for row, (label, method) in names.items():
        hue = colour(method, theme)
        for run in (run for run in found["runs"] if run["row"] == row):
            seconds, error = columns(run, "cpu_seconds", "u")
            panel.plot(seconds, error, color=hue, linewidth=0.9, alpha=0.8)
        ends(panel, 600, found["values"][row]["u"], label, hue)
    panel.set(xscale="log", yscale="log", xlabel="CPU seconds, compilation included", ylabel="relative L² error")
    panel.set_xlim(5, 1600)
    return figure


def columns(run: dict[str, Any], *names: str) -> list[np.ndarray]:
    """Columns of the records of a run."""
    table = np.array(run["records"], dtype=float)
    return [table[:, run["columns"].index(name)] for name in names]


def shares(theme: Theme) -> Figure:
    """Iterations of ANGD over those of NGD to NGD's last training loss: every start, and the median."""
    found = results("comparison")["values"]
    rows = [(metric, start) for metric in METRICS for start in STARTS if metric in found[start]]
    figure, panel = paper(theme, 7.2, 3.8)
    hue = colour("angd-l2", theme)
    for y, (metric, start) in enumerate(reversed(rows)):
        iterations = found[start][metric]["iterations"]["loss"]
        reached = [each for each in iterations["accelerated"] if each is not None]
        across = [each / iterations["plain"] for each in reached]
        panel.plot(across, [y] * len(across), "o", color=hue, alpha=0.55, markersize=5)
        missed = len(iterations["accelerated"]) - len(reached)
        if missed:
            panel.annotate(f"{missed} of 3 starts never", (1.02, y), fontsize=8, va="center")
        if iterations["share"] is not None:
            panel.plot(iterations["share"], y, "|", color=hue, markersize=16, markeredgewidth=2.5)
    panel.axvline(1, color=theme.ink, linewidth=1)
    panel.set_yticks(range(len(rows)), [f"{METRICS[m]}, {STARTS[s]}" for m, s in reversed(rows)])
    panel.set(xlim=(0, 1.3), xlabel="iterations of ANGD / iterations of NGD to the same training loss")
    return figure


def momentum(theme: Theme) -> Figure:
    """Iterations to a training loss of 1e-4 in the energy metric, for each kind of momentum."""
    found = results("momentum")["values"]
    names = {
        "none": "none",
        "projected_05": "projected, η = 0.5",
        "projected_09": "projected, η = 0.9",
        "flow_05_jvp": "flow, μ = 0.5",
        "flow_05_current": "μ = 0.5, not transported",
        "flow_08_jvp": "flow, μ = 0.8",
        "flow_08_current": "μ = 0.8, not transported",
    }
    figure, panel = paper(theme, 7.2, 3.2)
    y = np.arange(len(names))[::-1]
    kinds = ((0.2, "constant", "constant damping", "grey"), (-0.2, "marquardt", "Levenberg–Marquardt", "blue"))
    for shift, kind, label, hue in kinds:
        heights = [found[kind][name]["1e-04"] for name in names]
        panel.barh(y + shift, heights, 0.36, color=theme.hues[hue], label=label)
    panel.set_yticks(y, list(names.values()))
    panel.set(xlabel="iterations until the training loss stays below 1e-4 (median of three starts)")
    panel.legend(frameon=False, fontsize=8, ncols=2, loc="lower left", bbox_to_anchor=(0, 1))
    return figure


def molecules(theme: Theme) -> Figure:
    """Error of the energy on fresh walkers, with its bar, against the chemist's accuracy."""
    found = results("vmc")["values"]
    names = {"be": "Be", "li2": "Li₂", "h10": "H₁₀", "n2": "N₂"}
    figure, panel = paper(theme, 6.0, 2.8)
    hue, green = colour("angd-fr", theme), theme.hues["green"]
    for k, name in enumerate(names):
        row = found[name]
        panel.errorbar(row["millihartree"], -k, xerr=row["standard_error"], fmt="o", color=hue, capsize=3)
        panel.annotate(f"{row['cpu_seconds']} CPU-s", (70, -k), fontsize=8, va="center")
    panel.axvspan(-1, 1.6, color=green, alpha=0.15, linewidth=0)
    panel.annotate("chemical accuracy", (0.0, 0.55), fontsize=8, color=green)
    panel.set_yticks([0, -1, -2, -3], list(names.values()))
    panel.set_xscale("symlog", linthresh=2)
    panel.set(xlabel="mHa above the reference energy", xlim=(-1, 300), ylim=(-3.5, 0.9))
    return figure


def gap(theme: Theme) -> Figure:
    """The double well: steps to a hundredth of the gap without noise, and what is left of it with walkers."""
    found = results("gap")["values"]
    order = ["barrier_0", "barrier_2", "barrier_6"]
    figure, (left, right) = paper(theme, 8.0, 3.0, 2)
    gaps = [found[name]["gap"] for name in order]
    for kind, label, method in (("plain", "NGD", "ngd-fr"), ("fast", "ANGD", "angd-fr")):
        hue = colour(method, theme)
        left.plot(gaps, [found[name][kind]["steps"] for name in order], "o-", color=hue)
        ends(left, gaps[-1], found["barrier_6"][kind]["steps"], label, hue)
        last = [found[name][kind]["whole"] for name in order]
        right.errorbar(gaps, [x["mean"] for x in last], [x["standard_error"] for x in last], fmt="o-", color=hue)
    for panel, title in ((left, "without noise: steps"), (right, "with walkers: error at the end, in gaps")):
        panel.set(xscale="log", yscale="log", xlabel="gap of the double well, Ha")
        panel.set_title(title, fontsize=9)
        panel.set_xlim(1.3, 0.02)
    return figure


def beryllium(theme: Theme) -> Figure:
    """Beryllium in the Fisher–Rao metric: means over five seeds with their standard errors."""
    studies = [("fisher-rao", "256 walkers"), ("many-walkers", "1,024 walkers")]
    return side_by_side(theme, studies, {"spring": "SPRING", "angd-fr": "ANGD"}, "log")


def wasserstein(theme: Theme) -> Figure:
    """Beryllium in Wasserstein-2, likewise."""
    studies = [("wasserstein", "exact kernel"), ("wasserstein-kfac", "Kronecker factors")]
    labels = {"ngd-w2": "NGD", "angd-w2p": "momentum in θ", "angd-w2": "momentum on walkers"}
    return side_by_side(theme, studies, labels, "linear")


def side_by_side(theme: Theme, studies: list[tuple[str, str]], labels: dict[str, str], scale: str) -> Figure:
    """Two studies of beryllium: errors against steps."""
    found = results("beryllium")["values"]
    figure, panels = paper(theme, 8.0, 3.0, 2, sharey=True)
    looks = styles(labels, theme)
    for panel, (study, title) in zip(panels, studies, strict=True):
        for method, label in labels.items():
            if method in found[study]:
                row = found[study][method]
                curve = (row["steps"], row["millihartree"], row["standard_error"])
                look = {"color": looks[method].colour, "linestyle": looks[method].dash}
                panel.errorbar(*curve, **look, capsize=2, label=label)
        panel.set_title(title, fontsize=9)
        panel.set(xlabel="steps", xlim=(0, None), yscale=scale)
        panel.legend(frameon=False, fontsize=8)
    if scale == "linear":
        panels[0].set_ylim(0, None)
    panels[0].set_ylabel("mHa above exact")
    return figure


def speed(theme: Theme) -> Figure:
    """What a step on Burgers' equation consists of, for three ways to the Jacobian."""
    found = results("speed_pinn")["values"]
    figure, panel = paper(theme, 7.2, 2.8)
    rows = [("p1321_n4000", "p = 1,321\nn = 4,000", "Gram"), ("p16761_n1000", "p = 16,761\nn = 1,000", "kernel")]
    parts = [
        ("Jacobian_nested", "Jacobian, nested", "grey"),
        ("Jacobian_channels", "Jacobian, dense", "green"),
        ("Jacobian_factors", "Jacobian, factors", "blue"),
        (None, "Gram or kernel", "vermilion"),
        ("Cholesky", "Cholesky", "purple"),
        ("loss_of_a_probe", "one more loss", "orange"),
    ]
    for group, (name, _, matrix) in enumerate(rows):
        for k, (part, label, hue) in enumerate(parts):
            height = found[name][part or matrix]
            panel.bar(group + (k - 2.5) * 0.14, height, 0.13, color=theme.hues[hue], label=None if group else label)
    panel.set_xticks(range(len(rows)), [label for _, label, _ in rows])
    panel.set(yscale="log", ylabel="ms on one core")
    panel.legend(frameon=False, fontsize=8, ncols=1, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


FIGURES: dict[str, Callable[[Theme], Figure]] = {
    "pinn": accuracy,
    "acceleration": shares,
    "momentum": momentum,
    "molecules": molecules,
    "beryllium": beryllium,
    "gap": gap,
    "wasserstein": wasserstein,
    "speed": speed,
}


def draw_all(figures: dict[str, Callable[[Theme], Figure]]) -> None:
    """Each on light and on dark paper, as docs/figures/results-NAME.png."""
    for name, draw in figures.items():
        for theme, ending in ((LIGHT, ""), (DARK, "-dark")):
            with matplotlib.rc_context(inked(theme)):
                save(draw(theme), OUT / f"results-{name}{ending}.png")


if __name__ == "__main__":
    draw_all(FIGURES)
