"""`angd run`: one task with one recipe, in a folder of its own. The options import nothing heavy."""

import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

import tyro

from angd.problems.estimate import from_json
from angd.program.arguments import Bytes, Number, Place, Size, Switch, Whole, changes
from angd.program.hosts import ended_together, enter
from angd.program.machines import Machines, introduce
from angd.program.process import RUNS, agreed, begin, check_source, completed, shared_path
from angd.program.reached import energy, number
from angd.program.terminal import is_terminal, tell, tell_page, tell_result, waiting
from angd.sizes import in_bytes, written
from angd.train.config import BUDGETS, Config, check_settings
from angd.train.files import check_folder
from angd.train.folder import RunFolder, unused

SETTINGS = ("seed", "precision", "max_rejections", "recover")
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
    --resume continues. --from DIR starts from the parameters of another run.

    --devices splits the samples over the devices of this machine; under srun or
    mpirun, or with --coordinator HOST:PORT --processes N --process I on every
    host, the same command runs on all of them together.
    """

    examples: ClassVar[tuple[str, ...]] = (
        "angd run heat                                        # a first try, some seconds",
        "angd run burgers energy --damping 1e-3               # an option of the recipe",
        "angd run --resume runs/heat-energy-0 --devices all   # go on, on all devices",
    )

    of_recipe: ClassVar[bool] = True
    several: ClassVar[bool] = False

    task: Annotated[Name, tyro.conf.arg(metavar="TASK", help_behavior_hint="")] = None
    """What to solve."""
    recipe: Annotated[Name, tyro.conf.arg(metavar="RECIPE", help_behavior_hint="")] = None
    """With what, e.g. energy, angd-l2, adam; by default what suits the task."""
    network: Size = None
    """Of a built-in task or a molecule: small, or paper; molecules have medium and published, which is the paper's."""
    charge: Whole = None
    """Charge of a molecule from an XYZ file; by default 0."""
    spin: Whole = None
    """n↑ − n↓ of such a molecule; by default 0 or 1."""
    steps: Whole = None
    """Stop after so many steps."""
    seconds: Number = None
    """Stop after so many seconds."""
    cpu_seconds: Number = None
    """Stop after so many CPU seconds of the process, compilation included; without any limit, the task's usual ones."""
    seed: Annotated[int | None, tyro.conf.arg(metavar="INT", help_behavior_hint="(default: 0)")] = None
    """Seed of the parameters and of all samples."""
    precision: Annotated[str | None, tyro.conf.arg(metavar="f32|f64", help_behavior_hint="(default: f64)")] = None
    """Floating-point numbers of 32 or 64 bits."""
    max_rejections: Annotated[int | None, tyro.conf.arg(metavar="INT", help_behavior_hint="(default: 50)")] = None
    """Give up after so many rejected steps in a row."""
    recover: Annotated[int | None, tyro.conf.arg(metavar="INT", help_behavior_hint="(default: 0, never)")] = None
    """After so many steps in a row that are not finite, go back to the last good state, with more damping."""
    memory_limit: Bytes = None
    """What a step may take, such as "8 GiB"; --dry-run tells what follows from it. By default most of the device's."""
    config: Place = None
    """Take the configuration from a file: of another run, or the best of a sweep."""
    out: Place = None
    """Folder of the run; by default one below runs/."""
    resume: Place = None
    """Go on with the run in this folder."""
    from_: Annotated[Path | None, tyro.conf.arg(name="from", metavar="DIR", help_behavior_hint="")] = None
    """Start from the parameters of the run in this folder; without TASK, with its task, recipe and options."""
    from_step: Whole = None
    """Which of its checkpoints; by default the last."""
    checkpoint_seconds: float = 30.0
    """Time between checkpoints."""
    devices: Annotated[str | None, tyro.conf.arg(metavar="INT|all", help_behavior_hint="")] = None
    """Split the samples over so many devices of each process; on CPUs they are simulated."""
    coordinator: Annotated[str | None, tyro.conf.arg(metavar="HOST:PORT", help_behavior_hint="")] = None
    """Of several processes: host of process 0, and a free port there."""
    processes: Whole = None
    """How many they are; srun and mpirun say it themselves, and 1 makes this one work alone."""
    process: Whole = None
    """Which one this is, from 0."""
    heartbeat: Annotated[int | None, tyro.conf.arg(metavar="INT", help_behavior_hint="(default: 30)")] = None
    """Seconds without a sign of life after which another process counts as gone, and the run ends."""
    watchdog: Number = None
    """Seconds without a completed step after which the run ends; with several processes, by default ten times the
    slowest step."""
    dry_run: Switch = False
    """Only say what would run: sizes, memory, and the time of a step. Nothing is written."""
    no_cache: Switch = False
    """Compile everything again, though an earlier run has left it in the user's cache folder."""
    json: Switch = False
    """End with one JSON object on standard output."""
    quiet: Switch = False
    """Show no progress."""

    def check(self) -> None:
        """Refuse bad values in one sentence, before anything heavy is imported."""
        if not 0 <= self.checkpoint_seconds <= 1e9:
            raise ValueError(f"--checkpoint-seconds must be from 0 to 1e9, got {self.checkpoint_seconds:g}.")
        if self.out is not None and str(self.out) in ("", "."):
            raise ValueError("--out must name a folder of its own.")
        if self.memory_limit is not None:
            in_bytes(self.memory_limit, "--memory-limit")
        if self.from_ is not None and self.config is not None:
            raise ValueError("--from and --config both say what to run: leave one of them out.")
        if self.from_ is None and self.from_step is not None:
            raise ValueError("--from-step says which checkpoint of --from DIR: give both.")
        if self.dry_run and self.machines.cluster is not None:
            raise ValueError("--dry-run is for one process: leave out --coordinator, or add --processes 1.")

    @property
    def machines(self) -> Machines:
        """On which devices and processes."""
        return Machines.of(self)

    def plan(self) -> tuple[Path | None, Config | None]:
        """The folder, where it is known already, and the configuration: of a run that goes on, process 0 knows it."""
        if not self.machines.is_first:
            return self.resume or self.out, None if self.resume is not None else self._fresh()
        if self.resume is not None:
            return self._resumed(self.resume)
        if self.out is not None:
            check_folder(self.out)
            RunFolder(self.out).check_free()
        return self.out, self._fresh()

    def _resumed(self, path: Path) -> tuple[Path, Config]:
        fixed = ("task", "recipe", "network", "charge", "spin", "seed", "precision", "config", "out", "from_")
        given = [name.rstrip("_") for name in fixed if getattr(self, name) is not None]
        if given:
            raise ValueError(f"--resume goes on with the run as it is: leave out {', '.join(given)}.")
        folder = RunFolder(path)
        config = folder.config()
        if config.python:
            raise ValueError(f"{str(path)!r} was begun in Python: call the same angd.fit(…, folder=…) again.")
        check_folder(path)
        patience = {n: value for n in ("max_rejections", "recover") if (value := getattr(self, n)) is not None}
        patience |= self._memory()
        config = replace(config, **patience)
        check_settings({"max_rejections": config.max_rejections, "recover": config.recover})
        return path, check_source(config.with_budget(**self._limits()), folder)

    def _fresh(self) -> Config:
        rest = {name: value for name in SETTINGS if (value := getattr(self, name)) is not None} | self._limits()
        rest |= self._memory()
        arguments = {n: value for n in ("network", "charge", "spin") if (value := getattr(self, n)) is not None}
        if self.config is not None:
            return self._from_file(self.config, arguments, rest)
        if self.from_ is not None and self.task is None:
            return self._from_file(RunFolder(self.from_).own_config(), arguments, rest | {"start": None})
        if self.task is None:
            raise ValueError("Say what to run, e.g. angd run burgers; angd list shows what there is.")
        return Config.of(self.task, self.recipe, changes(self, RunOptions), arguments, **rest)

    def _from_file(self, path: Path, arguments: dict[str, Any], rest: dict[str, Any]) -> Config:
        base = Config.read(path).to_dict()
        if base["python"]:
            raise ValueError(f"{str(path)!r} is of a run that was begun in Python: only angd.fit can repeat it.")
        if self.recipe not in (None, base["recipe"]):
            raise ValueError(f"--config {path} is for {base['recipe']}; leave out {self.recipe}.")
        if any(name in rest for name in BUDGETS):
            base |= dict.fromkeys(BUDGETS)
        base["task"] = self.task or base["task"]
        base["options"] = base["options"] | changes(self, RunOptions)
        base["arguments"] = base["arguments"] | arguments
        return Config.from_dict(base | rest, str(path))

    def _memory(self) -> dict[str, int]:
        return {} if self.memory_limit is None else {"memory": in_bytes(self.memory_limit, "--memory-limit")}

    def _limits(self) -> dict[str, Any]:
        return {name: value for name in BUDGETS if (value := getattr(self, name)) is not None}


