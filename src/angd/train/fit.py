"""`angd.fit`: train on any problem, in one call, and `Fit`, what it returns."""

import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import Mesh
from jaxtyping import Array, PyTree

from angd._requirements import needs
from angd.method import baselines
from angd.method.step import Info
from angd.problems.estimate import Estimate, from_json
from angd.problems.lookup import find_task
from angd.problems.samplers import as_sampler
from angd.problems.task import Task
from angd.recipes.base import Phase, Recipe
from angd.recipes.choice import check_fit, default, suited
from angd.recipes.named import RECIPES, named
from angd.sizes import in_bytes
from angd.train.checkpoint import Checkpoints
from angd.train.config import Config, check_settings
from angd.train.folder import Record, RunFolder
from angd.train.loop import TrainState
from angd.train.progress import Lines, Silent
from angd.train.run import NUMBERS, Callback, Run, identity
from angd.train.setup import Setup, assemble, prepare
from angd.train.signals import Stopper

DRAWS = 1000  # samples in every step, for a method that does not say how many
HISTORY = (*NUMBERS, "accepted", "restarted")


class History(dict[str, np.ndarray]):
    """What the steps said, as arrays of one length: `history["loss"]` against `history["step"]`.

    **Attributes:** `step`, `seconds`, `cpu_seconds`, and all numbers of `Info`: `loss`, `norm`, `moved`, `slope`,
    `damping`, `ratio`, `smallest` (eigenvalue), `accepted`, `restarted`; NaN where a number is not known. Every step of
    this call is there; of earlier ones in a folder, those that were evaluated.
    """

    @classmethod
    def of(cls, rows: Sequence[Sequence[float]]) -> "History":
        """From one row for each step, in the order of the names."""
        columns = np.array(rows, float).reshape(-1, 3 + len(HISTORY)).T
        return cls(zip(("step", "seconds", "cpu_seconds", *HISTORY), columns, strict=True))


@dataclass(frozen=True, repr=False)
class Fit:
    """A trained model: call it at points, plot it, save it.

    **Attributes:**

    - `params`: the parameters.
    - `task`: what was trained on.
    - `history`: arrays by name, one entry for each step: see `History`.
    - `records`: evaluations, with errors against what is known, test loss and observables.
    - `info`: what the last step said, None where the fit was loaded.
    - `result`: how it ended, in words.
    - `evaluation`: of a ground state, the energy on fresh walkers, with `error` and `standard_error`.
    - `samples`: the last ones.
    - `summary`: the most important numbers, as `summary.json` has them.
    - `run`: the run behind it, None where the fit was loaded.
    """

    params: PyTree
    task: Task
    history: History
    records: list[Record]
    info: Info | None
    result: str
    evaluation: dict[str, float] | None
    samples: PyTree
    summary: dict[str, Any]
    run: Run | None = None

    def __call__(self, x: Any) -> Array:
        """The trained field u, log|ψ| or log ρ.

        **Arguments:** `x`, points along the first axis; one point, where the problem's points are vectors, is welcome.

        **Returns:** an array with a value for each point, or the value at the one point.
        """
        x, domain = jnp.asarray(x), getattr(self.task.problem, "domain", None)
        if x.ndim == 1 and getattr(domain, "dimension", 1) > 1:
            return self.task.at_point(self.params, x)
        return self.task.field(self.params, x)

    @property
    def errors(self) -> dict[str, float | None]:
        """The last errors against what is known, by field; empty where nothing is."""
        return self.records[-1].errors if self.records else {}

    @property
    def estimates(self) -> dict[str, Estimate]:
        """Unknown coefficients of an inverse problem with their error bars, by name; {} where there are none."""
        kept = self.summary.get("estimates")
        if kept is not None:
            return from_json(kept)
        problem = self.task.problem
        return problem.estimates(self.params) if getattr(problem, "is_measured", False) else {}

    def plot(self) -> Any:
        """Draw how the loss and the errors fell, and the solution where there is one.

        **Returns:** a matplotlib figure.
        """
        needs("matplotlib", "program", "Fit.plot")
        from angd.view.fit import draw_fit

        return draw_fit(self)

    def save(self, folder: str | Path) -> Path:
        """Write the run to a folder, from which `angd.load` reads it and `angd report` makes a page.

        **Arguments:** `folder`, new or empty.

        **Returns:** the folder.
        """
        if self.run is None:
            raise ValueError("This fit was loaded from a folder already; copy that instead.")
        return _save(self.run, self.records, Path(folder))

    def __repr__(self) -> str:
        return f"Fit({_sentence(self)})"

    def _repr_html_(self) -> str:
        """For notebooks: the sentence and the figure."""
        if find_spec("matplotlib") is None:
            return f"<p>{_sentence(self)}</p>"
        from angd.view.fit import as_html

        return as_html(self, _sentence(self))


