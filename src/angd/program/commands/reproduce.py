"""`angd reproduce`: the paper's figures at the scale of a budget. The options import nothing heavy."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import tyro

from angd.program.arguments import Place
from angd.program.process import RUNS, opened
from angd.program.terminal import waiting
from angd.program.words import whole_numbers
from angd.recipes.base import unknown
from angd.train.config import Config
from angd.train.files import check_folder
from angd.train.folder import RunFolder

FIELDS = ("sgd", "adam", "ngd-l2", "angd-l2", "ngd-h1", "angd-h1", "ngd-h2", "angd-h2", "energy")
DENSITIES = ("spring", "angd-fr", "ngd-w2", "angd-w2")
# figure: methods, and what is drawn
FIGURES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    **dict.fromkeys(("burgers-sin", "burgers-cos", "euler"), (FIELDS, ("loss", "test_loss"))),
    **dict.fromkeys(("vmc-be", "vmc-li2", "vmc-h10", "vmc-n2"), (DENSITIES, ("energy",))),
}


@dataclass(frozen=True)
class ReproduceOptions:
    """Draw a figure of the paper: losses, or energy errors, against steps and against seconds, for all methods.

    Settings are ours, tuned on the small networks; the metric of the energy is not in the paper. Every run pays for
    its own compilation, also where an earlier one has left its result in the cache.
    """

    examples: ClassVar[tuple[str, ...]] = (
        "angd reproduce burgers-cos",
        "angd reproduce vmc-be --budget 3600 --seeds 0,1,2",
        "angd reproduce euler --network paper --out runs/euler",
    )

    figure: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="FIGURE")]
    """burgers-sin, burgers-cos, euler, vmc-be, vmc-li2, vmc-h10 or vmc-n2."""
    budget: float = 900.0
    """CPU seconds for all methods together, for each seed."""
    seeds: Annotated[str, tyro.conf.arg(metavar="0,1,2")] = "0"
    """Seeds with commas between; each is a line."""
    network: Annotated[str, tyro.conf.arg(metavar="small|paper")] = "small"
    """The small accurate network, or the paper's."""
    out: Place = None
    """Folder; by default runs/reproduce-FIGURE."""

    def check(self) -> None:
        """Refuse bad values in one sentence, before anything heavy is imported."""
        if not 9 <= self.budget <= 1e8:
            raise ValueError(f"--budget must be from 9 to 1e8 CPU seconds, got {self.budget:g}.")
        self.configs()
        check_folder(self.folder)

    @property
    def folder(self) -> Path:
        return self.out or RUNS / f"reproduce-{self.figure}"

    def configs(self) -> dict[str, Config]:
        """Every run by the name of its folder."""
        if self.figure not in FIGURES:
            raise ValueError(unknown("figure", self.figure, FIGURES))
        methods, _ = FIGURES[self.figure]
        arguments = {} if self.network == "small" else {"network": self.network}
        seconds, seeds = self.budget / len(methods), whole_numbers(self.seeds, "--seeds")
        return {
            f"{name}-{seed}": Config.of(self.figure, name, None, arguments, seed=seed, cpu_seconds=seconds)
            for seed in seeds
            for name in methods
        }


def run_reproduce(options: ReproduceOptions) -> int:
    """Do it."""
    folder, configs = options.folder, options.configs()
    with waiting(f"building {options.figure}"):
        _, task, _ = opened(next(iter(configs.values())), cache=False)

        from angd.program.running import conclude, train_all
        from angd.view import curves as figures

    train_all(folder, configs, task)
    curves = figures.curves([RunFolder(folder / name) for name in configs])
    methods, quantities = FIGURES[options.figure]
    figure = figures.draw(curves, quantities, ("step", "seconds"))
    for ending in (".png", ".pdf"):
        figures.save(figure, folder / f"{options.figure}{ending}")
    conclude(folder, list(configs), f"{options.figure}, {options.budget / len(methods):.0f} CPU seconds each")
    print(f"figure: {folder / options.figure}.png")
    return 0
