"""A run's folder, in which nothing is ever half-written.

    config.json        what was run; running it again gives the same numbers
    start.npz          of a branch, the parameters it starts from
    task.json          what the task is about, for reports
    environment.json   versions and machine
    metrics.jsonl      one line for each evaluation, written in one go
    checkpoints/       the last ones and the best
    summary.json       how it ended
    evaluation.json    what `angd evaluate` found
    solution.npz       fields at the end on a grid, with the exact ones
    figures/           drawn at the end

Imports nothing heavy.
"""

import json
import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

from angd._requirements import needs
from angd.train.config import Config
from angd.train.files import write_atomically


@dataclass(frozen=True)
class Record:
    """How things stood after one step; numbers that are not finite are None.

    **Attributes:**

    - `step`, `seconds`, `cpu_seconds`: when.
    - `info`: the numbers of the step's `Info`, by name.
    - `accepted`, `restarted`, `result`: what became of the step, and in words.
    - `test_loss`: the loss at samples that no optimiser sees.
    - `errors`: those against what is known, by field, or of the energy.
    - `observables`: what the task wants to see, and how a Markov chain does: `acceptance` of the last moves, how many
      walkers were `respawned` in all because ψ was not finite, and of how many the local energy is not (`masked`).
    - `phase`: the number of the phase of training, 0 for the first.
    """

    step: int
    seconds: float
    cpu_seconds: float
    info: dict[str, float | None]
    accepted: bool
    restarted: bool
    result: str
    test_loss: float | None = None
    errors: dict[str, float | None] = field(default_factory=dict)
    observables: dict[str, float | None] = field(default_factory=dict)
    phase: int = 0

    @property
    def loss(self) -> float | None:
        """The loss that the step began with."""
        return self.info.get("loss")

    @property
    def error(self) -> float:
        """The largest of the errors, infinite where one is not a number; energies may lie below their reference."""
        return max((math.inf if e is None else abs(e) for e in self.errors.values()), default=math.inf)

    def value(self, name: str) -> float | None:
        """`loss`, `test_loss` or `error` by name."""
        return getattr(self, name)


