"""The demo: Burgers' equation, −sin(πx) steepening into a shock, with ANGD against what one would use instead.

Every method starts from the same parameters and gets the same CPU seconds (compilation included). The table gives the
relative L² error against the exact solution; figure, table and history go to runs/demo.

    python examples/demo.py [CPU seconds per method] [folder]
"""

import json
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

from angd.experiments.files import write_atomically
from angd.experiments.pinn import METHODS, PROBLEMS
from angd.experiments.runner import Budget, Phase, Record, train
from angd.problems.pinn import Problem

jax.config.update("jax_enable_x64", True)

SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 85.0
OUT = Path(sys.argv[2] if len(sys.argv) > 2 else "runs/demo")
EXPERIMENT = PROBLEMS["burgers"]
# title: (method, options)
CHOSEN: dict[str, tuple[str, dict[str, Any]]] = {
    "ANGD, energy metric": ("energy", {"interior": 2000, "condition": 200, "fresh": 200}),
    "ANGD, L² metric, μ = 0.8": ("angd-l2", {"rate": 1e-2, "search": True}),
    "NGD, L² metric": ("ngd-l2", {"rate": 1e-1, "search": True}),
    "Adam": ("adam", {}),
    "SGD, momentum 0.9": ("sgd", {"rate": 1e-3, "momentum": 0.9}),
}
COLOURS = ["#1f6fb4", "#2a8c5a", "#d98c1f", "#b4432f", "#8c8c8c"]


def watch(name: str, records: Iterable[tuple[Record, Any]], console: Console) -> tuple[list[Record], Any]:
    """Run a method to its end, with one line that says where it is."""
    history, last = [], None
    with console.status(f"{name}: compiling") as status:
        for record, params in records:
            history.append(record)
            last = params
            spent = f"{record.cpu_seconds:.0f} of {SECONDS:.0f} CPU s"
            status.update(f"{name}: step {record.step}, {spent}, loss {record.loss:.1e}, error {record.error:.1e}")
    console.print(f"{name:<36} step {history[-1].step:>6}   error {history[-1].error:.2e}")
    return history, last


def phases(title: str, problem: Problem) -> list[Phase]:
    method, options = CHOSEN[title]
    return METHODS[method].build(problem, **options)


def run(console: Console) -> tuple[dict[str, list[Record]], dict[str, np.ndarray]]:
    """All methods from one start: their histories, and their last fields on the grid."""
    problem = EXPERIMENT.problem()
    z, exact = EXPERIMENT.exact()
    start, errors = problem.init(jax.random.key(0)), EXPERIMENT.errors(problem)
    on_grid = jax.jit(lambda params: jax.vmap(problem.field, (None, 0))(params, jnp.asarray(z)))
    histories, fields = {}, {"exact": exact["u"]}
    budget = Budget(cpu_seconds=SECONDS, look=SECONDS / 25)
    for title in CHOSEN:
        records = train(problem, phases(title, problem), start, jax.random.key(1), budget, errors)
        histories[title], params = watch(title, records, console)
        fields[title] = np.asarray(on_grid(params))
    return histories, fields


def draw(histories: dict[str, list[Record]], fields: dict[str, np.ndarray]) -> Figure:
    """Errors against CPU seconds, and the fields at the last time."""
    figure = Figure(figsize=(11, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    for (name, history), colour in zip(histories.items(), COLOURS, strict=True):
        left.semilogy([r.cpu_seconds for r in history], [r.error for r in history], color=colour, label=name)
    left.set(xlabel="CPU seconds", ylabel="relative L² error", ylim=(1e-5, 3))
    left.legend(frameon=False, fontsize=8)
    x = np.linspace(-1, 1, 401)
    right.plot(x, fields["exact"].reshape(101, 401)[-1], color="black", linewidth=2.5, label="exact")
    for name, colour in zip(histories, COLOURS, strict=True):
        right.plot(x, fields[name].reshape(101, 401)[-1], color=colour, linewidth=1.2)
    right.set(xlabel="x", ylabel="u(t = 1, x)", ylim=(-0.8, 0.8))
    right.legend(frameon=False, fontsize=8)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def main() -> None:
    console, started = Console(), time.perf_counter()
    histories, fields = run(console)
    table = Table("method", "steps", "loss", "relative L² error", title=f"Burgers, {SECONDS:.0f} CPU seconds each")
    for name, history in histories.items():
        table.add_row(name, str(history[-1].step), f"{history[-1].loss:.1e}", f"{history[-1].error:.2e}")
    console.print(table)
    best, adam = (min(h[-1].error for n, h in histories.items() if key in n) for key in ("ANGD", "Adam"))
    console.print(f"The best ANGD is {adam / best:.0f} times more accurate than Adam at equal CPU time.")
    OUT.mkdir(parents=True, exist_ok=True)
    draw(histories, fields).savefig(OUT / "burgers.png", dpi=130)
    rows = {name: [asdict(record) for record in history] for name, history in histories.items()}
    write_atomically(OUT / "history.json", lambda path: path.write_text(json.dumps(rows, indent=1), encoding="utf-8"))
    minutes, seconds = divmod(time.perf_counter() - started, 60)
    console.print(f"Figure and history are in {OUT} ({minutes:.0f} min {seconds:.0f} s).")


if __name__ == "__main__":
    main()