def fit(
    problem: Any,
    method: Any = None,
    *,
    params: PyTree = None,
    samples: Any = None,
    steps: int | None = None,
    seconds: float | None = None,
    cpu_seconds: float | None = None,
    key: int = 0,
    recover: int = 0,
    folder: str | Path | None = None,
    callback: Callback | None = None,
    mesh: Mesh | None = None,
    memory: int | str | None = None,
    progress: bool = True,
) -> Fit:
    """Train on a problem.

    **Arguments:**

    - `problem`: any problem that metrics understand, an `angd.Task`, a `Molecule`, or an address such as "burgers".
    - `method`: a recipe (`angd.recipes.GaussNewton(interior=300)`), the name of one ("adam"), an `angd.ANGD`, an optax
      transformation, or any object with `init` and `step`. By default what suits the problem: Gauss–Newton for
      residuals, accelerated Fisher–Rao for densities, accelerated L² for other fields.
    - `params`: the first parameters, a pytree of arrays; by default the task's or the problem's `init`.
    - `samples`: `Samples`, a dictionary of them, a sampler `(key, problem, params)` → samples, or a Markov chain; by
      default the recipe draws points in the problem's domain.
    - `steps`, `seconds`, `cpu_seconds`: the budget; the first that is reached ends the run. Without any, the task's
      `cpu_seconds`, 60 by default.
    - `key`: a seed, for parameters and samples.
    - `recover`: after so many steps in a row that are not finite, go back to the last good state and go on with ten
      times the damping, three times at most; 0 is never.
    - `folder`: for checkpoints, metrics and a report. The same call again goes on where the run stands.
    - `callback`: called after every step as `callback(state, info)`, with a `TrainState` and an `Info`; it returns
      None, "stop" to end the run, or "retry" to take the step again with other random numbers.
    - `mesh`: devices over which samples are split, `angd.parallel.mesh()`. Where they belong to several processes, each
      of them makes the same call; process 0 evaluates and writes the folder (docs/hosts.md).
    - `memory`: what a step may take, in bytes or as "8 GiB"; by default three quarters of the computer's memory, or
      nine tenths of an accelerator's. It decides how the Jacobian is held and how many samples are worked on at a time.
    - `progress`: show it on standard error.

    **Returns:** a `Fit`. An interrupt (Ctrl-C) ends the run after the last whole step and returns what there is.

    **Example:** `angd.fit(problem, seconds=60).plot()`
    """
    known = {"steps": steps, "seconds": seconds, "cpu_seconds": cpu_seconds, "seed": key, "recover": recover}
    known["memory"] = None if memory is None else in_bytes(memory, "fit: memory")
    _check_arguments(known)
    _check_kinds(callback, mesh, folder)
    task = _task(problem, samples, params)
    config, made = _method(method, task)
    config = replace(config, **known, precision="f64" if jax.config.jax_enable_x64 else "f32")  # pyright: ignore
    if not config.is_limited:
        config = replace(config, cpu_seconds=task.cpu_seconds)
    _warn_of_precision(made)
    setup = _setup(task, made, key).over(mesh)
    run = Run(setup, config, None if folder is None else Path(folder), callback=callback)
    return _train(run, _progress(run, progress))


