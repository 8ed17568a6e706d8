"""One run, in a folder or in memory: begin or go on, write down what is seen, keep checkpoints, end in a known way."""

import warnings
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from angd.address import blame
from angd.method.memory import limited, shortage
from angd.method.step import Info
from angd.problems.estimate import Estimate, to_json
from angd.recipes.base import INFINITE
from angd.results import RESULTS
from angd.train.checkpoint import Checkpoints, named_leaves
from angd.train.config import FREE, Config
from angd.train.environment import different_versions, environment
from angd.train.folder import Record, RunFolder, finite
from angd.train.hosts.agreement import Agreement
from angd.train.hosts.peers import peers_of
from angd.train.loop import Budget, TrainState, is_evaluated, train
from angd.train.pace import Plan
from angd.train.recovery import MOST, RECOVERED, Recovery, cautious, told
from angd.train.setup import Setup, within
from angd.train.signals import SIGNALS
from angd.tree import count

FINISHED = "finished"
FAILED = 3
MOST_BARS = 3000  # parameters: the singular values of error bars then take 13 s on two cores
ANSWERS = (None, "stop", "retry")  # of a callback
RETRIES = 10  # of one step; more than this and the callback will never be content
WORDS = ("result", "accepted", "restarted")
NUMBERS = tuple(spec.name for spec in fields(Info) if spec.name not in WORDS)
Callback = Callable[[TrainState, Info], str | None]
OnStep = Callable[[TrainState, Info, Record | None], None]


@dataclass
class _Now:
    """Where a run stands, the last evaluation, and whether a signal must wait."""

    state: TrainState
    last: Record | None


