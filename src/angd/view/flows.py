"""The figure of a flow: L − L* with the proven bound, and the Lyapunov function below it."""

from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

matplotlib.use("Agg")

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from angd.flow.integrate import FlowSolution
from angd.train.files import write_atomically

LOSS, BOUND, LYAPUNOV, EXIT = "#1f6fb4", "#8c8c8c", "#2a8c5a", "#c0392b"


def save_figure(solution: FlowSolution, title: str, path: Path) -> None:
    """Draw the solution to `path`, whose ending (.png, .svg, .pdf) says the format."""
    figure = draw(solution, title)
    write_atomically(path, lambda temporary: figure.savefig(temporary, format=path.suffix[1:], dpi=150))


def draw(solution: FlowSolution, title: str) -> Figure:
    """The figure; the lower panel is there when the theorem speaks of the flow."""
    panels = 1 if solution.certificate is None else 2
    figure = Figure(figsize=(7.0, 3.2 + 1.8 * (panels - 1)), layout="constrained")
    axes: Any = np.atleast_1d(
        figure.subplots(panels, 1, sharex=True, height_ratios=[3, 2][:panels])  # pyright: ignore[reportArgumentType]
    )
    _draw_loss(axes[0], solution)
    if solution.certificate is not None:
        _draw_lyapunov(axes[1], solution)
    axes[0].set_title(title, fontsize=10)
    axes[-1].set_xlabel("t")
    return figure


def _draw_loss(axis: Axes, solution: FlowSolution) -> None:
    ts, gap = np.asarray(solution.ts), np.asarray(solution.gap)
    axis.plot(ts, np.where(gap > 0, gap, np.nan), color=LOSS, label="L − L*" if solution.minimum_known else "L − min L")
    if solution.certificate is not None:
        conditions = solution.certificate.conditions
        flaws = conditions.violated() + ([] if conditions.convex else ["convexity"])
        name = "E(t₀)/(t²w)" + (f", no bound: {', '.join(flaws)} fails" if flaws else ", proven bound")
        axis.plot(ts, solution.certificate.bound, "--", color=BOUND, label=name)
    if solution.exit_time is not None:
        axis.axvline(
            solution.exit_time, color=EXIT, linewidth=1, label=f"boundary reached at t = {solution.exit_time:.4g}"
        )
    axis.set_yscale("log")
    if ts[0] > 0:
        axis.set_xscale("log")
    axis.set_ylabel("loss")
    _tidy(axis)


def _draw_lyapunov(axis: Axes, solution: FlowSolution) -> None:
    assert solution.certificate is not None
    axis.plot(
        np.asarray(solution.ts), np.asarray(solution.certificate.lyapunov), color=LYAPUNOV, label="Lyapunov function E"
    )
    axis.set_ylabel("E")
    axis.set_ylim(bottom=0)
    _tidy(axis)


def _tidy(axis: Axes) -> None:
    axis.grid(alpha=0.25, which="major")
    axis.legend(frameon=False, fontsize=8)
    axis.spines[["top", "right"]].set_visible(False)
