"""Do the tests look at every formula? One small fault at a time, in the code that docs/map.md names.

    python tools/mutants.py [--most 64] [--seed 0] [--workers 2] [--only TEXT] [--afresh]

A mutant is a sign, an operator, a comparison or a number changed in a copy of the source. It is killed when a test
fails: first the one that the map names beside the formula, then its whole file, then the quick tests of its room and
of the theory. Survivors are listed, and what is left of them after EQUIVALENT is the exit code.

A run that was stopped goes on where it stood, as long as neither source nor tests have changed: what each mutant met is
in runs/mutants.jsonl. `--afresh` forgets it.
"""

import argparse
import ast
import copy
import hashlib
import importlib
import inspect
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import cache
from itertools import repeat
from pathlib import Path
from typing import Any

from angd.train.environment import stamp

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "angd"
RESULT = ROOT / "results" / "mutants.json"
JOURNAL = ROOT / "runs" / "mutants.jsonl"
ROW = re.compile(r"^\|(.+)\|([^|]+)\|([^|]+)\|\s*$", re.MULTILINE)
NAMED_TEST = re.compile(r"tests/[\w/]+\.py::\w+")
SECONDS = 1800  # after so long a test hangs, and the mutant is killed

SWAPS: dict[type, type] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Lt: ast.GtE,
    ast.LtE: ast.Gt,
    ast.Gt: ast.LtE,
    ast.GtE: ast.Lt,
}
NAMES = {"minimum": "maximum", "maximum": "minimum", "all": "any", "any": "all"}
# Faults without an effect that anybody could see: file, the line's text, and why.
EQUIVALENT: dict[tuple[str, str], str] = {
    ("flow/coefficients.py", 'check_at_start(ConstantSchedule(rate), "rate", 1.0, positive=True)'): (
        "a constant is the same at any time"
    ),
}


@dataclass(frozen=True)
class Mutant:
    """One fault: where it is, what stood there, what stands there now, and the test that the map names."""

    file: str
    line: int
    before: str
    after: str
    test: str
    start: int
    stop: int

    @property
    def name(self) -> str:
        """What is changed, and where."""
        return f"{self.file}:{self.line}: {self.before} → {self.after}"

    def text(self) -> str:
        """The file with the fault."""
        whole = (SOURCE / self.file).read_bytes()
        return (whole[: self.start] + self.after.encode() + whole[self.stop :]).decode()


def formulas() -> Iterator[tuple[str, str]]:
    """Names of code and the test beside them, row by row of the map."""
    for _, names, tests in ROW.findall((ROOT / "docs" / "map.md").read_text(encoding="utf-8")):
        found = NAMED_TEST.search(tests)
        if found:
            for name in re.findall(r"`([\w.]+)", names):
                yield name, found[0]


def resolve(name: str) -> Any:
    """The object that the map means: public, or by its path below `angd`."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(["angd", *parts[:cut]]))
        except ImportError:
            continue
        for part in parts[cut:]:
            found = getattr(found, part)
        return found
    found = importlib.import_module("angd")
    for part in parts:
        found = getattr(found, part)
    return found


@cache
def parsed(path: Path) -> tuple[bytes, ast.Module, list[int]]:
    """A file's bytes, its tree, and where its lines begin."""
    text = path.read_bytes()
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    return text, ast.parse(text), starts


def bodies(name: str) -> list[tuple[Path, int, int]]:
    """Files and lines of the functions of an object; of a class, its own methods."""
    thing = resolve(name)
    thing = thing.fget if isinstance(thing, property) else thing
    members: list[Any] = [thing]
    if inspect.isclass(thing):
        members = [m.fget if isinstance(m, property) else m for key, m in vars(thing).items() if key[:2] != "__"]
    found = []
    for member in members:
        member = inspect.unwrap(getattr(member, "__func__", getattr(member, "method", member)))
        if not inspect.isfunction(member) or not member.__module__.startswith("angd."):
            continue
        lines, first = inspect.getsourcelines(member)
        found.append((Path(inspect.getsourcefile(member) or ""), first, first + len(lines) - 1))
    return found


def mutations(path: Path, first: int, last: int, test: str) -> list[Mutant]:
    """All small faults in these lines."""
    text, tree, starts = parsed(path)
    found = []

    def place(node: Any) -> tuple[int, int]:
        return starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset

    for node in formula_nodes(tree):
        if not first <= node.lineno <= last:
            continue
        for changed in changes(node):
            start, stop = place(node)
            before, after = text[start:stop].decode(), f"({ast.unparse(changed)})"
            found.append(Mutant(str(path.relative_to(SOURCE)), node.lineno, before, after, test, start, stop))
    return found


def formula_nodes(node: ast.AST) -> Iterator[Any]:
    """Expressions that compute; messages, shapes, annotations, defaults and decorators do not."""
    skipped = (ast.Raise, ast.JoinedStr, ast.Assert, ast.Subscript)
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "defaults", "kw_defaults"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or isinstance(child, skipped):
                continue
            if isinstance(child, ast.keyword) and child.arg in ("axis", "dtype", "shape", "keepdims"):
                continue
            if isinstance(child, (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Constant, ast.Call)):
                yield child
            yield from formula_nodes(child)