def load(folder: str | Path, problem: Any = None, params: PyTree = None) -> Fit:
    """A finished or interrupted run, from its folder.

    **Arguments:**

    - `folder`: of a run.
    - `problem`: what was given to `fit`, where that cannot be found by its address.
    - `params`: parameters of the same structure, where `fit` was given some because nobody else knows them.

    **Returns:** a `Fit`: parameters, history, records, and the trained field.

    **Example:** `angd.load("runs/burgers-energy-0")(points)`
    """
    place = RunFolder(Path(folder))
    config = place.config()
    if problem is None and config.python:
        raise ValueError(f"{str(folder)!r} was made in Python: angd.load(folder, problem), with what fit was given.")
    task = find_task(config.place, config.arguments) if problem is None else _task(problem, None, params)
    params = Checkpoints(place.checkpoints, identity(config)).params(task.start(jax.random.key(0)))
    records, summary = place.records(), place.read("summary.json") or {}
    rows = [_row_of(record) for record in records]
    result, evaluation = summary.get("result", "still running, or killed"), summary.get("evaluation")
    return Fit(params, task, History.of(rows), records, None, result, evaluation, None, summary)


def _check_arguments(given: dict[str, Any]) -> None:
    """Refuse a budget or a seed out of range, by the name that the caller used."""
    try:
        check_settings(given)
    except ValueError as error:
        option, _, rest = str(error).partition(" ")
        rest = rest.replace("--max-rejections, at which", "50 rejections, at which")
        name = "key" if option == "--seed" else option.removeprefix("--").replace("-", "_")
        raise ValueError(f"fit: {name} {rest}") from None


def _check_kinds(callback: Any, mesh: Any, folder: Any) -> None:
    """Refuse what is of another kind, before any work."""
    if callback is not None and not callable(callback):
        raise ValueError(f"fit: callback must be a function of state and info, got {callback!r}.")
    if mesh is not None and not isinstance(mesh, Mesh):
        raise ValueError(f"fit: mesh must be a jax.sharding.Mesh, such as angd.parallel.mesh(), got {mesh!r}.")
    if folder is None:
        return
    if not isinstance(folder, str | Path) or str(folder) in ("", "."):
        raise ValueError(f"fit: folder must name a folder of its own, got {folder!r}.")
    needs("filelock", "program", "a run in a folder")


def _task(problem: Any, samples: Any = None, params: PyTree = None) -> Task:
    task = find_task(problem) if isinstance(problem, str) else Task.of(problem)
    given = {name: value for name, value in (("samples", samples), ("params", params)) if value is not None}
    return replace(task, **given) if given else task


def _method(method: Any, task: Task) -> tuple[Config, Any]:
    """What is written down of a method, and the method: a recipe or an object with `init` and `step`."""
    if method is None or isinstance(method, str):
        name = method or default(task)
        check_fit(name, task.is_density, task.name)
        recipe = suited(named(name).recipe, task, name=name)
    elif isinstance(method, Recipe) or (isinstance(method, type) and issubclass(method, Recipe)):
        recipe = method() if isinstance(method, type) else method
        name = next((n for n, entry in RECIPES.items() if entry.recipe == recipe), type(recipe).__name__)
    else:
        return Config(task.name, str(method), arguments=task.arguments, python=True), _optimiser(method)
    own = task.samples is not None or task.params is not None
    repeatable = task.address is not None and name in RECIPES and not own
    place = task.address if repeatable else task.name
    return Config(place or task.name, name, recipe.options(), task.arguments, python=not repeatable), recipe


def _optimiser(method: Any) -> Any:
    if isinstance(method, optax.GradientTransformation):
        return baselines.Baseline(optax.with_extra_args_support(method))
    if isinstance(method, type) or not (hasattr(method, "init") and hasattr(method, "step")):
        kind = f"the class {method.__name__}" if isinstance(method, type) else f"a {type(method).__name__}"
        raise ValueError(
            f"fit: {kind} is not a method; give a recipe, the name of one, an angd.ANGD, an optax "
            "transformation, or an object with init(problem, params, samples) and "
            "step(problem, params, samples, state)."
        )
    return method


def _setup(task: Task, method: Any, seed: int) -> Setup:
    if isinstance(method, Recipe):
        return prepare(task, method, seed)
    if task.samples is None and task.is_drawn:
        return assemble(task, task.problem, [Phase(method, task.draws(DRAWS))], seed)
    if task.samples is None and not hasattr(task.problem, "places"):
        raise ValueError(f"fit: where should {task.name} be sampled? Give samples=: Samples, or a function that draws.")
    sampler = as_sampler(task.samples, task.name) if task.samples is not None else _uniform(task)
    return assemble(task, task.problem, [Phase(method, sampler)], seed)


