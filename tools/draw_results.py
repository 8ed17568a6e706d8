"""Draw the figure of each results page from the committed results/*.json: `make figures`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from angd.view.theme import LIGHT, bare

ROOT = Path(__file__).parent.parent
OUT = ROOT / "docs" / "figures"
BLUE, RED, GREEN, VIOLET, GOLD, *_ = LIGHT.colours
GREY = "#8c939b"
STARTS = {"burgers": "−sin(πx)", "burgers_sin": "sin(πx)", "burgers_cos": "1 − cos(2πx)", "euler": "Euler"}
METRICS = {"l2": "L²", "h1": "H¹", "h2": "H²"}


def results(name: str) -> dict[str, Any]:
    """All of results/NAME.json."""
    return json.loads((ROOT / "results" / f"{name}.json").read_text(encoding="utf-8"))


def paper(width: float = 7.2, height: float = 3.4) -> tuple[Figure, Axes]:
    """An empty figure with one panel."""
    figure = Figure(figsize=(width, height), layout="constrained")
    panel = figure.subplots()
    bare(panel, LIGHT)
    return figure, panel


def save(figure: Figure, name: str) -> None:
    figure.savefig(OUT / f"{name}.png", dpi=144)


def ends(panel: Axes, x: float, y: float, text: str, colour: str) -> None:
    """A label at the end of a curve."""
    panel.annotate(text, (x, y), (4, 0), textcoords="offset points", color=colour, fontsize=8, va="center")


def accuracy() -> None:
    """Error of Burgers' equation against CPU seconds: every seed, and a label with the median at the end."""
    figure, panel = paper()
    found = results("pinn")
    names = {"minus_sin": ("energy metric", BLUE), "lbfgs": ("L-BFGS", GREEN), "adam": ("Adam", RED)}
    for row, (label, colour) in names.items():
        for run in (run for run in found["runs"] if run["row"] == row):
            seconds, error = columns(run, "cpu_seconds", "u")
            panel.plot(seconds, error, color=colour, linewidth=0.9, alpha=0.8)
        ends(panel, 600, found["values"][row]["u"], label, colour)
    panel.set(xscale="log", yscale="log", xlabel="CPU seconds, compilation included", ylabel="relative L² error")
    panel.set_xlim(5, 1600)
    save(figure, "results-pinn")


def columns(run: dict[str, Any], *names: str) -> list[np.ndarray]:
    """Columns of the records of a run."""
    table = np.array(run["records"], dtype=float)
    return [table[:, run["columns"].index(name)] for name in names]


def shares() -> None:
    """Iterations of ANGD over those of NGD to NGD's last training loss: every start, and the median."""
    found = results("comparison")["values"]
    rows = [(metric, start) for metric in METRICS for start in STARTS if metric in found[start]]
    figure, panel = paper(7.2, 3.8)
    for y, (metric, start) in enumerate(reversed(rows)):
        iterations = found[start][metric]["iterations"]["loss"]
        reached = [each for each in iterations["accelerated"] if each is not None]
        across = [each / iterations["plain"] for each in reached]
        panel.plot(across, [y] * len(across), "o", color=BLUE, alpha=0.55, markersize=5)
        missed = len(iterations["accelerated"]) - len(reached)
        if missed:
            panel.annotate(f"{missed} of 3 starts never", (1.02, y), fontsize=8, va="center", color=RED)
        if iterations["share"] is not None:
            panel.plot(iterations["share"], y, "|", color=BLUE, markersize=16, markeredgewidth=2.5)
    panel.axvline(1, color=GREY, linewidth=1)
    panel.set_yticks(range(len(rows)), [f"{METRICS[m]}, {STARTS[s]}" for m, s in reversed(rows)])
    panel.set(xlim=(0, 1.3), xlabel="iterations of ANGD / iterations of NGD to the same training loss")
    save(figure, "results-acceleration")


def momentum() -> None:
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
    figure, panel = paper(7.2, 3.2)
    y = np.arange(len(names))[::-1]
    for shift, (kind, label, colour) in zip(
        (0.2, -0.2), (("constant", "constant damping", GREY), ("marquardt", "Levenberg–Marquardt", BLUE)), strict=True
    ):
        panel.barh(y + shift, [found[kind][name]["1e-04"] for name in names], 0.36, color=colour, label=label)
    panel.set_yticks(y, list(names.values()))
    panel.set(xlabel="iterations until the training loss stays below 1e-4 (median of three starts)")
    panel.legend(frameon=False, fontsize=8, ncols=2, loc="lower left", bbox_to_anchor=(0, 1))
    save(figure, "results-momentum")


