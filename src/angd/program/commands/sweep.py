"""`angd sweep`: tune an optimiser by successive halving. The options import nothing heavy."""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import tyro

from angd.program.commands.compare import words
from angd.program.commands.run import RUNS, pairs
from angd.recipes.experiments import experiment
from angd.recipes.named import named
from angd.train.config import Config
from angd.train.files import check_folder
from angd.train.folder import Row, RunFolder
from angd.train.sweep import configurations, halving

SCORES = ("loss", "test_loss", "error")


@dataclass(frozen=True)
class SweepOptions:
    """Tune an optimiser: many configurations start, the hopeless ones stop early, the best is written to best.json.

    `angd run --config best.json` then uses it. Say the same again with the same `--out`, and the sweep goes on.
    """

    experiment: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="EXPERIMENT")]
    """What to solve, e.g. burgers."""
    optimizer: Annotated[str, tyro.conf.arg(metavar="NAME")]
    """What to tune, e.g. angd-l2."""
    grid: Annotated[str, tyro.conf.arg(metavar="ours|paper")] = "ours"
    """Which of the optimiser's grids; --set adds to it or replaces parts of it."""
    set: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME=V1,V2 …")] = ()
    """Values to try, e.g. --set rate=1e-3,1e-2 damping=1e-2; one value fixes an option."""
    most: int = 24
    """At most so many configurations, chosen at random from the grid."""
    steps: int = 300
    """Steps of those that reach the end; pretraining does not count."""
    rungs: int = 3
    """How often configurations are compared; a third goes on each time."""
    by: Annotated[str, tyro.conf.arg(metavar="loss|test_loss|error")] = "test_loss"
    """What should be small; the test loss of a ground state is its energy on fresh walkers."""
    network: Annotated[str, tyro.conf.arg(metavar="small|paper")] = "small"
    """The small accurate network, or the paper's."""
    seed: int = 0
    """Seed of the parameters and of all points, the same for all."""
    out: Path | None = None
    """Folder of the sweep; by default runs/sweep-EXPERIMENT-NAME."""
    json: bool = False
    """End with one JSON object on standard output."""

    def check(self) -> None:
        """Refuse bad values in one sentence, before anything heavy is imported."""
        if self.by not in SCORES:
            raise ValueError(f"--by must be one of {', '.join(SCORES)}, got {self.by!r}.")
        if self.by != "test_loss" and experiment(self.experiment).molecule is not None:
            raise ValueError(f"{self.experiment}: training energies lie, so --by must be test_loss, on fresh walkers.")
        for name, low, high in (("most", 1, 10000), ("steps", 1, 10**9), ("rungs", 1, 10)):
            if not low <= getattr(self, name) <= high:
                raise ValueError(f"--{name} must be from {low} to {high}, got {getattr(self, name)}.")
        self.candidates()
        check_folder(self.folder)

    @property
    def folder(self) -> Path:
        return self.out or RUNS / f"sweep-{self.experiment}-{self.optimizer}"

    @property
    def stops(self) -> list[int]:
        """Steps at which configurations are compared."""
        found = {max(1, round(self.steps / 3**i)) for i in range(self.rungs)}
        return [self.pretraining + stop for stop in sorted(found)]

    @property
    def pretraining(self) -> int:
        """Steps before the first that counts."""
        tried = [{"pretrain": value} for value in self.values().get("pretrain", ())] or [{}]
        presets = [Config.of(self.experiment, self.optimizer, options).preset() for options in tried]
        return max(getattr(options, "pretrain", 0) for options in presets)

    def values(self) -> dict[str, Any]:
        """What is tried for each option."""
        experiment(self.experiment)
        chosen = named(self.optimizer)
        if self.grid not in ("ours", "paper"):
            raise ValueError(f"--grid must be ours or paper, got {self.grid!r}.")
        grid: dict[str, Any] = dict(chosen.grid if self.grid == "ours" else chosen.paper)
        grid |= {name: words(values, f"--set {name}") for name, values in pairs(self.set).items()}
        if not grid:
            raise ValueError(f"{self.optimizer} has no such grid: say what to try, e.g. --set damping=1e-3,1e-2.")
        return grid

    def candidates(self) -> list[Config]:
        """Every configuration that is tried."""
        grid = self.values()
        rest = {"network": self.network, "seed": self.seed, "max_steps": self.stops[-1]}
        tried = configurations(grid, self.most)
        return [Config.of(self.experiment, self.optimizer, options, **rest) for options in tried]

    def chosen(self, config: Config) -> dict[str, Any]:
        """A configuration's values of what is tried."""
        return {name: getattr(config.preset(), name) for name in self.values()}


def sweep(options: SweepOptions) -> tuple[Config, list[tuple[Config, list[Row]]]]:
    """The best configuration, and all with what was seen of them, the best first."""
    from angd.train.progress import Watch
    from angd.train.run import Session, budget_of

    configs = options.candidates()

    def start(entry: dict[str, Any]) -> Iterator[Row]:
        number = entry["number"]
        config = configs[number]
        watch = Watch(f"{config.optimizer} {number + 1} of {len(configs)}", budget_of(config).spent)
        yield from Session(options.folder / f"{number:03d}", config, 1e9, options.stops).rows(watch)

    entries = halving(
        start, [{"number": i} for i in range(len(configs))], options.stops, by=lambda row: row.value(options.by)
    )
    ranked = [(configs[entry.options["number"]], entry.rows) for entry in entries]
    return ranked[0][0], ranked


def run_sweep(options: SweepOptions) -> int:
    """Do it."""
    try:
        best, ranked = sweep(options)
    except KeyboardInterrupt:
        print("angd: stopped; the same command goes on.", file=sys.stderr)
        return 130
    config = replace(best, max_steps=None, max_cpu_seconds=experiment(best.experiment).cpu_seconds)
    folder = RunFolder(options.folder)
    folder.write("best.json", config.to_dict())
    spent = sum(rows[-1].cpu_seconds for _, rows in ranked if rows)
    tried = [
        {"options": options.chosen(c), "steps": r[-1].step, options.by: r[-1].value(options.by)} for c, r in ranked if r
    ]
    summary = {"optimizer": options.optimizer, "tried": len(ranked), "cpu_seconds": round(spent, 1), "ranking": tried}
    folder.write("sweep.json", summary)
    shown = ", ".join(f"{name}={value}" for name, value in options.chosen(best).items())
    print(f"{options.optimizer} does best with {shown} ({len(ranked)} tried, {spent:.0f} CPU s).")
    print(f"use it: angd run --config {options.folder / 'best.json'}")
    if options.json:
        print(json.dumps(summary | {"best": config.to_dict()}, ensure_ascii=False))
    return 0
