"""Runs under the eyes of a person: progress, signals, figures at the end."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any

from angd.problems.task import Task
from angd.program.hosts import watchdog
from angd.program.machines import Machines
from angd.program.process import ALONE
from angd.program.terminal import linked, tell, tell_result
from angd.train.config import Config
from angd.train.folder import RunFolder
from angd.train.progress import Silent
from angd.train.run import Run
from angd.train.setup import prepare
from angd.train.signals import Stopped, Stopper
from angd.view.curves import draw_run, is_drawn
from angd.view.progress import Watch
from angd.view.report import write_report
from angd.view.table import short, table
from angd.view.verdict import gains, judged, unknowns

WIDTH = 100  # of a table that goes to a file
COLUMNS = {"recipe": str, "seeds": str, "steps": str, "seconds": "{:.0f}".format, "cpu_seconds": "{:.0f}".format}
MEASURES = ("loss", "test_loss", "error", "apart")


def trained(run: Run, title: str, quiet: bool = False, machines: Machines = ALONE) -> None:
    """Train to the end, or to a signal, and draw the figures of the folder."""
    first = run.peers.is_first
    watch = (Watch if first and not quiet else Silent)(title, run.plan)
    run.watched_by(watch)
    assert run.folder is not None
    hint = f"go on with: angd run --resume {run.folder.path}"
    run.how, dog = f"; {hint}", watchdog(machines, hint)
    if dog is not None:
        run.on_beat, run.on_last = dog.beat, dog.rest

    def ask(name: str, number: int) -> None:
        run.asked_to_stop(number)
        watch.stopping()

    try:
        with Stopper(ask) as stopper, watch:
            run.on_saving = stopper.uninterrupted
            with dog or nullcontext():
                for _ in run.records(watch):
                    pass
            stopper.uninterrupted(True)
            if first and (watch.steps or not is_drawn(run.folder)):
                watch.doing("drawing figures")
                draw_run(run.folder)
    except Stopped as stop:  # somebody did not want to wait for the end of the step
        raise Stopped(stop.number, run.stop[0] if run.stop else str(stop)) from None


def train_all(folder: Path, configs: dict[str, Config], task: Task, quiet: bool = False) -> None:
    """Every run that is not finished yet, one after the other; each pays for its own compilation. A signal ends them
    all, also one that came when a run had just made its last step."""
    import jax

    for name, config in configs.items():
        jax.clear_caches()
        complete, recipe = config.completed(task)
        run = Run(prepare(task, recipe, config.seed), complete, folder / name)
        trained(run, f"{task.name}, {name}", quiet)
        if run.stop is not None:
            raise Stopped(run.stop[1] - 128)
        if run.code:
            tell(f"{name}: {run.result}")


def conclude(folder: Path, names: list[str], title: str) -> tuple[list[dict[str, Any]], Path]:
    """Write the report, print the table and the verdict; returns the table and the page."""
    runs = [RunFolder(folder / name) for name in names]
    rows, page = table(runs), write_report([run.path for run in runs], folder / "report")
    print_table(title, rows)
    limits = " ".join(unknowns(rows, runs, runs[0].about().get("errors")))
    for sentence in (judged(rows), *gains(rows, runs), *[limits] * bool(limits)):
        tell_result(sentence)
    print(f"report: {linked(page)}")
    return rows, page


def print_table(title: str, rows: list[dict[str, Any]]) -> None:
    """The best first, on standard output; columns in which nothing is known are left out."""
    from rich.console import Console
    from rich.table import Table

    known = [name for name in MEASURES if any(row[name] is not None for row in rows)]
    heads = [{"cpu_seconds": "CPU s", "apart": "seeds apart"}.get(n, n.replace("_", " ")) for n in [*COLUMNS, *known]]
    shown = Table(*heads, title=title)
    for row in rows:
        shown.add_row(*(form(row[name]) for name, form in COLUMNS.items()), *(short(row[name]) for name in known))
    console = Console()
    Console(width=None if console.is_terminal else WIDTH).print(shown)
