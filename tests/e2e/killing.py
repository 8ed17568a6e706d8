"""Commands as processes that are caught at a moment, and folders that are compared to the last bit."""

import contextlib
import csv
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from angd.train.checkpoint import Checkpoints
from angd.train.folder import RunFolder
from angd.train.run import identity

PAUSED = Path(__file__).parent / "paused.py"
LONGEST = 180  # seconds for whatever is waited for
TIMES = ("seconds", "cpu_seconds", "out", "report")  # what may differ between two equal runs
CHECKPOINT = r"/checkpoints/"
WRITING = ("opened", "half", "written", "moved", "removed")


@dataclass(frozen=True)
class Moment:
    """When to strike: `after` so many seconds, or records of the run, or at a `moment` of the writing of a `file`."""

    after: float = 0.0
    records: int = 0
    moment: str = "ready"
    file: str = ""
    count: int = 1
    seconds: float = 100.0

    def plan(self, mark):
        chosen = {name: getattr(self, name) for name in ("moment", "file", "count", "seconds")}
        return json.dumps({"mark": str(mark)} | chosen)

    def __str__(self):
        if self.file:
            return f"{self.moment} {re.sub('[^a-z.]', '', self.file)} {self.count}"
        return f"{self.records} records and {self.after:.2f} s"


def early(rng, most=2.2):
    """While the program imports, prepares or compiles."""
    return Moment(after=rng.uniform(0.05, most))


def at_work(rng, most=5):
    """After some steps."""
    return Moment(records=rng.randint(1, most), after=rng.uniform(0.0, 0.1))


def writing(rng, moment, file=CHECKPOINT, most=4, seconds=100.0):
    """While a file is written; of those that are removed, the first."""
    count = 1 if moment == "removed" or file != CHECKPOINT else rng.randint(1, most)
    # The temporary file of a write is removed as well, where it has not been moved.
    return Moment(
        moment=moment, file=file + (r"\d+\.npz$" if moment == "removed" else ""), count=count, seconds=seconds
    )


class Program:
    """A command in a process group of its own, which does not outlive the `with`."""

    def __init__(self, arguments, home, moment):
        self.home, self.moment, self.mark = home, moment, home / f"mark-{random.getrandbits(64):x}"
        command = [sys.executable, str(PAUSED), moment.plan(self.mark), *map(str, arguments)]
        self.known = self.records()
        self.process = subprocess.Popen(
            command, cwd=home, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()
        self.mark.unlink(missing_ok=True)

    def records(self):
        return sum(path.read_bytes().count(b"\n") for path in self.home.rglob("metrics.jsonl"))

    def reach(self):
        """Wait for the moment."""
        self._until(self.mark.exists)
        if self.moment.records:
            self._until(self._has_worked)
        time.sleep(self.moment.after)
        assert self.process.poll() is None, f"it ended before {self.moment}: {self.process.communicate()}"

    def _has_worked(self):
        """Have records come? Those of a step that is repeated are forgotten first."""
        self.known = min(self.known, self.records())
        return self.records() >= self.known + self.moment.records

    def _until(self, happened):
        deadline = time.monotonic() + LONGEST
        while not happened():
            assert time.monotonic() < deadline, f"{self.moment} never came"
            assert self.process.poll() is None, f"it ended before {self.moment}: {self.process.communicate()}"
            time.sleep(0.005)

    def end(self):
        """The exit code, and what was said on both streams."""
        said = self.process.communicate(timeout=LONGEST)
        return self.process.returncode, *said


@contextlib.contextmanager
def job(commands, home, moments):
    """A command, or one for each process, in one folder or in one for each, on this machine's loopback; none of the
    processes outlives the `with`."""
    commands = commands if isinstance(commands[0], list) else [commands] * len(moments)
    homes = home if isinstance(home, list) else [home] * len(moments)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    with contextlib.ExitStack() as held:
        together = ["--coordinator", address, "--processes", len(moments), "--process"]
        yield [
            held.enter_context(Program([*command, *together, i], place, moment))
            for i, (command, place, moment) in enumerate(zip(commands, homes, moments, strict=True))
        ]


def kill(arguments, home, moment):
    """kill -9, at the moment."""
    with Program(arguments, home, moment) as program:
        program.reach()
        program.process.kill()
        code, _, _ = program.end()
    assert code == -signal.SIGKILL


def complete(arguments, home):
    """Let a command come to its end; returns what it said."""
    with Program(arguments, home, Moment()) as program:
        code, out, error = program.end()
    assert code == 0, error
    return out


def runs(folder):
    return [RunFolder(path.parent) for path in sorted(folder.rglob("config.json"))]


def assert_whole(folder):
    """Whatever has its name is whole: every file can be read, every checkpoint has its digest."""
    for path in folder.rglob("*.json"):
        if path.name[0] != ".":
            json.loads(path.read_text(encoding="utf-8"))
    for run in runs(folder):
        run.records()
        run.read_arrays("solution.npz")
        kept = Checkpoints(run.checkpoints, identity(run.config()))
        for step in kept.steps:
            kept.read(step)


def assert_saved(folder):
    """Nothing that was recorded is lost."""
    for run in runs(folder):
        steps = Checkpoints(run.checkpoints, identity(run.config())).steps
        assert not run.records() or steps[-1] >= run.records()[-1].step


def assert_same(folder, reference):
    """Two folders hold the same files, with the same bits but for times; no temporary file is among them."""
    names = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert names == {str(path.relative_to(reference)) for path in reference.rglob("*") if path.is_file()}
    assert {Path(name).name for name in names if Path(name).name[0] == "."} <= {".lock"}
    for name in names:
        assert content(folder / name) == content(reference / name), name


def content(path):
    """What of a file must be the same; of figures, pages and what describes a machine, nothing."""
    if path.suffix == ".npz":
        with np.load(path) as stored:
            return {name: head(array) if name == "head" else bits(array) for name, array in stored.items()}
    if path.name == "metrics.jsonl":
        return [replace(record, seconds=0.0, cpu_seconds=0.0) for record in RunFolder(path.parent).records()]
    if path.suffix == ".json" and path.name != "environment.json":
        return without_times(json.loads(path.read_text(encoding="utf-8")))
    if path.suffix == ".csv":
        with open(path, encoding="utf-8", newline="") as file:
            return [without_times(row) for row in csv.DictReader(file)]
    return None


def bits(array):
    return array.dtype.str, array.shape, array.tobytes()


def head(text):
    """The numbers of a checkpoint; its digest covers times."""
    return {name: value for name, value in without_times(json.loads(str(text))).items() if name != "digest"}


def without_times(found):
    return {name: value for name, value in found.items() if name not in TIMES}
