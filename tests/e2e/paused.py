"""The program with one moment at which it waits to be caught: `python paused.py PLAN ARGUMENTS…`.

PLAN is a JSON object: `mark`, a file that appears when the moment has come; `moment`, "ready" before the program
starts, or one of the writing of a file, "opened", "half", "written", "moved" or "removed"; `file`, an expression for
its path; `count`, the first or a later one of them; `seconds`, how long it waits there.
Steps take a little longer than usual, and each ends with a checkpoint.
"""

import io
import json
import re
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from angd.program import process, start

PAUSE = 0.03  # seconds before each step


class Moment:
    """Waits once, when the moment has come."""

    def __init__(self, mark, moment="ready", file="", count=1, seconds=100):
        self.mark, self.moment, self.file, self.left, self.seconds = Path(mark), moment, file, count, seconds

    def __call__(self, moment, path=""):
        if moment == self.moment and re.search(self.file, str(path)):
            self.left -= 1
            if self.left == 0:
                self.mark.touch()
                time.sleep(self.seconds if moment != "ready" else 0)


def before(owner, name, reached):
    """Call `reached` with the arguments of a function before it does its work."""
    function = getattr(owner, name)

    def wrapped(*arguments, **named):
        reached(*arguments, **named)
        return function(*arguments, **named)

    setattr(owner, name, wrapped)


def watch_files(moment):
    """Of every atomic write, tell when its temporary file is there, half full, whole, and moved into place."""
    mkstemp, move, savez = tempfile.mkstemp, Path.replace, np.savez

    def opened(*arguments, **named):
        handle, name = mkstemp(*arguments, **named)
        moment("opened", name)
        return handle, name

    def moved(path, target):
        move(path, target)
        moment("moved", target)

    def write(handle, path, data):
        handle.write(data[: len(data) // 2])
        handle.flush()
        moment("half", path)
        handle.write(data[len(data) // 2 :])

    def write_text(path, text, encoding):
        with open(path, "wb") as handle:
            write(handle, path, text.encode(encoding))

    def write_arrays(handle, **arrays):
        whole = io.BytesIO()
        savez(whole, **arrays)
        write(handle, handle.name, whole.getvalue())

    patches = ((tempfile, "mkstemp", opened), (Path, "replace", moved), (Path, "write_text", write_text))
    for owner, name, function in (*patches, (np, "savez", write_arrays)):
        setattr(owner, name, function)
    before(Path, "chmod", lambda path, *_: moment("written", path))
    before(Path, "unlink", lambda path, **_: moment("removed", path))


def slow_down(*_):
    """Once JAX is wanted, and not before: the program begins as always."""
    from angd.train import loop, run

    before(loop._Loop, "step", lambda *_: time.sleep(PAUSE))
    before(run.Run, "_train", lambda run, *_: setattr(run, "save_seconds", 0.0))


if __name__ == "__main__":
    moment = Moment(**json.loads(sys.argv.pop(1)))
    watch_files(moment)
    before(process, "begin", slow_down)
    moment("ready")
    sys.exit(start())