def molecules() -> None:
    """Error of the energy on fresh walkers, with its bar, against the chemist's accuracy."""
    found = results("vmc")["values"]
    names = {"be": "Be", "li2": "Li₂", "h10": "H₁₀", "n2": "N₂"}
    figure, panel = paper(6.0, 2.8)
    for k, name in enumerate(names):
        row = found[name]
        panel.errorbar(row["millihartree"], -k, xerr=row["standard_error"], fmt="o", color=BLUE, capsize=3)
        panel.annotate(f"{row['cpu_seconds']} CPU-s", (70, -k), fontsize=8, va="center")
    panel.axvspan(-1, 1.6, color=GREEN, alpha=0.15, linewidth=0)
    panel.annotate("chemical accuracy", (0.0, 0.55), fontsize=8, color=GREEN)
    panel.set_yticks([0, -1, -2, -3], list(names.values()))
    panel.set_xscale("symlog", linthresh=2)
    panel.set(xlabel="mHa above the reference energy", xlim=(-1, 300), ylim=(-3.5, 0.9))
    save(figure, "results-molecules")


def gap() -> None:
    """The double well: steps to a hundredth of the gap without noise, and what is left of it with walkers."""
    found = results("gap")["values"]
    order = ["barrier_0", "barrier_2", "barrier_6"]
    figure = Figure(figsize=(8.0, 3.0), layout="constrained")
    left, right = figure.subplots(1, 2)
    gaps = [found[name]["gap"] for name in order]
    for kind, label, colour in (("plain", "NGD", GREY), ("fast", "ANGD", BLUE)):
        left.plot(gaps, [found[name][kind]["steps"] for name in order], "o-", color=colour)
        ends(left, gaps[-1], found["barrier_6"][kind]["steps"], label, colour)
        last = [found[name][kind]["whole"] for name in order]
        right.errorbar(gaps, [x["mean"] for x in last], [x["standard_error"] for x in last], fmt="o-", color=colour)
    for panel, title in ((left, "without noise: steps"), (right, "with walkers: error at the end, in gaps")):
        bare(panel, LIGHT)
        panel.set(xscale="log", yscale="log", xlabel="gap of the double well, Ha")
        panel.set_title(title, fontsize=9)
        panel.set_xlim(1.3, 0.02)
    save(figure, "results-gap")


def beryllium() -> None:
    """Beryllium in the Fisher–Rao metric: means over five seeds with their standard errors."""
    studies = [("fisher-rao", "256 walkers"), ("many-walkers", "1,024 walkers")]
    side_by_side("results-beryllium", studies, {"spring": ("SPRING", RED), "angd-fr": ("ANGD", BLUE)}, "log")


def wasserstein() -> None:
    """Beryllium in Wasserstein-2, likewise."""
    studies = [("wasserstein", "exact kernel"), ("wasserstein-kfac", "Kronecker factors")]
    labels = {"ngd-w2": ("NGD", GREY), "angd-w2p": ("momentum in θ", GREEN), "angd-w2": ("momentum on walkers", BLUE)}
    side_by_side("results-wasserstein", studies, labels, "linear")


def side_by_side(name: str, studies: list[tuple[str, str]], labels: dict[str, tuple[str, str]], scale: str) -> None:
    """Two studies of beryllium: errors against steps."""
    found = results("beryllium")["values"]
    figure = Figure(figsize=(8.0, 3.0), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for panel, (study, title) in zip(panels, studies, strict=True):
        for method, (label, colour) in labels.items():
            if method in found[study]:
                row = found[study][method]
                curve = (row["steps"], row["millihartree"], row["standard_error"])
                panel.errorbar(*curve, color=colour, capsize=2, label=label)
        bare(panel, LIGHT)
        panel.set_title(title, fontsize=9)
        panel.set(xlabel="steps", xlim=(0, None), yscale=scale)
        panel.legend(frameon=False, fontsize=8)
    if scale == "linear":
        panels[0].set_ylim(0, None)
    panels[0].set_ylabel("mHa above exact")
    save(figure, name)


def speed() -> None:
    """What a step on Burgers' equation consists of, for three ways to the Jacobian."""
    found = results("speed_pinn")["values"]
    figure, panel = paper(7.2, 2.8)
    rows = [("p1321_n4000", "p = 1,321\nn = 4,000", "Gram"), ("p16761_n1000", "p = 16,761\nn = 1,000", "kernel")]
    parts = [
        ("Jacobian_nested", "Jacobian, nested", GREY),
        ("Jacobian_channels", "Jacobian, dense", GREEN),
        ("Jacobian_factors", "Jacobian, factors", BLUE),
        (None, "Gram or kernel", RED),
        ("Cholesky", "Cholesky", VIOLET),
        ("loss_of_a_probe", "one more loss", GOLD),
    ]
    for group, (name, _, matrix) in enumerate(rows):
        for k, (part, label, colour) in enumerate(parts):
            height = found[name][part or matrix]
            panel.bar(group + (k - 2.5) * 0.14, height, 0.13, color=colour, label=None if group else label)
    panel.set_xticks(range(len(rows)), [label for _, label, _ in rows])
    panel.set(yscale="log", ylabel="ms on one core")
    panel.legend(frameon=False, fontsize=8, ncols=1, loc="center left", bbox_to_anchor=(1, 0.5))
    save(figure, "results-speed")


FIGURES: tuple[Callable[[], None], ...] = (accuracy, shares, momentum, molecules, beryllium, gap, wasserstein, speed)

if __name__ == "__main__":
    for draw in FIGURES:
        draw()
