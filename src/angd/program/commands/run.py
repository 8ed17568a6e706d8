"""`angd run`: one experiment with one optimiser, in a folder of its own. The options import nothing heavy."""

import json
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import tyro

from angd.train.config import Config, check_settings
from angd.train.files import check_folder
from angd.train.folder import RunFolder, unused

RUNS = Path("runs")
MIXED = 1.1  # R̂ of a chain that has settled


@dataclass(frozen=True)
class RunOptions:
    """Run an experiment, or go on with one; `angd list` shows what there is.

    Without a limit it runs for the experiment's usual CPU seconds. The folder holds configuration, metrics,
    checkpoints and figures; stop it as you like, and `--resume` continues.
    """

    experiment: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="EXPERIMENT")] = None
    """What to solve, e.g. burgers."""
    optimizer: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None
    """With what, e.g. energy, angd-l2, adam; by default what does best."""
    metric: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None
    """Metric of the manifold: energy, l2, h1, h2; for ground states fisher-rao, (parametric-)wasserstein."""
    solver: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None
    """How linear systems are solved: normal, iterative or kfac; for ground states kernel or kfac."""
    set: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME=VALUE …")] = ()
    """Other options of the optimiser, e.g. --set damping=1e-3 interior=2000."""
    network: Annotated[str | None, tyro.conf.arg(metavar="small|paper")] = None
    """The small accurate network, or the paper's."""
    max_steps: int | None = None
    """Stop after so many steps."""
    max_seconds: float | None = None
    """Stop after so many seconds."""
    max_cpu_seconds: float | None = None
    """Stop after so many CPU seconds of the process, compilation included."""
    seed: int | None = None
    """Seed of the parameters and of all points."""
    precision: Annotated[str | None, tyro.conf.arg(metavar="f32|f64")] = None
    """Floating-point numbers of 32 or 64 bits."""
    max_refusals: int | None = None
    """Give up after so many refused steps in a row."""
    config: Path | None = None
    """Take the configuration from a file: of another run, or the best of a sweep."""
    out: Path | None = None
    """Folder of the run; by default one below runs/."""
    resume: Path | None = None
    """Go on with the run in this folder."""
    checkpoint_seconds: float = 30.0
    """Time between checkpoints."""
    json: bool = False
    """End with one JSON object on standard output."""

    def check(self) -> None:
        """Refuse bad values in one sentence, before anything heavy is imported."""
        self.plan()

    def plan(self) -> tuple[Path, Config]:
        """The folder and the configuration."""
        if not 0 <= self.checkpoint_seconds <= 1e9:
            raise ValueError(f"--checkpoint-seconds must be from 0 to 1e9, got {self.checkpoint_seconds:g}.")
        if self.resume is not None:
            return self._resumed()
        config = self._fresh()
        path = self.out or unused(RUNS, f"{config.experiment}-{config.optimizer}-{config.seed}")
        check_folder(path)
        if RunFolder(path).exists or (path.is_dir() and any(path.iterdir())):
            raise ValueError(f"{str(path)!r} is not empty: use --resume to go on with a run, or name another folder.")
        return path, config

    def _resumed(self) -> tuple[Path, Config]:
        fixed = {"experiment", "optimizer", "metric", "solver", "network", "seed", "precision", "config", "out"}
        given = sorted(name for name in fixed if getattr(self, name) is not None) + (["set"] if self.set else [])
        if given:
            raise ValueError(f"--resume goes on with the run as it is: leave out {', '.join(given)}.")
        assert self.resume is not None
        config = RunFolder(self.resume).config()
        check_folder(self.resume)
        if self.max_refusals is not None:
            check_settings({"max_refusals": self.max_refusals})
            config = replace(config, max_refusals=self.max_refusals)
        return self.resume, config.with_budget(**self._limits())

    def _fresh(self) -> Config:
        changes = pairs(self.set) | {k: v for k in ("metric", "solver") if (v := getattr(self, k)) is not None}
        names = ("network", "seed", "precision", "max_refusals")
        rest = {name: value for name in names if (value := getattr(self, name)) is not None} | self._limits()
        if self.config is not None:
            return self._from_file(self.config, changes, rest)
        if self.experiment is None:
            raise ValueError("Say what to run, e.g. angd run burgers; angd list shows what there is.")
        return Config.of(self.experiment, self.optimizer, changes, **rest)

    def _from_file(self, path: Path, changes: dict[str, Any], rest: dict[str, Any]) -> Config:
        base = Config.read(path).to_dict()
        if self.optimizer not in (None, base["optimizer"]):
            raise ValueError(f"--config {path} is for {base['optimizer']}; leave out --optimizer.")
        if self.experiment is not None:
            base["experiment"] = self.experiment
        base["options"] = base["options"] | changes
        limits = self._limits()
        if limits:
            base |= dict.fromkeys(("max_steps", "max_seconds", "max_cpu_seconds"))
        return Config.from_dict(base | rest, str(path))

    def _limits(self) -> dict[str, Any]:
        names = ("max_steps", "max_seconds", "max_cpu_seconds")
        return {name: value for name in names if (value := getattr(self, name)) is not None}


