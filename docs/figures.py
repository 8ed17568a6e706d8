"""Draw the figures that the docs show, by the program itself: `make figures`; `make gallery` for those of the gallery.

`python docs/figures.py demo runs/demo` keeps what `make demo` drew.
"""

import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from angd.program.main import main
from angd.train.folder import find_runs
from angd.view.curves import curves, draw, save
from angd.view.theme import LIGHT, bare

FOLDER = Path(__file__).parent / "figures"
ENTROPY = ["--manifold", "fisher-rao", "--functional", "relative-entropy", "--t0", "0.5", "--t1", "40"]
FIGURES = {
    "fisher-rao": [*ENTROPY, "--beta", "0.4", "--gamma", "1+0.4/t"],
    "hessian-damping": ENTROPY,
    "counterexample": ["--manifold", "sobolev", "--functional", "power", "--alpha", "2/t", "--t1", "200"],
}

COMPARISON = ["compare", "heat", "energy,angd-l2,adam", "--seeds", "0,1,2", "--budget", "100 steps"]


def heat() -> int:
    """The figure of a comparison's report."""
    with tempfile.TemporaryDirectory() as folder:
        code = main([*COMPARISON, "--out", folder])
        shutil.copy(Path(folder) / "report" / "heat.png", FOLDER / "heat.png")
    return code


# picture: arguments of `angd run`, and which of its figures; docs/gallery.md says the same
GALLERY = {
    "burgers-minus-sin": ("burgers --cpu-seconds 100", "solution"),
    "burgers-cos": ("burgers-cos --cpu-seconds 200", "solution"),
    "euler": ("euler --cpu-seconds 60", "solution"),
    "beryllium": ("vmc-be --cpu-seconds 250", "history"),
}


def gallery() -> int:
    """Runs of some minutes, with their figures."""
    codes = []
    for name, (arguments, figure) in GALLERY.items():
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "run"
            codes.append(main(["run", *arguments.split(), "--out", str(out)]))
            shutil.copy(out / "figures" / f"{figure}.png", FOLDER / f"{name}.png")
    return max(codes)


def demo(folder: Path) -> int:
    """From what `make demo` left in a folder: the whole figure of its report, and its errors alone."""
    found = sorted(find_runs([folder]), key=lambda run: run.records()[-1].error)
    save(draw(curves(found), ("error",), ("step", "cpu_seconds")), FOLDER / "demo.png")
    shutil.copy(folder / "report" / "burgers.png", FOLDER / "burgers.png")
    return 0


RESULTS = Path(__file__).parent.parent / "results"
COLOURS = {"sgd": 0, "adam": 1, "ngd": 2, "angd": 3}


def result(name: str) -> dict[str, Any]:
    """The values of a committed result file."""
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))["values"]


def comparison() -> int:
    """Training and test loss against steps and CPU seconds, from the committed result file: L², then H¹ and H²."""
    values = result("comparison")
    panels = [(name, metric, found) for name, metrics in values.items() for metric, found in metrics.items()]
    losses([panel for panel in panels if panel[1].startswith("l2")], "comparison")
    losses([panel for panel in panels if panel[1].startswith("h")], "comparison-h")
    return 0


def losses(panels: list[tuple[str, str, dict[str, Any]]], out: str) -> None:
    """A row for each problem and metric."""
    columns = [(quantity, against) for against in ("steps", "cpu_seconds") for quantity in ("loss", "test_loss")]
    figure = Figure(figsize=(13.2, 2.5 * len(panels)), layout="constrained")
    axes = figure.subplots(len(panels), len(columns), squeeze=False)
    for row, (name, metric, found) in zip(axes, panels, strict=True):
        kinds = [method for method in found if method != "iterations"]
        last = found["iterations"]["loss"]["plain"]
        for axis, (quantity, against) in zip(row, columns, strict=True):
            for method in kinds:
                for k, run in enumerate(found[method]["runs"]):
                    colour, label = LIGHT.colours[COLOURS[method.split("-")[0]]], method if k == 0 else None
                    axis.plot(run[against], run[quantity], color=colour, linewidth=1.2, label=label)
            axis.set(yscale="log", xlabel=against.replace("cpu_seconds", "CPU seconds"))
            axis.set_title("training loss" if quantity == "loss" else "test loss", fontsize=9)
            axis.set_xlim(0, last if against == "steps" else None)
            bare(axis, LIGHT)
        row[0].set_ylabel(f"{name.replace('_', '-')}, {metric}")
        row[0].legend(frameon=False, fontsize=8)
    figure.savefig(FOLDER / f"{out}.png", dpi=100)


def beryllium() -> int:
    """Energy errors of beryllium against steps and CPU seconds, means over seeds with their standard errors."""
    metrics = {name: found for name, found in result("beryllium").items() if "iterations" in found}
    figure = Figure(figsize=(9.6, 3.2 * len(metrics)), layout="constrained")
    for row, (metric, found) in zip(figure.subplots(len(metrics), 2, squeeze=False), metrics.items(), strict=True):
        for axis, against in zip(row, ("steps", "cpu_seconds"), strict=True):
            for k, method in enumerate(name for name in found if "runs" in found[name]):
                energies(axis, found[method], against, LIGHT.colours[k + 2], method)
            axis.set(yscale="log", xlabel=against.replace("cpu_seconds", "CPU seconds"))
            bare(axis, LIGHT)
        row[0].set_ylabel(f"{metric}: mHa above exact")
        row[0].legend(frameon=False, fontsize=8)
    figure.savefig(FOLDER / "beryllium-comparison.png", dpi=100)
    return 0


def energies(axis: Any, found: dict[str, Any], against: str, colour: str, label: str) -> None:
    """The mean, and every seed's own course."""
    axis.errorbar(found[against], found["millihartree"], found["standard_error"], color=colour, label=label, capsize=2)
    for run in found["runs"]:
        across = [look["step" if against == "steps" else against] for look in run]
        axis.plot(across, [look["error"] for look in run], color=colour, linewidth=0.6, alpha=0.5)


if __name__ == "__main__":
    if "gallery" in sys.argv:
        sys.exit(gallery())
    if sys.argv[1:2] == ["demo"]:
        sys.exit(demo(Path(*sys.argv[2:3])))
    if "comparison" in sys.argv:
        sys.exit(comparison())
    if "beryllium" in sys.argv:
        sys.exit(beryllium())
    drawn = [main(["flow", *options, "--out", str(FOLDER / f"{name}.png")]) for name, options in FIGURES.items()]
    sys.exit(max([*drawn, heat(), comparison(), beryllium()]))
