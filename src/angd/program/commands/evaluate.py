"""`angd evaluate`: a second look at a run, with more walkers or on a finer grid. The options import nothing heavy."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import tyro

from angd.problems.estimate import Estimate, from_json
from angd.problems.lookup import check_observables
from angd.program.arguments import Switch, Whole
from angd.program.process import begin, check_source
from angd.program.reached import energy, number
from angd.program.terminal import waiting
from angd.program.words import whole_numbers
from angd.recipes.named import named
from angd.train.config import is_density
from angd.train.files import check_folder
from angd.train.folder import RunFolder

MOST_POINTS = 10**7


@dataclass(frozen=True)
class EvaluateOptions:
    """angd evaluate DIR: judge a checkpoint again, more accurately than the run did.

    A ground state is measured on fresh walkers; fields are compared with what
    is known on a finer grid, and their loss is taken at more held-out points.
    The result is also written to DIR/evaluation.json.
    """

    examples: ClassVar[tuple[str, ...]] = (
        "angd evaluate runs/heat-energy-0 --grid 400,400",
        "angd evaluate runs/heat-energy-0 --best --points 20000",
        "angd evaluate runs/lih-angd-fr-0 --walkers 4000 --observables dipole,density",
    )

    folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DIR")]
    """Folder of a run."""
    step: Whole = None
    """Which checkpoint; by default the last."""
    best: Switch = False
    """The checkpoint with the smallest error instead of the last."""
    grid: Annotated[str | None, tyro.conf.arg(metavar="N,M", help_behavior_hint="")] = None
    """Points along the first two coordinates (N alone in one dimension), for the errors of fields."""
    points: Whole = None
    """Held-out points inside the domain, for the test loss of fields."""
    walkers: Whole = None
    """Fresh walkers, for the energy of a ground state; by default as many as in training."""
    burn_in: Whole = None
    """As in training; these walkers settle ten times as long."""
    measurements: Whole = None
    """How often the walkers are measured."""
    observables: Annotated[str | None, tyro.conf.arg(metavar="A,B", help_behavior_hint="")] = None
    """What else to measure on them: dipole, density, pair, forces, or file.py:name, a function of a walker; variance
    extrapolates the energies of all kept checkpoints to variance 0."""
    no_cache: Switch = False
    """Compile everything again, though an earlier run has left it in the user's cache folder."""
    json: Switch = False
    """Print one JSON object."""

    def check(self) -> None:
        """Refuse bad values in one sentence, before anything heavy is imported."""
        config = RunFolder(self.folder).config()
        if config.python:
            raise ValueError(f"{str(self.folder)!r} was begun in Python: call angd.evaluate(folder, problem) there.")
        if self.best and self.step is not None:
            raise ValueError("--step and --best name two checkpoints: leave one of them out.")
        counts = self.counts()
        if self.observables is not None:
            check_observables(self.observables.split(","))
            if is_density(config.task) is False:
                raise ValueError(f"{config.task} has no walkers: leave out --observables.")
        if self.points is not None and not 1 <= self.points <= MOST_POINTS:
            raise ValueError(f"--points must be a whole number from 1 to {MOST_POINTS:g}, got {self.points}.")
        if counts:
            recipe = named(str(config.recipe)).recipe
            if not set(counts) <= set(recipe.options()):
                raise ValueError(f"{config.recipe} has no walkers: leave out --{next(iter(counts)).replace('_', '-')}.")
            recipe.changed(counts, config.recipe)
        self.numbers()
        check_folder(self.folder)

    def counts(self) -> dict[str, int]:
        """Those of walkers that were given."""
        names = ("walkers", "burn_in", "measurements")
        return {name: value for name in names if (value := getattr(self, name)) is not None}

    def numbers(self) -> list[int] | None:
        """The grid's."""
        if self.grid is None:
            return None
        found = [number for word in self.grid.split(",") for number in whole_numbers(word, "--grid")]
        total = found[0] * (found[1] if len(found) > 1 else 1)
        if len(found) > 2 or min(found) < 2 or total > MOST_POINTS:
            raise ValueError(
                f"--grid takes one or two numbers from 2 with a comma between, {MOST_POINTS:g} points at most, "
                f"got {self.grid!r}."
            )
        return found


def run_evaluate(options: EvaluateOptions) -> int:
    """Do it."""
    folder = RunFolder(options.folder)
    config = check_source(folder.config(), folder)
    with waiting(f"evaluating {options.folder}"):
        begin(config.precision, not options.no_cache)

        from angd.train.evaluate import evaluate

        found = evaluate(
            options.folder,
            step=options.step,
            best=options.best,
            grid=options.numbers(),
            points=options.points,
            observables=options.observables,
            **options.counts(),
        )
        pictures = _drawn(folder) if options.observables else []
    lines = [sentence(found), *measured(found, pictures)]
    print(json.dumps(found, ensure_ascii=False) if options.json else "\n".join(lines))
    return 0


def _drawn(folder: RunFolder) -> list[Path]:
    """Figures of what was measured in cells."""
    from angd.view.observables import draw_observables

    return draw_observables(folder)


def measured(found: dict[str, Any], pictures: list[Path]) -> list[str]:
    """A line for each observable of a ground state."""
    kept = found.get("observables", {}) if "energy" in found else {}
    pictured = {picture.stem: picture for picture in pictures}
    lines = [
        f"{name}: {pictured[name]}" if name in pictured else f"{name}: {value} {kept[name].get('unit', '')}".rstrip()
        for name, value in from_json(kept).items()
    ]
    return [*lines, *([_at_no_variance(found["extrapolation"])] if "extrapolation" in found else [])]


def _at_no_variance(end: dict[str, Any] | None) -> str:
    """The energy to which several states lead."""
    if end is None:
        return "variance: no two states of different variance, nothing to extrapolate"
    of = f"from steps {', '.join(map(str, end['steps']))}"
    misfit = "" if end["misfit"] is None else f", misfit {end['misfit']:.1f} (1 is a straight line)"
    return f"variance: {Estimate(end['energy'], end['error'])} where it is 0, {of}{misfit}"


def sentence(found: dict[str, Any]) -> str:
    """What was found, in words."""
    head = f"{found['task']} with {found['recipe']}, step {found['step']}: "
    if "energy" in found:
        return head + energy(found["error"], found["standard_error"], found)
    parts = [f"error {name} {number(value)}" for name, value in found["errors"].items()]
    parts += [f"test loss {number(found['test_loss'])}"] if found["test_loss"] is not None else []
    parts += [f"{name} {number(value)}" for name, value in found["observables"].items()]
    return head + (", ".join(parts) or "nothing is known that it could be compared with")