class Run:
    """A run; after `records()` has ended, `result` says how, and `code` is the exit code.

    **Arguments:**

    - `setup`, `config`: what is run.
    - `path`: its folder, None for a run in memory.
    - `save_seconds`: time between checkpoints.
    - `judged`: steps at which the final evaluation is made as well, and is the test loss.
    - `callback`: called as `callback(state, info)` after every step; may return "stop" or "retry".

    `watched_by(watch)` tells a line of progress what is being done. Where the devices of the setup's mesh belong to
    several processes, each of them has a `Run`; that of process 0 evaluates and writes files.
    """

    def __init__(
        self,
        setup: Setup,
        config: Config,
        path: Path | None = None,
        save_seconds: float = 30.0,
        judged: Sequence[int] = (),
        callback: Callback | None = None,
    ):
        self.setup, self.config = within(setup, config.memory), config
        self.save_seconds, self.callback = save_seconds, callback
        self.folder = None if path is None else RunFolder(path)
        self.judged = frozenset(judged)
        self.peers = peers_of(setup.mesh)
        self.stop: tuple[str, int] | None = None
        self.asked, self.how = 0, ""  # the number of a signal, and how one goes on after it
        self.result, self.code = FINISHED, 0
        self.failure: Exception | None = None
        self.on_saving: Callable[[bool], None] = lambda saving: None
        self.on_begin: Callable[[TrainState], None] = lambda state: None
        self.on_doing: Callable[[str], None] = lambda work: None
        self.on_beat: Callable[[], None] = lambda: None
        self.on_last: Callable[[], None] = lambda: None
        self.state, self.info, self.evaluation = TrainState(setup.params), None, None
        self.estimates: dict[str, Estimate] = {}

    @property
    def plan(self) -> Plan:
        """Budget and phases."""
        return Plan(budget_of(self.config), self.setup.phases)

    def watched_by(self, watch: Any) -> None:
        """Tell an `angd.train.progress.Lines` of all work besides steps."""
        self.on_begin, self.on_doing = watch.begins, watch.doing

    def records(self, on_step: OnStep | None = None) -> Generator[Record]:
        """Evaluations from before, then new ones as they come."""
        budget = budget_of(self.config)
        if self.folder is None:
            yield from self._run(None, self.state, [], budget, on_step)
            return
        folder = self.folder
        with ExitStack() as held:
            self.peers.found(lambda: self._begin(folder, held))
            kept = Checkpoints(folder.checkpoints, identity(self.config), self.peers)
            self.on_doing("looking for checkpoints")
            found = kept.load(self.setup.at_phase)
            start = self.state if found is None else self.setup.placed(found)
            before = self._before(folder, start, budget) if self.peers.is_first else []
            yield from self._run(kept, start, before, budget, on_step)

    def _begin(self, folder: RunFolder, held: ExitStack) -> None:
        """Lock the folder, and make it where there is none yet."""
        if folder.exists:
            self._same_run(folder)
        held.enter_context(folder.locked())
        if not folder.exists:
            start = None if self.config.start is None else named_leaves(self.setup.params)
            folder.create(self.config, environment(), about(self.setup), start)

    def _same_run(self, folder: RunFolder) -> None:
        different = folder.config().differences(self.config)
        if different:
            raise ValueError(
                f"{str(folder.path)!r} holds a run with another {', '.join(different)}: "
                "go on with it as it is, or name another folder."
            )

    def _run(
        self, kept: Checkpoints | None, start: TrainState, before: list[Record], budget: Budget, on_step: OnStep | None
    ) -> Generator[Record]:
        yield from before
        self.state = start
        self.on_begin(start)
        now = _Now(start, before[-1] if before else None)
        try:
            yield from self._train(kept, budget, now, on_step)
        except (GeneratorExit, KeyboardInterrupt):
            if self.peers.count == 1:
                self._save(kept, now)
            raise
        except OSError:
            raise
        except Exception as problem:
            if self.peers.count > 1:
                if now.state is start:
                    self._undo(start)
                raise  # the others wait for this one: it must go, and the last checkpoint is whole
            self.failure = problem
            if now.state is start and isinstance(problem, ValueError):
                self._undo(start)
                raise  # a mistake of the user's, found before the first step
            if (short := shortage(problem)) is not None:
                self.failure = MemoryError(short)
                self.failure.__cause__ = problem
            why = short or blame(problem) or f"{type(problem).__name__}: {problem}"
            self.result, self.code = f"step {now.state.k + 1} failed: {why}", 1
        if self.code != FAILED:
            self._save(kept, now)
        self.on_last()
        self._conclude(now)
        self.peers.shared([0.0])  # all wait for what process 0 evaluates

    def _undo(self, start: TrainState) -> None:
        """A run that never made a step leaves no folder that would be in the way of the next one."""
        if self.folder is not None and self.peers.is_first and start.k == 0:
            for name in ("config.json", "task.json", "environment.json", "start.npz"):
                self.folder.forget(name)

    def _before(self, folder: RunFolder, start: TrainState, budget: Budget) -> list[Record]:
        """Records that will not be repeated; what was said of the end is forgotten if the run goes on."""
        if start.k > 0:
            note_versions(folder, start.k)
        if budget.spent(start) >= 1:
            return folder.records()
        folder.forget("solution.npz")
        return folder.forget_after(start.k, self._is_regular)

    def _is_regular(self, record: Record) -> bool:
        """Would a run that nobody disturbed have written this record?"""
        return self._is_evaluated(record.step) or record.result.startswith(RECOVERED)

    def _is_evaluated(self, k: int) -> bool:
        return is_evaluated(k) or k in self.judged

    def _train(self, kept: Checkpoints | None, budget: Budget, now: _Now, on_step: OnStep | None) -> Generator[Record]:
        """Step, evaluate, save, until the budget or somebody says stop."""
        agreement = Agreement(self.peers, lambda: self.asked, self._heard)
        saved, retries, answer = agreement.now, 0, None
        steps, recovery = self._steps(now.state, budget, agreement), Recovery(self.config.recover, now.state)
        while True:
            try:
                state, info = steps.send(answer)
            except StopIteration:
                return
            self.on_beat()
            answer = self._asked(state, info)
            retries = retries + 1 if answer == "retry" else 0
            if answer == "retry" and retries <= RETRIES:
                continue
            answer, note, good = None, None, recovery.good
            if (back := recovery.seen(state, info)) is not None:
                note = told(good, back, info, self.setup.phases[back.phase].optimiser)
                state, steps = back, self._steps(back, budget, agreement)
            now.state = self.state = state
            self.info, over = info, self._verdict(state, info, budget, recovery.given_up(state))
            if self._is_evaluated(state.k) or over or note:
                self.on_doing("evaluating")
                held = self.peers.gathered((state.params, state.samples))
                if self.peers.is_first:
                    now.last = self._record(replace(state, params=held[0], samples=held[1]), info, note)
                    if self.folder is not None:
                        self.folder.append(now.last)
                if state.k in self.judged and info.accepted:
                    self._save(kept, now)  # who judges it may leave it here for long
                if now.last is not None:
                    yield now.last
            if on_step is not None:
                on_step(state, info, now.last)
            if agreement.now - saved > self.save_seconds and info.accepted:
                self._save(kept, now)
                saved = agreement.now
            if over:
                return

    def _steps(
        self, start: TrainState, budget: Budget, agreement: Agreement
    ) -> Generator[tuple[TrainState, Info], str | None]:
        phases = cautious(self.setup.phases, start.recoveries)
        return train(self.setup.problem, phases, start, self.setup.key, budget, agreement)

    def _asked(self, state: TrainState, info: Info) -> str | None:
        """What the callback says, that of process 0 where there are several."""
        if self.callback is None:
            return None
        answer = self.callback(state, info)
        if answer not in ANSWERS:
            raise ValueError(f"callback: it may return None, 'stop' or 'retry', got {answer!r}.")
        answer = ANSWERS[int(self.peers.shared([ANSWERS.index(answer)])[0, 0])]
        if answer == "stop":
            self.stop = ("stopped by the callback", 0)
        return answer

    def asked_to_stop(self, number: int) -> None:
        """End after the present step, or, with other processes, after the next one in which they agree: what a
        `Stopper` calls."""
        self.asked = number
        if self.peers.count == 1:
            self._heard(number)

    def _heard(self, number: int) -> None:
        """A process was asked to stop, by a signal."""
        self.stop = (SIGNALS[number] + self.how, 128 + number)

    def _conclude(self, now: _Now) -> None:
        """Evaluate, and write down how it ended."""
        params = self.peers.gathered(now.state.params)
        if not self.peers.is_first:
            return
        final = self.setup.final
        self.on_doing("" if final is None else "evaluating on fresh walkers")
        self.evaluation = final(params) if final is not None and self.code in (0, FAILED) else None
        if (
            now.state.k > 0
            and getattr(self.setup.problem, "is_measured", False)
            and count(self.setup.params) <= MOST_BARS
        ):
            self.on_doing("error bars of the coefficients")
            self.estimates = self.setup.problem.estimates(params)
        if self.folder is None:
            return
        self.folder.write("summary.json", self.summary(now.last))
        if self.setup.solution is not None and now.state.k > 0:
            self.folder.write_arrays("solution.npz", self.setup.solution(params))

    def _save(self, kept: Checkpoints | None, now: _Now) -> None:
        """A checkpoint; whatever goes wrong with it is a matter of the disk."""
        if kept is None or now.state.k == 0 or now.state.state is None:
            return
        self.on_saving(True)
        try:
            kept.save(now.state, INFINITE if now.last is None else now.last.error)
        except Exception as problem:
            why = f"The checkpoint of step {now.state.k} could not be written ({problem}), earlier ones are whole"
            raise OSError(5, why, str(kept.path)) from problem
        finally:
            self.on_saving(False)

    def _verdict(self, state: TrainState, info: Info, budget: Budget, given_up: bool = False) -> bool:
        """Whether this was the last step; sets how the run ended."""
        if given_up:
            self.result, self.code = f"{MOST} recoveries were in vain: {RESULTS[info.result]}", FAILED
        elif state.rejected >= self.config.max_rejections:
            self.result, self.code = f"{state.rejected} steps in a row were rejected: {RESULTS[info.result]}", FAILED
        elif self.stop:
            self.result, self.code = self.stop
        return bool(self.code) or self.stop is not None or budget.spent(state) >= 1

    def _record(self, state: TrainState, info: Info, note: str | None = None) -> Record:
        with limited(self.config.memory):
            seen = self.setup.evaluate(state, float(info.loss))
        if self.setup.final is not None and state.k in self.judged:
            seen = replace(seen, test_loss=self.setup.final(state.params)["energy"])
        return Record(
            step=state.k,
            seconds=round(state.seconds, 3),
            cpu_seconds=round(state.cpu_seconds, 3),
            info={name: finite(getattr(info, name)) for name in NUMBERS},
            accepted=bool(info.accepted),
            restarted=bool(info.restarted),
            result=note or str(RESULTS[info.result]),
            test_loss=None if seen.test_loss is None else finite(seen.test_loss),
            errors={name: finite(value) for name, value in seen.errors.items()},
            observables={name: finite(value) for name, value in seen.observables.items()},
            phase=state.phase,
        )

    def summary(self, last: Record | None) -> dict[str, Any]:
        """What `--json` prints."""
        errors: dict[str, Any] = last.errors if last else {}
        found: dict[str, Any] = {
            "error": (next(iter(errors.values())) if len(errors) == 1 else errors) if errors else None,
            "largest_error": finite(last.error) if last else None,
        }
        if self.evaluation is not None:
            clean = {name: finite(value) for name, value in self.evaluation.items()}
            found = {name: clean.pop(name, None) for name in ("error", "standard_error")} | {"evaluation": clean}
            found["largest_error"] = None if found["error"] is None else abs(found["error"])
            found["test_loss"] = clean.get("energy")  # training energies lie
        return {
            "task": self.setup.task.name,
            "recipe": self.config.recipe,
            "seed": self.config.seed,
            "steps": self.state.k,
            **({"recoveries": self.state.recoveries} if self.state.recoveries else {}),
            "seconds": round(self.state.seconds, 3),
            "cpu_seconds": round(self.state.cpu_seconds, 3),
            "loss": last.loss if last else None,
            "test_loss": last.test_loss if last else None,
            **found,
            **({"estimates": to_json(self.estimates)} if self.estimates else {}),
            "result": self.result,
            "out": None if self.folder is None else str(self.folder.path),
        }


