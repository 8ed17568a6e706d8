"""`angd run`: one task with one recipe, in a folder of its own. The options import nothing heavy."""

import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

import tyro

from angd.program.arguments import Number, Place, Size, Whole, changes
from angd.program.process import RUNS, check_source, opened
from angd.train.config import BUDGETS, Config, check_settings
from angd.train.files import check_folder
from angd.train.folder import RunFolder, unused

MIXED = 1.1  # R̂ of a chain that has settled
Name = Annotated[str | None, tyro.conf.Positional]


@dataclass(frozen=True)
class RunOptions:
    """angd run TASK [RECIPE]: train, or go on with a run.

    TASK is a name (angd list shows all), front.py[:name],
    package.module:name, or water.xyz. RECIPE is a name or an address; by
    default what suits the task. A recipe's own options follow:
    angd run burgers energy --help.

    Without a limit it runs for the task's usual CPU seconds. The folder holds
    configuration, metrics, checkpoints and figures; stop it as you like, and
    --resume continues.
    """

    of_recipe: ClassVar[bool] = True
    several: ClassVar[bool] = False

    task: Annotated[Name, tyro.conf.arg(metavar="TASK")] = None
    """What to solve."""
    recipe: Annotated[Name, tyro.conf.arg(metavar="RECIPE")] = None
    """With what, e.g. energy, angd-l2, adam; by default what suits the task."""
    network: Size = None
    """The small accurate network of a built-in task or a molecule, or the published one."""
    charge: Whole = None
    """Charge of a molecule from an XYZ file."""
    spin: Whole = None
    """n↑ − n↓ of such a molecule; by default 0 or 1."""
    steps: Whole = None
    """Stop after so many steps."""
    seconds: Number = None
    """Stop after so many seconds."""
    cpu_seconds: Number = None
    """Stop after so many CPU seconds of the process, compilation included."""
    seed: Whole = None
    """Seed of the parameters and of all samples."""
    precision: Annotated[str | None, tyro.conf.arg(metavar="f32|f64", help_behavior_hint="")] = None
    """Floating-point numbers of 32 or 64 bits."""
    max_rejections: Whole = None
    """Give up after so many rejected steps in a row."""
    config: Place = None
    """Take the configuration from a file: of another run, or the best of a sweep."""
    out: Place = None
    """Folder of the run; by default one below runs/."""
    resume: Place = None
    """Go on with the run in this folder."""
    checkpoint_seconds: float = 30.0
    """Time between checkpoints."""
    json: bool = False
    """End with one JSON object on standard output."""
    quiet: bool = False
    """Show no progress."""

    def check(self) -> None:
        """Refuse bad values in one sentence, before anything heavy is imported."""
        if not 0 <= self.checkpoint_seconds <= 1e9:
            raise ValueError(f"--checkpoint-seconds must be from 0 to 1e9, got {self.checkpoint_seconds:g}.")
        if self.out is not None and str(self.out) in ("", "."):
            raise ValueError("--out must name a folder of its own.")

    def plan(self) -> tuple[Path | None, Config]:
        """The folder, where it is known already, and the configuration."""
        if self.resume is not None:
            return self._resumed(self.resume)
        if self.out is not None:
            check_folder(self.out)
            RunFolder(self.out).check_free()
        return self.out, self._fresh()

    def _resumed(self, path: Path) -> tuple[Path, Config]:
        fixed = ("task", "recipe", "network", "charge", "spin", "seed", "precision", "config", "out")
        given = [name for name in fixed if getattr(self, name) is not None]
        if given:
            raise ValueError(f"--resume goes on with the run as it is: leave out {', '.join(given)}.")
        folder = RunFolder(path)
        config = folder.config()
        if config.python:
            raise ValueError(f"{str(path)!r} was begun in Python: call the same angd.fit(…, folder=…) again.")
        check_folder(path)
        if self.max_rejections is not None:
            check_settings({"max_rejections": self.max_rejections})
            config = replace(config, max_rejections=self.max_rejections)
        return path, check_source(config.with_budget(**self._limits()), folder)

    def _fresh(self) -> Config:
        names = ("seed", "precision", "max_rejections")
        rest = {name: value for name in names if (value := getattr(self, name)) is not None} | self._limits()
        arguments = {n: value for n in ("network", "charge", "spin") if (value := getattr(self, n)) is not None}
        if self.config is not None:
            return self._from_file(self.config, arguments, rest)
        if self.task is None:
            raise ValueError("Say what to run, e.g. angd run burgers; angd list shows what there is.")
        return Config.of(self.task, self.recipe, changes(self, RunOptions), arguments, **rest)

    def _from_file(self, path: Path, arguments: dict[str, Any], rest: dict[str, Any]) -> Config:
        base = Config.read(path).to_dict()
        if self.recipe not in (None, base["recipe"]):
            raise ValueError(f"--config {path} is for {base['recipe']}; leave out {self.recipe}.")
        if any(name in rest for name in BUDGETS):
            base |= dict.fromkeys(BUDGETS)
        base["task"] = self.task or base["task"]
        base["options"] = base["options"] | changes(self, RunOptions)
        base["arguments"] = base["arguments"] | arguments
        return Config.from_dict(base | rest, str(path))

    def _limits(self) -> dict[str, Any]:
        return {name: value for name in BUDGETS if (value := getattr(self, name)) is not None}


