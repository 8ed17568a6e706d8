"""Accelerated against plain natural gradients, and both against SGD and Adam: results/comparison.json.

    python tools/measure_comparison.py [task…] [--metrics=l2,h1,h2] [--most=24] [--steps=300] [--work=DIR]
                                         [--network=paper [--final=60]]

On fixed points, as many for every method, more than parameters; natural gradients with a line search (with constant
steps the best settings of one seed diverged with another, the accelerated ones late). Every method has the same number
of configurations and `angd sweep` halves them by the test loss; the winner runs with three seeds. "iterations" is how
many steps the accelerated method needs to reach, and keep, the loss at which the plain one ends: the training loss, and
the test loss. With `--network=paper` the winners of the small network, from the result file, run on the paper's, for
`--final` steps. What is in DIR is not run again; with `--count` nothing is run, and iterations are counted again.
"""

import json
import statistics
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from angd.problems.task import Task
from angd.program.arguments import parse
from angd.program.commands.sweep import SweepOptions, sweep
from angd.program.process import opened
from angd.recipes.base import Recipe
from angd.recipes.named import named
from angd.train.config import Config
from angd.train.environment import stamp
from angd.train.files import write_atomically
from angd.train.folder import Record
from settled import settled

OUT = Path(__file__).parent.parent / "results" / "comparison.json"
SEEDS = (0, 1, 2)
POINTS = ("--points", "fixed", "--interior", "1500", "--condition", "300")
FIRST = 10  # a step of a first-order method costs about a tenth of a natural gradient's


def tuned(name: str, method: str, most: int, steps: int, work: Path) -> tuple[Config, dict[str, int]]:
    """The winner of a sweep, and what was spent on it."""
    out = work / f"sweep-{name}-{method}"
    size = ["--most", str(most), "--steps", str(steps), "--out", str(out)]
    options = parse(["sweep", name, method, *POINTS, *size], {"sweep": SweepOptions})
    options.check()
    best, ranked, _ = sweep(options)
    seconds = sum(records[-1].cpu_seconds for _, records in ranked if records)
    return replace(best, steps=steps, cpu_seconds=None), {
        "configurations": len(ranked),
        "tuning_cpu_seconds": round(seconds),
    }


def final(config: Config, task: Task, recipe: Recipe, seed: int, work: Path) -> list[Record]:
    """The winner from another start."""
    from angd.train.run import Run
    from angd.train.setup import prepare

    config = replace(config, seed=seed)
    path = work / f"final-{config.task}-{config.recipe}-{config.arguments.get('network', 'small')}-{seed}"
    return list(Run(prepare(task, recipe, seed), config, path).records())


def iterations_to(run: dict[str, list[Any]], quantity: str, goal: float) -> float:
    """The first evaluation from which on a loss stays at or below a goal; infinite where there is none."""
    first = settled(run[quantity], goal)
    return float("inf") if first is None else run["steps"][first]


def speed(plain: list[dict[str, Any]], fast: list[dict[str, Any]], quantity: str) -> dict[str, Any]:
    """Iterations of the accelerated method to the plain one's final loss, seed by seed."""
    goals = [run[quantity][-1] for run in plain]
    needed = [iterations_to(run, quantity, goal) for run, goal in zip(fast, goals, strict=True)]
    shares = [n / run["steps"][-1] for n, run in zip(needed, plain, strict=True)]
    share = statistics.median(shares)
    return {
        "plain": plain[0]["steps"][-1],
        "accelerated": [n if n < float("inf") else None for n in needed],
        "share": share if share < float("inf") else None,
    }


def speeds(found: dict[str, Any], metric: str) -> dict[str, Any]:
    """By training loss and by test loss."""
    plain, fast = (found[f"{kind}-{metric}"]["runs"] for kind in ("ngd", "angd"))
    return {quantity: speed(plain, fast, quantity) for quantity in ("loss", "test_loss")}