class RunFolder:
    """The files of one run.

    **Arguments:**

    - `path`: the folder, which need not exist.
    """

    def __init__(self, path: Path):
        self.path = path
        self.config_file, self.metrics_file = path / "config.json", path / "metrics.jsonl"
        self.checkpoints, self.figures = path / "checkpoints", path / "figures"

    @property
    def exists(self) -> bool:
        return self.config_file.exists()

    def check_free(self) -> None:
        """Refuse, before any work, to begin a run where something else is."""
        if not self.path.exists():
            return
        if not self.path.is_dir() or self.exists or any(self._strangers()):
            hint = f"go on with it, --resume {self.path}, or" if self.exists else "please"
            raise ValueError(f"{str(self.path)!r} is not empty: {hint} name another folder.")

    def create(
        self,
        config: Config,
        environment: dict[str, Any],
        about: Mapping[str, Any],
        start: Mapping[str, Any] | None = None,
    ) -> None:
        """Begin a run here; a folder that holds something already is refused. The configuration comes last: without
        it a run has not begun. `start` are the parameters of a branch."""
        self.check_free()
        self.path.mkdir(parents=True, exist_ok=True)
        self.write("environment.json", environment)
        self.write("task.json", dict(about))
        if start is not None:
            self.write_arrays("start.npz", start)
        self.write("config.json", config.to_dict())

    def _strangers(self) -> Iterator[Path]:
        """What a run that died in its first moment does not leave behind."""
        own = (".lock", "environment.json", "task.json", "start.npz")
        return (entry for entry in self.path.iterdir() if not entry.name.startswith(own) and entry.name[0] != ".")

    def config(self) -> Config:
        """What is run here."""
        return Config.read(self.own_config())

    def own_config(self) -> Path:
        """The file that says what is run here, if there is one."""
        if not self.path.is_dir():
            raise ValueError(f"There is no folder {str(self.path)!r}.")
        if not self.exists:
            raise ValueError(f"{str(self.path)!r} is not the folder of a run: it has no config.json.")
        return self.config_file

    def about(self) -> dict[str, Any]:
        """What the task is about: `name`, `about`, and what its errors are."""
        return self.read("task.json") or {}

    def write(self, name: str, data: Any) -> None:
        """A JSON file, in one go."""
        text = json.dumps(data, indent=1, ensure_ascii=False) + "\n"
        write_atomically(self.path / name, lambda temporary: temporary.write_text(text, encoding="utf-8"))

    def write_arrays(self, name: str, arrays: Mapping[str, Any]) -> None:
        """Arrays by name, in one go."""
        import numpy as np

        def save(temporary: Path) -> None:
            with open(temporary, "wb") as handle:
                np.savez_compressed(handle, **arrays)

        write_atomically(self.path / name, save)

    def read_arrays(self, name: str) -> dict[str, Any]:
        """Arrays by name, none where there is no such file."""
        import numpy as np

        path = self.path / name
        if not path.exists():
            return {}
        try:
            if not path.is_file():
                raise OSError
            with open(path, "rb") as handle, np.load(handle) as stored:
                return dict(stored)
        except (ValueError, OSError, BadZipFile, EOFError):
            raise ValueError(f"{str(path)!r} is damaged; delete it and resume the run.") from None

    def forget(self, name: str) -> None:
        """Remove a file that will be written again."""
        (self.path / name).unlink(missing_ok=True)

    def read(self, name: str) -> dict[str, Any] | None:
        """A JSON object, None where there is no such file."""
        path = self.path / name
        if not path.exists():
            return None
        try:
            found = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None
        except (ValueError, OSError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise ValueError(f"{str(path)!r} is damaged; delete it and resume the run.")
        return found

    def records(self) -> list[Record]:
        """All evaluations so far."""
        if not self.metrics_file.exists():
            return []
        if not self.metrics_file.is_file():
            raise ValueError(f"{str(self.metrics_file)!r} is not a file.")
        try:
            lines = self.metrics_file.read_text(encoding="utf-8").splitlines()
            return [Record(**json.loads(line)) for line in lines]
        except (ValueError, TypeError) as error:
            raise ValueError(f"{str(self.metrics_file)!r} has a line that is not a record of a run: {error}.") from None

    def append(self, record: Record) -> None:
        """One line in one call: a process that is killed leaves a whole line or none."""
        if not self.path.is_dir():
            raise OSError(2, "The folder of the run was removed", str(self.path))
        line = json.dumps(asdict(record), ensure_ascii=False).encode() + b"\n"
        handle = os.open(self.metrics_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        try:
            size = os.fstat(handle).st_size
            if os.write(handle, line) != len(line):
                os.ftruncate(handle, size)
                raise OSError(28, "No space left on device", str(self.metrics_file))
        finally:
            os.close(handle)

    def forget_after(self, step: int, regular: Callable[[Record], bool]) -> list[Record]:
        """Drop records later than a step, which will come again, and those at an irregular end; return the others."""
        records = self.records()
        kept = [record for record in records if record.step <= step and regular(record)]
        if len(kept) < len(records):
            text = "".join(json.dumps(asdict(record), ensure_ascii=False) + "\n" for record in kept)
            write_atomically(self.metrics_file, lambda temporary: temporary.write_text(text, encoding="utf-8"))
        return kept

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Nobody else may run here meanwhile; the lock dies with the process."""
        needs("filelock", "program", "a run in a folder")
        from filelock import FileLock, Timeout

        self.path.mkdir(parents=True, exist_ok=True)
        place = self.path / ".lock"
        if place.is_symlink():
            raise ValueError(f"{str(place)!r} is a link to somewhere else; remove it.")
        try:
            with FileLock(place, blocking=False):
                yield
        except Timeout:
            raise ValueError(
                f"Another process is running in {str(self.path)!r}; wait for it or stop it. Several processes share a "
                "run with --coordinator HOST:PORT --processes N --process I, or under srun or mpirun."
            ) from None


def finite(value: Any) -> float | None:
    """The number, or None where JSON has no word for it."""
    return float(value) if math.isfinite(value) else None


def unused(parent: Path, name: str) -> Path:
    """`parent/name`, or with a number where that exists."""
    path, count = parent / name, 1
    while path.exists():
        count += 1
        path = parent / f"{name}-{count}"
    return path


def find_runs(paths: list[Path]) -> list[RunFolder]:
    """Run folders among these and below them."""
    found = []
    for path in paths:
        if not path.is_dir():
            raise ValueError(f"There is no folder {str(path)!r}.")
        configs = sorted(path.rglob("config.json"))
        if not configs:
            raise ValueError(f"{str(path)!r} holds no run: there is no config.json in it or below it.")
        found += [RunFolder(config.parent) for config in configs]
    return found