def budget_of(config: Config) -> Budget:
    """The limits of a run."""
    limits = (config.steps, config.seconds, config.cpu_seconds)
    return Budget(*(INFINITE if limit is None else limit for limit in limits))


def identity(config: Config) -> dict[str, Any]:
    """What makes a run another one; limits may change."""
    found = {name: value for name, value in config.to_dict().items() if name not in FREE}
    return {name: value for name, value in found.items() if (name, value) != ("start", None)}


def molecule_of(task: Any) -> str:
    """Nuclei and electrons of a ground state's molecule, in words; nothing for other tasks."""
    molecule = getattr(getattr(task.problem, "log_psi", None), "molecule", None)
    if molecule is None:
        return ""
    up, down = molecule.spins
    nuclei = "; ".join(
        f"{symbol} ({', '.join(f'{x:.4g}' for x in place)})"
        for symbol, place in zip(molecule.symbols, molecule.places, strict=True)
    )
    return f"{nuclei} a₀; {up + down} electrons, {up} ↑ and {down} ↓"


def note_versions(folder: RunFolder, step: int) -> None:
    """Say, and write down in environment.json, that a run goes on with other versions than it had so far."""
    known, now = folder.read("environment.json") or {}, environment()
    changes = different_versions((known.get("resumed") or [known])[-1], now)
    if not changes:
        return
    warnings.warn(
        f"{str(folder.path)!r} goes on at step {step} with {', '.join(changes)}: its numbers may differ in the last "
        "digits from those of an undisturbed run.",
        stacklevel=2,
    )
    folder.write("environment.json", known | {"resumed": [*known.get("resumed", []), {"step": step} | now]})


def about(setup: Setup) -> dict[str, Any]:
    """What a report says of the task."""
    task = setup.task
    known = task.exact is not None or task.reference is not None
    return {
        "name": task.name,
        "about": task.about,
        "equation": task.equation or molecule_of(task),
        "phases": [phase.name for phase in setup.phases],
        "errors": "energy" if task.energy is not None else "fields" if known else None,
        "density": task.is_density,
        "parameters": count(setup.params),
    }