def run_run(options: RunOptions) -> int:
    """Do it."""
    (path, known), machines = options.plan(), options.machines
    cache = not (options.no_cache or options.dry_run)  # a forecast says how long compilation takes
    precision = "f64" if known is None else known.precision
    enter(machines)
    with waiting("finding the other processes", options.quiet or machines.cluster is None):
        mesh = begin(precision, cache, machines)
    introduce(machines, mesh)
    config = agreed(known, mesh)
    with waiting(f"building {config.task}", options.quiet or not machines.is_first):
        config, task, recipe = completed(config)
        path = path or shared_path(mesh, lambda: unused(RUNS, f"{task.name}-{_label(config)}-{config.seed}"))
        config, start = _start(options, config, task)

        from angd.train.setup import prepare

        setup = prepare(task, recipe, config.seed, start).over(mesh)
    return _forecast(options, setup, config, path) if options.dry_run else _run(options, machines, setup, config, path)


def _start(options: RunOptions, config: Config, task: Any) -> tuple[Config, Any]:
    """Of a branch, the configuration that says where it came from, and the parameters it starts from."""
    from angd.train.branch import branch, start_of

    if options.from_ is not None:
        return branch(config, task, options.from_, options.from_step)
    beside = options.resume or (options.config.parent if options.config is not None else None)
    return config, None if beside is None else start_of(RunFolder(beside), config, task)