def _uniform(task: Task) -> Any:
    """Points for a method that does not say how many: new ones in every step, as recipes of first order have them."""
    from angd.problems.pinn import Uniform

    return Uniform(**task.counts(1000, 250))


def _warn_of_precision(method: Any) -> None:
    if isinstance(method, Recipe) and method.double and not jax.config.jax_enable_x64:  # pyright: ignore
        warnings.warn(
            f"{type(method).__name__} is accurate in double precision only: call "
            'jax.config.update("jax_enable_x64", True) before anything else.',
            stacklevel=3,
        )


def _progress(run: Run, wanted: bool) -> Lines:
    title = f"{run.setup.task.name}, {str(run.config.recipe).partition('(')[0]}"
    if not (wanted and run.peers.is_first):
        return Silent(title, run.plan)
    if find_spec("rich") is None:
        return Lines(title, run.plan)
    from angd.view.progress import watch

    return watch(title, run.plan)


def _train(run: Run, watch: Lines) -> Fit:
    """Run it to its end, or to an interrupt."""
    rows: list[Sequence[float]] = []
    records: list[Record] = []

    def on_step(state: TrainState, info: Info, last: Record | None) -> None:
        rows.append(_row(state, info))
        watch(state, info, last)

    run.watched_by(watch)
    with watch, _stopper(run):
        try:
            records.extend(run.records(on_step))
        except KeyboardInterrupt:
            run.result = "interrupted"
    if run.failure is not None:
        raise run.failure
    if run.folder is not None and run.peers.is_first and records and find_spec("matplotlib") is not None:
        from angd.view.report import write_report

        write_report([run.folder.path], run.folder.path / "report")
    before = [_row_of(record) for record in records if not rows or record.step < rows[0][0]]
    summary = run.summary(records[-1] if records else None)
    return Fit(
        run.peers.gathered(run.state.params),
        run.setup.task,
        History.of([*before, *rows]),
        records,
        run.info,
        run.result,
        run.evaluation,
        run.peers.gathered(run.state.samples),
        summary,
        run,
    )


def _stopper(run: Run) -> AbstractContextManager[Any]:
    """What Ctrl-C does: with other processes all end together, after a step."""
    if run.peers.count == 1:
        return nullcontext()
    return Stopper(lambda name, number: run.asked_to_stop(number))


def _row(state: TrainState, info: Info) -> Sequence[float]:
    return (state.k, state.seconds, state.cpu_seconds, *(float(getattr(info, name)) for name in HISTORY))


def _row_of(record: Record) -> Sequence[float]:
    numbers = [np.nan if (value := record.info.get(name)) is None else value for name in NUMBERS]
    return (record.step, record.seconds, record.cpu_seconds, *numbers, record.accepted, record.restarted)


def _save(run: Run, records: list[Record], path: Path) -> Path:
    """What a run in a folder would have left."""
    from angd.train.environment import environment
    from angd.train.run import about

    folder = RunFolder(path)
    folder.create(run.config, environment(), about(run.setup))
    for record in records:
        folder.append(record)
    error = records[-1].error if records else float("inf")
    Checkpoints(folder.checkpoints, identity(run.config)).save(run.state, error)
    folder.write("summary.json", run.summary(records[-1] if records else None) | {"out": str(path)})
    if run.setup.solution is not None:
        folder.write_arrays("solution.npz", run.setup.solution(run.state.params))
    return path


def _sentence(found: Fit) -> str:
    """How it went."""
    last = found.records[-1] if found.records else None
    if last is None:
        return f"{found.task.name}: no step was made, {found.result}"
    parts = [f"{found.task.name}: {last.step} steps in {last.seconds:.0f} s"]
    parts += [f"loss {last.loss:.3g}"] if last.loss is not None else []
    parts += [f"test loss {last.test_loss:.3g}"] if last.test_loss is not None else []
    if found.evaluation is not None and found.evaluation.get("energy") is not None:
        parts += [f"energy {found.evaluation['energy']:.5f}"]
    elif last.errors:
        parts += [f"error {last.error:.2e}"]
    parts += [f"{name} = {estimate}" for name, estimate in from_json(found.summary.get("estimates", {})).items()]
    return ", ".join([*parts, found.result])