def methods(metric: str) -> dict[str, int]:
    """What is compared, with how many steps for each of a natural gradient's; SGD and Adam have no metric."""
    first = {"sgd": FIRST, "adam": FIRST} if metric == "l2" else {}
    return first | {f"ngd-{metric}": 1, f"angd-{metric}": 1}


def compare(name: str, metric: str, most: int, steps: int, work: Path) -> dict[str, Any]:
    """Tuned and run on the small network."""
    found = {}
    for method, times in methods(metric).items():
        best, spent = tuned(name, method, most, times * steps, work)
        found[method] = finals(best, work) | spent
    return found | {"iterations": speeds(found, metric)}


def on_the_paper_s_network(name: str, metric: str, winners: dict[str, Any], steps: int, work: Path) -> dict[str, Any]:
    """The winners of the small network, on the paper's."""
    found = {}
    for method, times in methods(metric).items():
        known = named(method).recipe.options()  # the file may have been written when there were others
        options = {option: value for option, value in winners[method]["options"].items() if option in known}
        config = Config.of(name, method, options, {"network": "paper"}, steps=times * steps)
        found[method] = finals(config, work)
    return found | {"iterations": speeds(found, metric)}


def finals(best: Config, work: Path) -> dict[str, Any]:
    """One configuration from three starts."""
    best, task, recipe = opened(best)
    courses = [final(best, task, recipe, seed, work) for seed in SEEDS]
    found = {
        "options": best.to_dict()["options"],
        "test_loss": statistics.median(records[-1].test_loss or float("inf") for records in courses),
        "error": statistics.median(records[-1].error for records in courses),
        "runs": [columns(records) for records in courses],
    }
    print(best.task, best.recipe, best.changes(), found["test_loss"], flush=True)
    return found


def columns(records: list[Record]) -> dict[str, list[Any]]:
    """Every other evaluation, four digits."""
    thin = records[::2] if (len(records) - 1) % 2 == 0 else [*records[::2], records[-1]]
    return {
        "steps": [r.step for r in thin],
        "cpu_seconds": [round(r.cpu_seconds, 2) for r in thin],
        "loss": [_short(r.loss) for r in thin],
        "test_loss": [_short(r.test_loss) for r in thin],
    }


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")


def known() -> dict[str, Any]:
    """What the result file has."""
    return json.loads(OUT.read_text(encoding="utf-8"))["values"] if OUT.exists() else {}


def save(values: dict[str, Any]) -> None:
    report = stamp("python tools/measure_comparison.py", list(SEEDS)) | {"values": values}
    text = json.dumps(report, indent=1).replace("\n       ", " ")
    write_atomically(OUT, lambda path: path.write_text(text + "\n", encoding="utf-8"))


def main(arguments: list[str]) -> None:
    if "--count" in arguments:
        values = known()
        for metrics in values.values():
            for metric, found in metrics.items():
                found["iterations"] = speeds(found, metric.removesuffix("-paper"))
        save(values)
        return
    given = dict(a[2:].split("=", 1) for a in arguments if a.startswith("--"))
    work = Path(given.get("work", "runs/comparison"))
    names = [a for a in arguments if not a.startswith("--")] or ["burgers", "burgers-sin", "burgers-cos", "euler"]
    for metric in given.get("metrics", "l2,h1,h2").split(","):
        for name in names:
            mine = known().setdefault(name.replace("-", "_"), {})
            if given.get("network") == "paper":
                steps = int(given.get("final", 60))
                found = {f"{metric}-paper": on_the_paper_s_network(name, metric, mine[metric], steps, work)}
            else:
                most, steps = int(given.get("most", 24)), int(given.get("steps", 300))
                found = {metric: compare(name, metric, most, steps, work)}
            values = known()
            values.setdefault(name.replace("-", "_"), {}).update(found)
            save(values)


if __name__ == "__main__":
    main(sys.argv[1:])
