"""Accelerated flows against the plain gradient flow, on four metrics.

For each problem every flow is integrated with the same functional and start; the
table says from what time on L − L* stays below a thousandth of its initial value.
Acceleration pays where the metric leaves the problem badly conditioned (H²); where
it does not (Fisher–Rao), the plain flow is as good. All goes to runs/flows.
"""

import sys
import time
from pathlib import Path

import jax
import numpy as np
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

import angd
from angd.problems.flows import build

jax.config.update("jax_enable_x64", True)

OUT = Path(sys.argv[1] if len(sys.argv) > 1 else "runs/flows")
T0, T1 = 1.0, 60.0
PROBLEMS = [
    ("H¹", "sobolev", "quartic", 1),
    ("H²", "sobolev", "quartic", 2),
    ("Fisher–Rao", "fisher-rao", "relative-entropy", 0),
    ("Wasserstein-2", "gaussian", "relative-entropy", 0),
]
# γ = 1 throughout; friction 1 for the heavy ball, 3/t for Nesterov, 3/t with β = 1
# for the Hessian-damped flow.
FLOWS = {
    "gradient flow": angd.ARGFlow.gradient(rate=0.01),
    "heavy ball": angd.ARGFlow(alpha=1.0),
    "Nesterov": angd.ARGFlow(alpha=angd.OverTime(3.0)),
    "Hessian-damped": angd.ARGFlow.hessian_damped(alpha=3.0, beta=1.0),
}
COLOURS = ["#8c8c8c", "#d98c1f", "#1f6fb4", "#2a8c5a"]


def time_to_thousandth(ts: np.ndarray, gap: np.ndarray) -> str:
    """From when on the gap stays below 10⁻³ of its start."""
    last_above = np.flatnonzero(gap > 1e-3 * gap[0])[-1]
    return (
        f"> {ts[-1]:g}"
        if last_above == len(ts) - 1
        else f"{ts[last_above + 1]:.1f}"
    )


def main() -> None:
    console, started = Console(), time.perf_counter()
    table = Table(
        "metric",
        *FLOWS,
        title="time from which L − L* stays below 10⁻³ of its initial value",
    )
    figure = Figure(figsize=(9, 6.5), layout="constrained")
    axes = figure.subplots(2, 2).ravel()
    for axis, (title, manifold, functional, s) in zip(axes, PROBLEMS, strict=True):
        problem, row = build(manifold, functional, s), []
        for (name, flow), colour in zip(FLOWS.items(), COLOURS, strict=True):
            console.print(f"{title}: {name}", style="dim")
            run = angd.solve_flow(
                *problem[:2],
                flow,
                problem.rho0,
                T0,
                T1,
                minimiser=problem.minimiser,
                rtol=1e-9,
            )
            ts, gap = np.asarray(run.ts), np.asarray(run.gap)
            axis.loglog(
                ts, np.where(gap > 1e-15, gap, np.nan), color=colour, label=name
            )
            row.append(time_to_thousandth(ts, gap))
        axis.set(title=title, xlabel="t", ylabel="L − L*", ylim=(1e-14, None))
        table.add_row(title, *row)
    axes[0].legend(frameon=False, fontsize=8)
    OUT.mkdir(parents=True, exist_ok=True)
    figure.savefig(OUT / "flows.png", dpi=150)
    console.print(table)
    with (OUT / "summary.txt").open("w", encoding="utf-8") as file:
        Console(file=file, width=120).print(table)
    console.print(
        f"figure and summary: {OUT}/  ({time.perf_counter() - started:.0f} s)"
    )


if __name__ == "__main__":
    main()
