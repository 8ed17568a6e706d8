"""`angd compare`: several optimisers on one experiment, from the same start and with the same points."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from angd.program.commands.run import RUNS, stoppable
from angd.recipes.experiments import experiment
from angd.train.config import Config
from angd.train.files import check_folder
from angd.train.folder import RunFolder
from angd.view.table import short, table, verdict

WIDTH = 100  # of a table that goes to a file
# What a budget is when only its unit is named.
UNITS = {"steps": ("max_steps", 300), "seconds": ("max_seconds", 60), "cpu-seconds": ("max_cpu_seconds", 60)}


@dataclass(frozen=True)
class CompareOptions:
    """Run several optimisers on one experiment, each with the same budget, start and points: one table, one figure.

    Say the same again with the same `--out`, and what is missing is run, what is there is kept.
    """

    experiment: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="EXPERIMENT")]
    """What to solve, e.g. burgers."""
    optimizers: Annotated[str, tyro.conf.arg(metavar="A,B,C")]
    """Names with commas between, e.g. energy,angd-l2,adam."""
    seeds: Annotated[str, tyro.conf.arg(metavar="0,1,2")] = "0"
    """Seeds with commas between; the table has medians."""
    budget: Annotated[str, tyro.conf.arg(metavar="'N UNIT'")] = "cpu-seconds"
    """What each run gets: steps, seconds or cpu-seconds, with a number before it: '300 steps', '85 cpu-seconds'."""
    network: Annotated[str, tyro.conf.arg(metavar="small|paper")] = "small"
    """The small accurate network, or the paper's."""
    precision: Annotated[str, tyro.conf.arg(metavar="f32|f64")] = "f64"
    """Floating-point numbers of 32 or 64 bits."""
    out: Path | None = None
    """Folder of the comparison; by default runs/compare-EXPERIMENT."""
    json: bool = False
    """End with the table as one JSON object on standard output."""

    def check(self) -> None:
        """Refuse bad values in one sentence, before anything heavy is imported."""
        self.configs()
        check_folder(self.folder)

    @property
    def folder(self) -> Path:
        return self.out or RUNS / f"compare-{self.experiment}"

    def configs(self) -> dict[str, Config]:
        """Every run by the name of its folder."""
        experiment(self.experiment)
        names = words(self.optimizers, "--optimizers")
        seeds = [whole(text, "--seeds") for text in words(self.seeds, "--seeds")]
        rest: dict[str, Any] = {"network": self.network, "precision": self.precision} | parse_budget(self.budget)
        return {
            f"{name}-{seed}": Config.of(self.experiment, name, seed=seed, **rest) for seed in seeds for name in names
        }


def words(text: str, option: str) -> list[str]:
    """Names with commas between, each once."""
    found = [word.strip() for word in text.split(",") if word.strip()]
    if not found or len(set(found)) < len(found):
        raise ValueError(f"{option} takes names with commas between, each once, got {text!r}.")
    return found


def whole(text: str, option: str) -> int:
    """A whole number that is not negative."""
    if not text.isdecimal():
        raise ValueError(f"{option} takes whole numbers from 0 with commas between, got {text!r}.")
    return int(text)


def parse_budget(text: str) -> dict[str, Any]:
    """'300 steps' as a limit of a configuration."""
    parts = text.split()
    if not parts or parts[-1] not in UNITS or len(parts) > 2:
        raise ValueError(f"--budget takes a number and a unit ({', '.join(UNITS)}), e.g. '300 steps', got {text!r}.")
    name, amount = UNITS[parts[-1]]
    if len(parts) == 2:
        try:
            amount = int(parts[0]) if parts[-1] == "steps" else float(parts[0])
        except ValueError:
            raise ValueError(f"--budget: {parts[0]!r} is not a number of {parts[-1]}.") from None
    return {name: amount}


def run_all(folder: Path, configs: dict[str, Config]) -> int:
    """Every run that is not finished yet, one after the other."""
    import jax

    from angd.train.progress import Watch
    from angd.train.run import Session, budget_of
    from angd.view.curves import draw_run

    for name, config in configs.items():
        jax.clear_caches()  # every run pays for its own compilation
        session = Session(folder / name, config)
        with stoppable(session), Watch(f"{config.experiment}, {name}", budget_of(config).spent) as watch:
            for _ in session.rows(watch):
                pass
        draw_run(session.folder)
        if session.stop is not None:
            print("angd: stopped; the same command goes on.", file=sys.stderr)
            return session.code
        if session.code:
            print(f"angd: {name}: {session.result}", file=sys.stderr)
    return 0


def print_table(title: str, rows: list[dict[str, Any]]) -> None:
    """The best first, on standard output."""
    from rich.console import Console
    from rich.table import Table

    shown = Table("optimiser", "seeds", "steps", "seconds", "CPU s", "loss", "test loss", "error", title=title)
    for row in sorted(rows, key=lambda row: row["error"]):
        numbers = [short(row[name]) for name in ("loss", "test_loss", "error")]
        shown.add_row(
            row["optimizer"],
            str(row["seeds"]),
            str(row["steps"]),
            f"{row['seconds']:.0f}",
            f"{row['cpu_seconds']:.0f}",
            *numbers,
        )
    console = Console()
    Console(width=None if console.is_terminal else WIDTH).print(shown)


def conclude(folder: Path, configs: dict[str, Config], title: str) -> tuple[list[dict[str, Any]], Path]:
    """Write the report, print the table and the verdict; returns the table and the page."""
    from angd.view.report import write_report

    runs = [RunFolder(folder / name) for name in configs]
    rows, page = table(runs), write_report([run.path for run in runs], folder / "report")
    print_table(title, rows)
    print(verdict(rows))
    print(f"report: {page}")
    return rows, page


def run_compare(options: CompareOptions) -> int:
    """Do it."""
    folder, configs = options.folder, options.configs()
    code = run_all(folder, configs)
    if code:
        return code
    rows, page = conclude(folder, configs, f"{options.experiment}, {options.budget} each")
    if options.json:
        print(json.dumps({"experiment": options.experiment, "table": rows, "report": str(page)}, ensure_ascii=False))
    return 0
