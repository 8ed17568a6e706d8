"""Many `angd run`s, each in a process of its own on one core, into one result file that grows as they end.

Their folders are kept below runs/measured: what was interrupted goes on, and so does what is given more time.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from threading import Lock
from typing import Any

from angd.problems.lookup import find_task
from angd.program.arguments import parse
from angd.program.commands.run import RunOptions
from angd.train.config import BUDGETS, Config
from angd.train.environment import stamp
from angd.train.files import write_atomically
from angd.train.folder import Record, RunFolder

LOOKS = 60
MEASURED = Path("runs") / "measured"
Suites = dict[str, dict[str, str]]  # suite: row: arguments of `angd run`


def find(suites: Suites, row: str) -> str:
    """Arguments of a row."""
    for rows in suites.values():
        if row in rows:
            return rows[row]
    raise SystemExit(f"There is no row called {row!r}: {', '.join(r for rows in suites.values() for r in rows)}.")


def run(arguments: str, row: str, seed: int, core: int) -> dict[str, Any]:
    """One run: its looks, thinned, and how it ended."""
    environment = os.environ | {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false"}
    folder = RunFolder(MEASURED / f"{row}-{seed}")
    angd = [sys.executable, "-m", "angd.program.main", "run", *begun_or_resumed(arguments, seed, folder)]
    command = ["taskset", "-c", str(core), *angd, "--checkpoint-seconds", "300", "--no-cache"]
    subprocess.run(command, stdout=subprocess.DEVNULL, env=environment, check=True)
    seen, summary = folder.records(), folder.read("summary.json") or {}
    names = list(seen[-1].errors)
    kept = seen[:: max(1, len(seen) // LOOKS)]
    kept = kept if kept[-1] is seen[-1] else [*kept, seen[-1]]
    records = [[round(r.cpu_seconds, 1), r.step, r.loss, *(r.errors.get(name) for name in names)] for r in kept]
    found = {
        "row": row,
        "seed": seed,
        "arguments": arguments,
        "columns": ["cpu_seconds", "step", "loss", *names],
        "records": records,
    }
    if "evaluation" in summary:
        found |= {"error": summary["error"], "standard_error": summary["standard_error"]} | summary["evaluation"]
    return found


def begun_or_resumed(arguments: str, seed: int, folder: RunFolder) -> list[str]:
    """Arguments that go on with the run in a folder, if it is the same but for shorter limits, or begin it anew."""
    given = [*arguments.split(), "--seed", str(seed)]
    wanted = complete(parse(["run", *given], {"run": RunOptions}).plan()[1])
    limits = {name: value for name in BUDGETS if (value := getattr(wanted, name)) is not None}
    if folder.exists and not folder.config().differences(wanted) and not beyond(folder, limits):
        flags = [text for name, value in limits.items() for text in (f"--{name.replace('_', '-')}", str(value))]
        return ["--resume", str(folder.path), *flags]
    shutil.rmtree(folder.path, ignore_errors=True)
    return [*given, "--out", str(folder.path)]


def complete(config: Config) -> Config:
    """With all options, as folders have it."""
    return config.completed(find_task(config.task, config.arguments))[0]


def spent(record: Record) -> dict[str, float]:
    """What a run had used at an evaluation, by the names of the limits."""
    return {name: getattr(record, "step" if name == "steps" else name) for name in BUDGETS}


def beyond(folder: RunFolder, limits: dict[str, float]) -> bool:
    """Whether a run has gone further than a limit, by more than its last step."""
    last = folder.records()[-1:]
    return any(spent(record)[name] > 1.01 * limits[name] for record in last for name in limits)


def measure(
    out: Path,
    suites: Suites,
    summary: Callable[[list[dict[str, Any]]], dict[str, Any]],
    arguments: list[str],
) -> None:
    """What the command line names, `[SUITE | ROW]… [--seeds=0,1,2] [--again]`; runs that the file has are kept, if
    their arguments are still the same."""
    seeds = [int(s) for s in next((a[8:] for a in arguments if a.startswith("--seeds=")), "0,1,2").split(",")]
    names = [a for a in arguments if not a.startswith("--")] or list(suites)
    rows = {row: find(suites, row) for name in names for row in suites.get(name, {name: ""})}
    runs = json.loads(out.read_text(encoding="utf-8"))["runs"] if out.exists() else []
    same = [r for r in runs if r.get("arguments", rows.get(r["row"])) == rows.get(r["row"])]
    again = "--again" in arguments
    done = set() if again else {(r["row"], r["seed"]) for r in same}
    todo = [(row, seed) for seed in seeds for row in rows if (row, seed) not in done]
    for row, seed in todo if again else []:
        shutil.rmtree(MEASURED / f"{row}-{seed}", ignore_errors=True)
    free, lock = SimpleQueue(), Lock()
    for core in sorted(os.sched_getaffinity(0)):
        free.put(core)

    def one(job: tuple[str, int]) -> None:
        core = free.get()
        try:
            found = run(rows[job[0]], *job, core)
        finally:
            free.put(core)
        with lock:
            runs[:] = [r for r in runs if (r["row"], r["seed"]) != job] + [found]
            save(out, runs, summary)

    with ThreadPoolExecutor(free.qsize()) as pool:
        list(pool.map(one, todo))


def save(out: Path, runs: list[dict[str, Any]], summary: Callable[[list[dict[str, Any]]], dict[str, Any]]) -> None:
    """In the order of rows and seeds, with the environment and the summary."""
    runs.sort(key=lambda r: (r["row"], r["seed"]))
    report = stamp(f"python tools/measure_{out.stem}.py", sorted({r["seed"] for r in runs}))
    report |= {"values": summary(runs), "runs": runs}
    text = json.dumps(report, indent=1).replace("\n     ", " ").replace("\n    ]", "]")
    write_atomically(out, lambda path: path.write_text(text + "\n", encoding="utf-8"))