def run_run(options: RunOptions) -> int:
    """Do it."""
    path, config = options.plan()
    config, task, recipe = opened(config)
    path = path or unused(RUNS, f"{task.name}-{_label(config)}-{config.seed}")
    if not options.quiet:
        print(f"angd: {task.name} with {config.recipe} in {path}", file=sys.stderr, flush=True)

    from angd.program.running import trained
    from angd.train.run import Run
    from angd.train.setup import prepare

    run = Run(prepare(task, recipe, config.seed), config, path, options.checkpoint_seconds)
    trained(run, f"{task.name}, {_label(config)}", options.quiet)
    summary = RunFolder(path).read("summary.json") or {}
    if run.code:
        print(f"angd: {summary.get('result')}", file=sys.stderr)
    if options.json:
        print(json.dumps(summary, ensure_ascii=False))
    else:
        print(sentence(summary))
    return run.code


def _label(config: Config) -> str:
    """A recipe's name as part of a folder's."""
    return str(config.recipe).rpartition(":")[2].replace("/", "-")


def sentence(summary: dict[str, Any]) -> str:
    """A summary in words."""
    return (
        f"{summary['task']} with {summary['recipe']}: {_reached(summary)} after {summary['steps']} steps, "
        f"{summary['seconds']:.0f} s ({summary['cpu_seconds']:.0f} CPU s); all of it is in {summary['out']}"
    )


def _reached(summary: dict[str, Any]) -> str:
    """Errors, or an energy with its error bar and how far it can be trusted, or the losses where nothing is known."""
    error, found = summary["error"], summary.get("evaluation")
    if found is not None:
        return _energy(error, summary["standard_error"], found)
    if error is None:
        return ", ".join(f"{name.replace('_', ' ')} {_number(summary[name])}" for name in ("loss", "test_loss"))
    errors: dict[str, Any] = error if isinstance(error, dict) else {"": error}
    return "error " + ", ".join(f"{name} {_number(value)}".strip() for name, value in errors.items())


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2e}"


def _energy(error: float | None, bar: float | None, found: dict[str, Any]) -> str:
    energy, rhat = found["energy"], found["rhat"]
    if energy is None or bar is None:
        return "no energy, because no local energy was finite,"
    above = "" if error is None else f" ({1e3 * error:.2f} mHa above the reference)"
    mixed = "" if rhat is not None and rhat < MIXED else f"; R̂ = {rhat}, so the chain had not settled: raise burn_in;"
    return f"energy {energy:.5f} ± {bar:.5f} Ha{above} on fresh walkers{mixed}"