def _forecast(options: RunOptions, setup: Any, config: Config, path: Path) -> int:
    """What would run, and what it would cost."""
    from angd.train.forecast import forecast

    with waiting("compiling every phase", options.quiet):
        found = forecast(setup, config) | {"out": str(path)}
    if options.json:
        print(json.dumps(found, ensure_ascii=False))
    else:
        tell_page(expected(found))
    return 0


def _run(options: RunOptions, machines: Machines, setup: Any, config: Config, path: Path) -> int:
    from angd.program.running import trained
    from angd.train.run import Run

    task = setup.task
    run = Run(setup, config, path, options.checkpoint_seconds)
    if run.peers.is_first and not options.quiet:
        tell(f"{task.name} with {config.recipe} in {path}")
    trained(run, f"{task.name}, {_label(config)}", options.quiet, machines)
    ended_together()
    return _told(options, run) if run.peers.is_first else run.code


def _told(options: RunOptions, run: Any) -> int:
    """Say how it went."""
    path = run.folder.path
    summary = RunFolder(path).read("summary.json") or {}
    if run.code:
        tell(str(summary.get("result")))
    if options.json:
        print(json.dumps(summary, ensure_ascii=False))
    else:
        tell_result(sentence(summary))
        if is_terminal(sys.stdout):
            print("\n".join(afterwards(RunFolder(path), run.stop is not None)))
    return run.code


def afterwards(folder: RunFolder, stopped: bool) -> list[str]:
    """What one may look at or do next; a run that was stopped keeps its limit."""
    pictures = [name for name in ("solution.png", "history.png") if (folder.figures / name).exists()]
    lines = [f"look at it:  {folder.figures / pictures[0]}"] if pictures else []
    records = folder.records()
    if records:
        lines += [f"one page:    angd report {folder.path} --open"]
        limit = "" if stopped else f" --steps {2 * records[-1].step}"
        lines += [f"go on:       angd run --resume {folder.path}{limit}"]
    return lines


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
    """What training found, and the coefficients of an inverse problem with their error bars."""
    estimates = from_json(summary.get("estimates", {})).items()
    return ", ".join([_judged(summary), *(f"{name} = {estimate}" for name, estimate in estimates)])


def _judged(summary: dict[str, Any]) -> str:
    """Errors, or an energy with its error bar and how far it can be trusted, or the losses where nothing is known."""
    error, found = summary["error"], summary.get("evaluation")
    if found is not None:
        return energy(error, summary["standard_error"], found)
    if error is None:
        return ", ".join(f"{name.replace('_', ' ')} {number(summary[name])}" for name in ("loss", "test_loss"))
    errors: dict[str, Any] = error if isinstance(error, dict) else {"": error}
    return "error " + ", ".join(f"{name} {number(value)}".strip() for name, value in errors.items())


def expected(found: dict[str, Any]) -> str:
    """A forecast in words: what, a paragraph for each phase, and all of it."""
    phases = found["phases"]
    lines = [
        f"{found['task']} with {found['recipe']} would run in {found['out']}; nothing was written.",
        f"memory that a step may take: {written(found['memory_budget'])}; --memory-limit sets another",
        f"parameters: {found['parameters']}",
    ]
    for i, phase in enumerate(phases):
        indent = ""
        if len(phases) > 1:
            indent = "  "
            lines.append(_title(i + 1, phase))
        lines += [indent + line for line in (*_costs(phase), *_chosen(phase, found["memory_budget"]))]
    return "\n".join([*lines, f"all of it: about {found['steps']:.0f} steps in {found['seconds']:.0f} s"])


def _title(number: int, phase: dict[str, Any]) -> str:
    """Which phase it is, and how long it lasts."""
    kind = ", pretraining" if phase["pretraining"] else ""
    limit = "to the end" if phase["steps"] is None else f"{phase['steps']} steps at most"
    return f"phase {number}{kind}, {limit}:"


def _chosen(phase: dict[str, Any], budget: int) -> list[str]:
    """What follows from the budget, and whether the step keeps to it."""
    above = ["this is more than the budget: take fewer samples, or a lower --memory-limit for forms that hold less"]
    return [*phase["choices"], *(above if phase["memory_bytes"] > budget else [])]


def _costs(phase: dict[str, Any]) -> list[str]:
    """Sizes, memory and time of a phase."""
    drawn = ", ".join(f"{count} {name}" for name, count in phase["samples"].items())
    rows = "" if phase["rows"] is None else f"; {phase['rows']} rows"
    compiling = phase["seconds_to_compile"]
    first = f"{compiling:.1f} s to compile, then" if compiling else "compiled already,"
    return [
        f"samples: {drawn}{rows}",
        f"memory of a step: {phase['memory_bytes'] / 2**20:.1f} MiB",
        f"time: {first} {phase['seconds_per_step']:.2g} s a step ({phase['cpu_seconds_per_step']:.2g} CPU s)",
    ]