def pairs(texts: tuple[str, ...]) -> dict[str, str]:
    """NAME=VALUE as a dictionary."""
    found = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not (sign and name and value):
            raise ValueError(f"--set takes NAME=VALUE, got {text!r}.")
        found[name.replace("-", "_")] = value
    return found


@contextmanager
def stoppable(session: Any) -> Iterator[None]:
    """Ctrl-C and SIGTERM let the present step end, and save; a second Ctrl-C does not wait."""

    def ask(number: int, _: Any) -> None:
        if session.stop is not None:
            raise KeyboardInterrupt
        name = "interrupted" if number == signal.SIGINT else "terminated"
        session.stop = (f"{name}; go on with: angd run --resume {session.folder.path}", 128 + number)

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run_run(options: RunOptions) -> int:
    """Do it."""
    path, config = options.plan()
    print(f"angd: {config.experiment} with {config.optimizer} in {path}", file=sys.stderr, flush=True)

    from angd.train.progress import Watch
    from angd.train.run import Session, budget_of
    from angd.view.curves import draw_run

    session = Session(path, config, options.checkpoint_seconds)
    with stoppable(session), Watch(f"{config.experiment}, {config.optimizer}", budget_of(config).spent) as watch:
        for _ in session.rows(watch):
            pass
    draw_run(session.folder)
    summary = session.folder.read("summary.json")
    if session.code:
        print(f"angd: {summary['result']}", file=sys.stderr)
    if options.json:
        print(json.dumps(summary, ensure_ascii=False))
    else:
        print(sentence(summary))
    return session.code


def sentence(summary: dict[str, Any]) -> str:
    """A summary in words."""
    return (
        f"{summary['experiment']} with {summary['optimizer']}: {_reached(summary)} after {summary['steps']} steps, "
        f"{summary['seconds']:.0f} s ({summary['cpu_seconds']:.0f} CPU s); all of it is in {summary['out']}"
    )


def _reached(summary: dict[str, Any]) -> str:
    """Errors, or an energy with its error bar and how far it can be trusted."""
    error, found = summary["error"], summary.get("evaluation")
    if found is not None:
        return _energy(error, summary["standard_error"], found)
    errors: dict[str, Any] = error if isinstance(error, dict) else {"": error}
    numbers = {name: "–" if value is None else f"{value:.2e}" for name, value in errors.items()}
    return "error " + ", ".join(f"{name} {number}".strip() for name, number in numbers.items())


def _energy(error: float | None, bar: float | None, found: dict[str, Any]) -> str:
    energy, rhat = found["energy"], found["rhat"]
    if energy is None or bar is None:
        return "no energy, because no local energy was finite,"
    above = "" if error is None else f" ({1e3 * error:.2f} mHa above the reference)"
    mixed = "" if rhat is not None and rhat < MIXED else f"; R̂ = {rhat}, so the chain had not settled: raise burn_in;"
    return f"energy {energy:.5f} ± {bar:.5f} Ha{above} on fresh walkers{mixed}"
