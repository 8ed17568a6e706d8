"""Draw what `make bench` found: rivals on Burgers' equation and the roofline, for light and for dark pages."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from angd.view.theme import Theme
from draw_results import draw_all, ends, paper, results

RIVALS = {
    ("angd", "default"): ("angd", "blue", "-"),
    ("jinns", "ngd"): ("jinns NGD", "vermilion", "-"),
    ("jinns", "ngd-page"): ("jinns NGD, as its notebook", "vermilion", ":"),
    ("jinns", "ssbroyden"): ("jinns SSBroyden", "vermilion", "--"),
    ("scimba", "dsgnar"): ("scimba DSGNAR", "green", "-"),
    ("scimba", "eng"): ("scimba ENG", "green", ":"),
    ("scimba", "eng-strong"): ("scimba ENG, strong", "green", "-."),
    ("scimba", "ssbroyden"): ("scimba SS-Broyden", "green", "--"),
    ("optax", "lbfgs"): ("optax L-BFGS", "grey", "-"),
    ("optax", "adam"): ("optax Adam", "grey", "--"),
}
SECONDS = (10, 20, 30, 60, 120, 300, 600)
PARTS = {
    "full product": ("full product", "grey", "s"),
    "kernel, blocked half": ("kernel, blocked half", "blue", "o"),
    "kernel, BLAS syrk": ("kernel, BLAS syrk", "blue", "^"),
    "kernel, factors": ("kernel from factors", "vermilion", "o"),
    "kernel, pairs": ("the same, wide layers", "vermilion", "D"),
    "Gram, blocked half": ("Gram, blocked half", "green", "o"),
    "Gram, BLAS syrk": ("Gram, BLAS syrk", "green", "^"),
    "QR": ("QR", "purple", "s"),
    "Cholesky": ("Cholesky", "purple", "o"),
    "rows, factors": ("rows as factors", "orange", "o"),
    "rows, dense": ("rows as a matrix", "orange", "s"),
    "O d and Oᵀ y, dense": ("O d and Oᵀ y", "grey", "o"),
}


def rivals(theme: Theme) -> Figure:
    """The error of each package and method against CPU seconds, every seed."""
    figure, panel = paper(theme, 7.2, 4.0)
    named: set[str] = set()
    for run in results("rivals_pinn")["runs"]:
        look = RIVALS.get((run["package"], run["method"]))
        if look is None or "failed" in run:
            continue
        label, hue, dash = look
        seconds, _, error = np.array(run["records"]).T
        shown = None if label in named else label
        width = 1.8 if label == "angd" else 1.2
        panel.plot(seconds, error, color=theme.hues[hue], linestyle=dash, linewidth=width, label=shown)
        named.add(label)
    panel.set(xscale="log", yscale="log", xlabel="CPU seconds, import and compilation included")
    panel.set_xticks(SECONDS, list(map(str, SECONDS)))
    panel.set_xticks([], minor=True)
    panel.set(ylabel="relative L² error", xlim=(8, 1.1 * max(r["budget"] for r in results("rivals_pinn")["runs"])))
    panel.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def roofline(theme: Theme) -> Figure:
    """Flops per second against flops per byte, under the roof of the machine, in two precisions."""
    found = results("roofline")["values"]
    figure, panels = paper(theme, 8.4, 3.8, 2, sharey=True)
    for panel, (precision, title) in zip(panels, (("float64", "double"), ("float32", "single")), strict=True):
        _under_roof(panel, theme, found[precision], title)
    panels[0].set_ylabel("Gflop/s that had to be done")
    panels[1].legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def _under_roof(panel: Axes, theme: Theme, found: dict, title: str) -> None:
    at = np.geomspace(0.05, 3000, 200)
    roof = np.minimum(found["peak"], found["bandwidth"] * at)
    panel.plot(at, roof / 1e9, color=theme.ink, linewidth=1)
    ends(panel, 0.07, found["peak"] / 1e9, f"peak {found['peak'] / 1e9:.0f}", theme.ink)
    for name, (label, hue, marker) in PARTS.items():
        part = found["parts"][name]
        panel.plot(part["intensity"], part["rate"] / 1e9, marker, color=theme.hues[hue], markersize=5, label=label)
    panel.set_title(title, fontsize=9)
    panel.set(xscale="log", yscale="log", xlabel="flops per byte", ylim=(1, 400))


FIGURES = {"rivals": rivals, "roofline": roofline}


if __name__ == "__main__":
    draw_all(FIGURES)
