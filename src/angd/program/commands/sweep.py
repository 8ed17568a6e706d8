"""`angd sweep`: tune a recipe by successive halving. The options import nothing heavy."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

import tyro

from angd.problems.library import TASKS
from angd.program.arguments import Place, Size, Switch, Whole, changes
from angd.program.process import RUNS, opened
from angd.program.terminal import waiting
from angd.program.words import words
from angd.recipes.named import named
from angd.train.config import Config
from angd.train.files import check_folder
from angd.train.folder import Record, RunFolder
from angd.train.sweep import configurations, halving

SCORES = ("loss", "test_loss", "error")


@dataclass(frozen=True)
class SweepOptions:
    """angd sweep TASK RECIPE: tune a recipe's options by successive halving.

    Values to try follow as options of the recipe, with commas between:
    angd sweep burgers angd-l2 --rate 1e-3,1e-2. Hopeless configurations stop
    early, the best goes to best.json, and angd run --config best.json uses it.
    Say the same again with the same --out, and the sweep goes on.
    """

    examples: ClassVar[tuple[str, ...]] = (
        "angd sweep heat adam --rate 1e-3,1e-2",
        "angd sweep burgers angd-l2 --most 12 --steps 200",
        "angd run --config runs/sweep-heat-adam/best.json",
    )

    of_recipe: ClassVar[bool] = True
    several: ClassVar[bool] = True

    task: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="TASK")]
    """What to solve, e.g. burgers, or front.py."""
    recipe: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="RECIPE")]
    """What to tune, e.g. angd-l2."""
    grid: Annotated[str, tyro.conf.arg(metavar="ours|paper|none")] = "ours"
    """Which of the recipe's grids to begin with; its options add to it or replace parts of it."""
    most: int = 24
    """At most so many configurations, chosen at random from the grid."""
    sweep_steps: Annotated[int, tyro.conf.arg(name="steps")] = 300
    """Steps of those that reach the end; pretraining does not count."""
    rungs: int = 3
    """How often configurations are compared; a third goes on each time."""
    by: Annotated[str, tyro.conf.arg(metavar="loss|test_loss|error")] = "test_loss"
    """What should be small; the test loss of a ground state is its energy on fresh walkers."""
    network: Size = None
    """Of a built-in task or a molecule: small, or paper; molecules have medium and published, which is the paper's."""
    charge: Whole = None
    """Charge of a molecule from an XYZ file; by default 0."""
    spin: Whole = None
    """n↑ − n↓ of such a molecule; by default 0 or 1."""
    seed: int = 0
    """Seed of the parameters and of all samples, the same for all."""
    out: Place = None
    """Folder of the sweep; by default runs/sweep-TASK-RECIPE."""
    no_cache: Switch = False
    """Compile everything again, though an earlier run has left it in the user's cache folder."""
    json: Switch = False
    """End with one JSON object on standard output."""
    quiet: Switch = False
    """Show no progress."""

    def check(self) -> None:
        """Refuse bad values in one sentence, before anything heavy is imported."""
        if self.by not in SCORES:
            raise ValueError(f"--by must be one of {', '.join(SCORES)}, got {self.by!r}.")
        if self.by != "test_loss" and self.task in TASKS and TASKS[self.task].density:
            raise ValueError(f"{self.task}: training energies lie, so --by must be test_loss, on fresh walkers.")
        for name, low, high in (("most", 1, 10000), ("sweep_steps", 1, 10**9), ("rungs", 1, 10)):
            if not low <= getattr(self, name) <= high:
                shown = name.removeprefix("sweep_")
                raise ValueError(f"--{shown} must be from {low} to {high}, got {getattr(self, name)}.")
        self.candidates()
        check_folder(self.folder)

    @property
    def folder(self) -> Path:
        stem = Path(self.task.partition(":")[0]).stem
        return self.out or RUNS / f"sweep-{stem}-{self.recipe.rpartition(':')[2]}"

    def stops(self, pretraining: int) -> list[int]:
        """Steps at which configurations are compared, after those before the first that counts."""
        found = {max(1, round(self.sweep_steps / 3**i)) for i in range(self.rungs)}
        return [pretraining + stop for stop in sorted(found)]

    def values(self) -> dict[str, Any]:
        """What is tried for each option."""
        chosen = named(self.recipe)
        if self.grid not in ("ours", "paper", "none"):
            raise ValueError(f"--grid must be ours, paper or none, got {self.grid!r}.")
        grid: dict[str, Any] = dict({"ours": chosen.grid, "paper": chosen.paper}.get(self.grid, {}))
        own = changes(self, SweepOptions)
        grid |= {name: words(values, f"--{name.replace('_', '-')}") for name, values in own.items()}
        if not grid:
            raise ValueError(f"{self.recipe} has no such grid: say what to try, e.g. --damping 1e-3,1e-2.")
        return grid

    def candidates(self) -> list[Config]:
        """Every configuration that is tried, without its limit."""
        arguments = {n: value for n in ("network", "charge", "spin") if (value := getattr(self, n)) is not None}
        tried = configurations(self.values(), self.most)
        return [Config.of(self.task, self.recipe, options, arguments, seed=self.seed) for options in tried]


