"""`angd compare`: several recipes on one task, from the same start and with the same samples."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import tyro

from angd.program.arguments import Place, Size, Switch, Whole
from angd.program.process import RUNS, opened
from angd.program.terminal import waiting
from angd.program.words import budget, whole_numbers, words
from angd.train.config import Config
from angd.train.files import check_folder


@dataclass(frozen=True)
class CompareOptions:
    """angd compare TASK A,B,C: several recipes, one budget, start and samples.

    It ends with one table and one page. Say the same again with the same --out,
    and what is missing is run, what is there is kept.

    Every run pays for its own compilation, also where an earlier one has left
    its result in the cache: seconds would not compare otherwise.
    """

    examples: ClassVar[tuple[str, ...]] = (
        "angd compare heat energy,angd-l2,adam",
        "angd compare burgers energy,adam --seeds 0,1,2 --budget '60 seconds'",
        "angd compare front.py angd-l2,ngd-l2 --out runs/front",
    )

    task: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="TASK")]
    """What to solve, e.g. burgers, or front.py."""
    recipes: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="A,B,C")]
    """Recipes with commas between, e.g. energy,angd-l2,adam."""
    seeds: Annotated[str, tyro.conf.arg(metavar="0,1,2")] = "0"
    """Seeds with commas between; the table has medians."""
    budget: Annotated[str, tyro.conf.arg(metavar="'N UNIT'")] = "cpu-seconds"
    """What each run gets: steps, seconds or cpu-seconds, with a number before it: '300 steps', '85 cpu-seconds'."""
    network: Size = None
    """Of a built-in task or a molecule: small, or paper; molecules have medium and published, which is the paper's."""
    charge: Whole = None
    """Charge of a molecule from an XYZ file; by default 0."""
    spin: Whole = None
    """n↑ − n↓ of such a molecule; by default 0 or 1."""
    precision: Annotated[str, tyro.conf.arg(metavar="f32|f64")] = "f64"
    """Floating-point numbers of 32 or 64 bits."""
    out: Place = None
    """Folder of the comparison; by default runs/compare-TASK."""
    json: Switch = False
    """End with the table as one JSON object on standard output."""
    quiet: Switch = False
    """Show no progress."""

    def check(self) -> None:
        """Refuse bad values in one sentence, before anything heavy is imported."""
        self.configs()
        check_folder(self.folder)

    @property
    def folder(self) -> Path:
        return self.out or RUNS / f"compare-{Path(self.task.partition(':')[0]).stem}"

    def configs(self) -> dict[str, Config]:
        """Every run by the name of its folder."""
        seeds = whole_numbers(self.seeds, "--seeds")
        arguments = {n: value for n in ("network", "charge", "spin") if (value := getattr(self, n)) is not None}
        rest: dict[str, Any] = {"precision": self.precision} | budget(self.budget)
        return {
            f"{name.rpartition(':')[2]}-{seed}": Config.of(self.task, name, None, arguments, seed=seed, **rest)
            for seed in seeds
            for name in words(self.recipes, "the list of recipes")
        }


def run_compare(options: CompareOptions) -> int:
    """Do it."""
    folder, configs = options.folder, options.configs()
    first = next(iter(configs.values()))
    with waiting(f"building {options.task}", options.quiet):
        _, task, _ = opened(first, cache=False)

        from angd.program.running import conclude, train_all

    train_all(folder, configs, task, options.quiet)
    rows, page = conclude(folder, list(configs), f"{task.name}, {options.budget} each")
    if options.json:
        print(json.dumps({"task": task.name, "table": rows, "report": str(page)}, ensure_ascii=False))
    return 0