def changes(node: Any) -> Iterator[ast.AST]:
    """The faults that one expression may have."""
    new = copy.deepcopy(node)
    if isinstance(node, ast.BinOp) and type(node.op) in SWAPS:
        new.op = SWAPS[type(node.op)]()
        yield new
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield new.operand
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS:
        new.ops[0] = SWAPS[type(node.ops[0])]()
        yield new
    elif isinstance(node, ast.Constant) and isinstance(node.value, float) and node.value != 0:
        new.value = node.value * 1.25
        yield new
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in NAMES:
        new.func.attr = NAMES[node.func.attr]
        yield new


def sample(most: int, seed: int) -> list[Mutant]:
    """At most so many, as many of each formula as of every other."""
    generator, piles = random.Random(seed), []
    for name, test in formulas():
        pile = [m for body in bodies(name) for m in mutations(*body, test)]
        generator.shuffle(pile)
        if pile:
            piles.append(pile)
    chosen: dict[tuple[str, int, int, str], Mutant] = {}
    while len(chosen) < most and any(piles):
        for pile in piles:
            if pile and len(chosen) < most:
                mutant = pile.pop()
                chosen.setdefault((mutant.file, mutant.start, mutant.stop, mutant.after), mutant)
    return list(chosen.values())


def killer(mutant: Mutant, cache_folder: str) -> str | None:
    """What killed it: a test's name, its file, or a room; None if it lives.

    Mutants share what XLA has compiled: all but the faulty function is the same.
    """
    with tempfile.TemporaryDirectory() as place:
        copied = Path(place) / "src" / "angd"
        shutil.copytree(SOURCE, copied, ignore=shutil.ignore_patterns("__pycache__"))
        (copied / mutant.file).write_text(mutant.text(), encoding="utf-8")
        environment = os.environ | {
            "PYTHONPATH": str(copied.parent),
            "PYTHONDONTWRITEBYTECODE": "1",
            "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
            "JAX_COMPILATION_CACHE_DIR": cache_folder,
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.1",
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        }
        room = f"tests/{Path(mutant.file).parts[0]}"
        for tests in ([mutant.test], [mutant.test.partition("::")[0]], [room, "tests/theory"]):
            if not passes(tests, environment):
                return " ".join(tests)
    return None


def passes(tests: list[str], environment: dict[str, str]) -> bool:
    """Do these tests pass? Those that hang do not."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", "not slow", *tests]
    try:
        return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, timeout=SECONDS).returncode == 0
    except subprocess.TimeoutExpired:
        return False


class Journal:
    """What the mutants of this very source and these tests met so far."""

    def __init__(self, afresh: bool):
        files = sorted(path for folder in (SOURCE, ROOT / "tests") for path in folder.rglob("*.py"))
        self.code = hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()
        lines = JOURNAL.read_text(encoding="utf-8").splitlines() if JOURNAL.exists() and not afresh else []
        entries = [entry for entry in map(json.loads, lines) if entry["code"] == self.code]
        self.known: dict[str, tuple[str | None, float]] = {e["mutant"]: (e["by"], e["seconds"]) for e in entries}

    def killer(self, mutant: Mutant, cache_folder: str) -> tuple[str | None, float]:
        """What killed it, now or before, and how long that took."""
        key = f"{mutant.name} @{mutant.start}"
        if key not in self.known:
            begun = time.monotonic()
            self.known[key] = killer(mutant, cache_folder), time.monotonic() - begun
            by, seconds = self.known[key]
            JOURNAL.parent.mkdir(exist_ok=True)
            with JOURNAL.open("a", encoding="utf-8") as file:
                line = {"code": self.code, "mutant": key, "by": by, "seconds": round(seconds, 1)}
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
        return self.known[key]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=64)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", default="", help="only mutants whose file and text contain this")
    parser.add_argument("--list", action="store_true", help="show the mutants, and run nothing")
    parser.add_argument("--afresh", action="store_true", help="run also those whose end is known")
    options = parser.parse_args()
    chosen = [m for m in sample(options.most, options.seed) if options.only in f"{m.file} {m.before} {m.after}"]
    if options.list:
        print("\n".join(mutant.name for mutant in chosen))
        return 0
    journal, survivors, killed, taken = Journal(options.afresh), [], 0, 0.0
    with ThreadPoolExecutor(options.workers) as pool, tempfile.TemporaryDirectory() as compiled:
        for mutant, (by, seconds) in zip(chosen, pool.map(journal.killer, chosen, repeat(compiled)), strict=True):
            taken += seconds / options.workers
            line = (SOURCE / mutant.file).read_text(encoding="utf-8").splitlines()[mutant.line - 1].strip()
            why = EQUIVALENT.get((mutant.file, line))
            killed += by is not None
            if by is None and why is None:
                survivors.append(asdict(mutant))
            said = f"killed by {by}" if by else f"no fault: {why}" if why else "SURVIVES"
            print(f"{mutant.name}: {said}", flush=True)
    print(f"{len(chosen)} mutants, {killed} killed, {len(survivors)} survive, {taken / 60:.0f} minutes")
    if not options.only:
        values = {"mutants": len(chosen), "killed": killed, "minutes": round(taken / 60), "survivors": survivors}
        found = stamp(f"python tools/mutants.py --most {options.most}", options.seed) | {"values": values}
        RESULT.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return bool(survivors)


if __name__ == "__main__":
    sys.exit(main())
