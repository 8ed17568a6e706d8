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
from angd.view.theme import LIGHT, Style, bare, styles

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
        keep(Path(folder), "heat")
    return code


def keep(folder: Path, name: str) -> None:
    """The figure of a comparison's report, for light and for dark pages."""
    for ending in (".png", "-dark.png"):
        shutil.copy(folder / "report" / f"{name}{ending}", FOLDER / f"{name}{ending}")


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
    """From what `make demo` left in a folder: the figure of its report."""
    keep(folder, "burgers")
    return 0


RESULTS = Path(__file__).parent.parent / "results"


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
                    look, label = styles(kinds)[method], method if k == 0 else None
                    style = {"color": look.colour, "linestyle": look.dash, "linewidth": 1.2}
                    axis.plot(run[against], run[quantity], label=label, **style)
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
            for method, look in styles(name for name in found if "runs" in found[name]).items():
                energies(axis, found[method], against, look, method)
            axis.set(yscale="log", xlabel=against.replace("cpu_seconds", "CPU seconds"))
            bare(axis, LIGHT)
        row[0].set_ylabel(f"{metric}: mHa above exact")
        row[0].legend(frameon=False, fontsize=8)
    figure.savefig(FOLDER / "beryllium-comparison.png", dpi=100)
    return 0


def energies(axis: Any, found: dict[str, Any], against: str, look: Style, label: str) -> None:
    """The mean, and every seed's own course."""
    curve = (found[against], found["millihartree"], found["standard_error"])
    axis.errorbar(*curve, color=look.colour, linestyle=look.dash, label=label, capsize=2)
    for run in found["runs"]:
        across = [each["step" if against == "steps" else against] for each in run]
        axis.plot(across, [each["error"] for each in run], color=look.colour, linewidth=0.6, alpha=0.5)


def spelled(ring: str) -> str:
    """A ring as one says it: j1j2-12-rbm is J₁–J₂, 12."""
    system, sites, _ = ring.split("-")
    return f"{ {'j1j2': 'J₁–J₂', 'tfim': 'Ising', 'heisenberg': 'Heisenberg'}[system] }, {sites}".strip()


def lattice() -> int:
    """Shares of the better of NGD and SPRING that ANGD needs on spin rings: against the gap, and against noise."""
    values = result("lattice")
    figure = Figure(figsize=(9.6, 3.6), layout="constrained")
    gap, noise = figure.subplots(1, 2, sharey=True)
    for k, (method, label) in enumerate({"angd": "β = 0", "angd_beta": "β > 0"}.items()):
        shown = {name: v for name, v in values.items() if v.get(method, {}).get("share", {}).get("1e-05")}
        for name, v in shown.items():
            mark = "o" if name.endswith("rbm") else "s"
            share = v[method]["share"]["1e-05"]
            gap.plot(v["gap"], share, mark, color=LIGHT.colours[k], label=label if name == next(iter(shown)) else None)
    for name, v in values.items():
        if (low := v["share"]["1e-05"]) is None:
            continue  # no method arrives
        left = v["gap"] > 1 or 0.3 < v["gap"] < 0.4  # where a name to the right would be in the way of another
        sides = {"xytext": (-6, -3), "ha": "right"} if left else {"xytext": (6, -3), "ha": "left"}
        gap.annotate(spelled(name), (v["gap"], low), fontsize=8, textcoords="offset points", **sides)
    for k, (method, label) in enumerate({"angd": "ANGD", "angd_projected": "ANGD with projection"}.items()):
        for name, style in (("j1j2-12-rbm", "o-"), ("j1j2-14-rbm", "s"), ("tfim-10-rbm", "^")):
            found = {int(n[1:]): f.get(method, {}) for n, f in values[name].get("sampled", {}).items()}
            points = sorted((n, f["share"]["1e-05"]) for n, f in found.items() if f.get("share", {}).get("1e-05"))
            if points:
                said = f"{label}, {spelled(name)}"
                noise.plot(*zip(*points, strict=True), style, color=LIGHT.colours[k + 2], label=said)
    gap.set(ylim=(0.28, 1.06))
    gap.set(xlabel="gap between the two lowest levels of its symmetry", ylabel="iterations, share of NGD or SPRING")
    noise.set(xlabel="samples in each step (β = 0)", xscale="log", xlim=(300, 30000))
    gap.set_xlim(0.0, None)
    for axis in (gap, noise):
        axis.axhline(1.0, color=LIGHT.ink, linewidth=0.8)
        axis.axhline(0.5, color=LIGHT.ink, linewidth=0.8, linestyle=":")
        bare(axis, LIGHT)
        axis.legend(frameon=False, fontsize=7)
    figure.savefig(FOLDER / "lattice-momentum.png", dpi=110)
    return 0


if __name__ == "__main__":
    if "gallery" in sys.argv:
        sys.exit(gallery())
    if sys.argv[1:2] == ["demo"]:
        sys.exit(demo(Path(sys.argv[2])))
    if "comparison" in sys.argv:
        sys.exit(comparison())
    if "beryllium" in sys.argv:
        sys.exit(beryllium())
    if "lattice" in sys.argv:
        sys.exit(lattice())
    drawn = [main(["flow", *options, "--out", str(FOLDER / f"{name}.png")]) for name, options in FIGURES.items()]
    sys.exit(max([*drawn, heat(), comparison(), beryllium(), lattice()]))
