"""One run in its folder: begin or go on, write down what is seen, keep checkpoints, and end in a known way."""

import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from angd.recipes.base import INFINITE
from angd.train.checkpoint import Checkpoints
from angd.train.config import Config
from angd.train.environment import environment
from angd.train.folder import Row, RunFolder, finite
from angd.train.loop import Budget, Report, Stand, is_look, train
from angd.train.setup import Setup, prepare

FINISHED = "finished"
FAILED = 3
OnStep = Callable[[Stand, Report, Row | None], None]


@dataclass
class _Now:
    """Where a run stands, and the last look at it."""

    stand: Stand
    last: Row | None


class Session:
    """A run; after `rows()` has ended, `result` says how, and `code` is the exit code.

    At the steps `judged`, a ground state is evaluated on fresh walkers, and that energy is its test loss.
    """

    def __init__(self, path: Path, config: Config, save_seconds: float = 30.0, judged: Sequence[int] = ()):
        self.folder, self.config, self.save_seconds = RunFolder(path), config, save_seconds
        self.judged = frozenset(judged)
        self.stop: tuple[str, int] | None = None
        self.result, self.code = FINISHED, 0

    def rows(self, on_step: OnStep | None = None) -> Generator[Row]:
        """Looks from before, then new ones as they come."""
        if self.folder.exists:
            self._same_run()
        with self.folder.locked():
            if not self.folder.exists:
                self.folder.create(self.config, environment())
            setup, kept = prepare(self.config), Checkpoints(self.folder.checkpoints)
            try:
                yield from self._run(setup, kept, on_step)
            finally:
                kept.close()

    def _same_run(self) -> None:
        different = self.folder.config().differences(self.config)
        if different:
            raise ValueError(
                f"{str(self.folder.path)!r} holds a run with another {', '.join(different)}: "
                "resume it as it is, or name another folder with --out."
            )

    def _run(self, setup: Setup, kept: Checkpoints, on_step: OnStep | None) -> Generator[Row]:
        budget = budget_of(self.config)
        start = kept.load(setup.at_phase) if kept.latest is not None else Stand(setup.params)
        before = self._before(start, budget)
        yield from before
        now = _Now(start, before[-1] if before else None)
        try:
            yield from self._train(setup, kept, budget, now, on_step)
        except (GeneratorExit, KeyboardInterrupt):
            self._save(kept, now)
            raise
        except OSError:
            raise
        except Exception as problem:
            if now.stand is start and isinstance(problem, ValueError):
                raise  # a mistake of the user's, found before the first step
            self.result, self.code = f"step {now.stand.k + 1} failed: {type(problem).__name__}: {problem}", 1
        if self.code != FAILED:
            self._save(kept, now)
        self._conclude(setup, now)

    def _before(self, start: Stand, budget: Budget) -> list[Row]:
        """Looks that will not be repeated; what was said of the end is forgotten if the run goes on."""
        if budget.spent(start) >= 1:
            return self.folder.rows()
        self.folder.forget("solution.npz")
        return self.folder.forget_after(start.k, self._is_look)

    def _is_look(self, k: int) -> bool:
        return is_look(k) or k in self.judged

    def _train(
        self, setup: Setup, kept: Checkpoints, budget: Budget, now: "_Now", on_step: OnStep | None
    ) -> Generator[Row]:
        """Step, look, save, until the budget or somebody says stop."""
        saved = time.monotonic()
        for stand, report in train(setup.problem, setup.phases, now.stand, setup.key, budget):
            now.stand, over = stand, self._verdict(stand, report, budget)
            if self._is_look(stand.k) or over:
                now.last = self._look(setup, stand, report)
                self.folder.append(now.last)
                yield now.last
            if on_step is not None:
                on_step(stand, report, now.last)
            if time.monotonic() - saved > self.save_seconds and report.accepted:
                self._save(kept, now)
                saved = time.monotonic()
            if over:
                break

    def _conclude(self, setup: Setup, now: "_Now") -> None:
        """Evaluate, and write down how it ended."""
        ended = setup.finish(now.stand.params) if setup.finish is not None and self.code in (0, FAILED) else None
        self.folder.write("summary.json", self.summary(now.stand, now.last, ended))
        if setup.solution is not None and now.stand.k > 0:
            self.folder.write_arrays("solution.npz", setup.solution(now.stand.params))

    def _save(self, kept: Checkpoints, now: "_Now") -> None:
        """A checkpoint; whatever goes wrong with it is a matter of the disk."""
        if now.stand.k == 0:
            return
        try:
            kept.save(now.stand, INFINITE if now.last is None else now.last.error)
        except Exception as problem:
            kind = type(problem).__name__
            why = f"The checkpoint of step {now.stand.k} could not be written ({kind}), earlier ones are whole"
            raise OSError(5, why, str(self.folder.checkpoints)) from problem

    def _verdict(self, stand: Stand, report: Report, budget: Budget) -> bool:
        """Whether this was the last step; sets how the run ended."""
        if stand.refused >= self.config.max_refusals:
            self.result, self.code = f"{stand.refused} steps in a row were refused: {report.result}", FAILED
        elif self.stop:
            self.result, self.code = self.stop
        return bool(self.code) or budget.spent(stand) >= 1

    def _look(self, setup: Setup, stand: Stand, report: Report) -> Row:
        seen = setup.look(stand, report.loss)
        if setup.finish is not None and stand.k in self.judged:
            seen = replace(seen, test_loss=setup.finish(stand.params)["energy"])
        return Row(
            step=stand.k,
            seconds=round(stand.seconds, 3),
            cpu_seconds=round(stand.cpu_seconds, 3),
            loss=finite(report.loss),
            test_loss=None if seen.test_loss is None else finite(seen.test_loss),
            errors={name: finite(value) for name, value in seen.errors.items()},
            damping=finite(report.damping),
            norm=finite(report.norm),
            accepted=report.accepted,
            result=report.result,
            chain={name: finite(value) for name, value in seen.observables.items()},
        )

    def summary(self, stand: Stand, last: Row | None, ended: dict[str, float] | None) -> dict[str, Any]:
        """What `--json` prints."""
        errors: dict[str, Any] = last.errors if last else {}
        found: dict[str, Any] = {
            "error": (next(iter(errors.values())) if len(errors) == 1 else errors) if errors else None,
            "largest_error": finite(last.error) if last else None,
        }
        if ended is not None:
            clean = {name: finite(value) for name, value in ended.items()}
            found = {name: clean.pop(name) for name in ("error", "standard_error")} | {"evaluation": clean}
            found["largest_error"] = None if found["error"] is None else abs(found["error"])
        return {
            "experiment": self.config.experiment,
            "optimizer": self.config.optimizer,
            "seed": self.config.seed,
            "steps": stand.k,
            "seconds": round(stand.seconds, 3),
            "cpu_seconds": round(stand.cpu_seconds, 3),
            "loss": last.loss if last else None,
            "test_loss": last.test_loss if last else None,
            **found,
            "result": self.result,
            "out": str(self.folder.path),
        }


def budget_of(config: Config) -> Budget:
    """The limits of a run."""
    limits = (config.max_steps, config.max_seconds, config.max_cpu_seconds)
    return Budget(*(INFINITE if limit is None else limit for limit in limits))