def sweep(options: SweepOptions) -> tuple[Config, list[tuple[Config, list[Record]]], float]:
    """The best configuration, all with what was seen of them, the best first, and what a run usually takes."""
    tried = options.candidates()
    with waiting(f"building {options.task}", options.quiet):
        _, task, _ = opened(tried[0], not options.no_cache)
    made = [config.completed(task) for config in tried]
    stops = options.stops(max(getattr(recipe, "pretrain", 0) for _, recipe in made))

    from angd.train.loop import Budget
    from angd.train.pace import Plan
    from angd.train.progress import Silent
    from angd.train.run import Run
    from angd.train.setup import prepare
    from angd.train.signals import Stopped, Stopper
    from angd.view.progress import Watch

    asked: list[int] = []
    watch = (Silent if options.quiet else Watch)(options.recipe, Plan(Budget(steps=stops[-1])))

    def ask(name: str, number: int) -> None:
        asked.append(number)
        watch.stopping()

    stopper = Stopper(ask)

    def start(entry: dict[str, Any]) -> Iterator[Record]:
        number = entry["number"]
        config, recipe = made[number]
        config = replace(config, steps=stops[-1], cpu_seconds=None)
        title = f"{config.recipe} {number + 1} of {len(made)}"
        run = Run(prepare(task, recipe, config.seed), config, options.folder / f"{number:03d}", judged=stops)
        run.on_saving = stopper.uninterrupted

        def on_step(*seen: Any) -> None:
            if watch.title != title:
                watch.follow(title, run.plan)
            watch(*seen)
            if asked:
                raise Stopped(asked[0])  # the run saves its last step

        yield from run.records(on_step)

    numbers = [{"number": i} for i in range(len(made))]
    with stopper, watch:
        entries = halving(start, numbers, stops, by=lambda record: record.value(options.by))
    ranked = [(made[entry.options["number"]][0], entry.records) for entry in entries]
    return ranked[0][0], ranked, task.cpu_seconds


def run_sweep(options: SweepOptions) -> int:
    """Do it."""
    best, ranked, seconds = sweep(options)
    config, names = replace(best, steps=None, cpu_seconds=seconds), list(options.values())
    folder = RunFolder(options.folder)
    folder.write("best.json", config.to_dict())
    spent = sum(records[-1].cpu_seconds for _, records in ranked if records)
    tried = [
        {"options": {n: c.options[n] for n in names}, "steps": r[-1].step, options.by: r[-1].value(options.by)}
        for c, r in ranked
        if r
    ]
    summary = {"recipe": options.recipe, "tried": len(ranked), "cpu_seconds": round(spent, 1), "ranking": tried}
    folder.write("sweep.json", summary)
    shown = ", ".join(f"{name}={best.options[name]}" for name in names)
    print(f"{options.recipe} does best with {shown} ({len(ranked)} tried, {spent:.0f} CPU s).")
    print(f"use it: angd run --config {options.folder / 'best.json'}")
    if options.json:
        print(json.dumps(summary | {"best": config.to_dict()}, ensure_ascii=False))
    return 0
