"""Does acceleration pay on beryllium? ANGD against its plain forms: results/beryllium.json.

    python tools/measure_beryllium.py [fisher-rao | many-walkers | bare | damped | wasserstein | wasserstein-kfac |
        signs]… [--seeds=5] [--steps=N] [--method=M]

All methods start from the same pretrained network and the same walkers, with the same clipping, norm constraint among
what is tuned, and 256 walkers for 600 steps ("many-walkers": 1024 for 120; "bare", "damped", both of "wasserstein": 300
steps). Sixteen configurations of each method run a third of the steps from one start; the best three run all steps from
two; the best of these runs from every seed, none of which was used for tuning. All are judged by the energy on *fresh*
walkers, in thousandths of a Hartree above the reference. "iterations" is where the accelerated method's mean over seeds
first is, and stays, at or below the plain one's last. "fisher-rao" is with projected momentum for both, "bare" without
it for either, "damped" SPRING, its damping tuned as well, against ANGD without; "signs" compares β = 0.15 with the
signs as corrected and as printed. "wasserstein-kfac" is the paper's pair, both with Kronecker factors. `--method`
measures one of a pair and keeps the others that the file has, if they were measured alike. Runs that have ended are
kept in results/beryllium.jsonl, so that a study which was interrupted goes on.
"""

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from functools import lru_cache
from math import inf, isfinite
from pathlib import Path
from statistics import fmean, stdev
from time import process_time
from typing import Any

import jax

from angd import FisherRao
from angd.problems import vmc
from angd.problems.library import beryllium
from angd.recipes.base import Phase
from angd.recipes.named import DENSITIES
from angd.recipes.vmc import Vmc, molecule_of
from angd.train.environment import stamp
from angd.train.files import write_atomically
from angd.train.loop import Budget, TrainState, cast, train
from angd.train.sweep import configurations
from settled import settled

OUT = Path(__file__).parent.parent / "results" / "beryllium.json"
KEPT = OUT.with_suffix(".jsonl")
FEW, MANY, MEASUREMENTS = 256, 1024, 150
EARLY, LATE, TUNING = 3, 3, (100, 101)  # part of the steps, configurations that go on, and the seeds of tuning
# Where they are not 600.
STEPS = {"many-walkers": 120, "bare": 300, "damped": 300, "wasserstein": 300, "wasserstein-kfac": 300}
LOOKS = (0.15, 0.25, 0.35, 0.5, 0.75, 1.0)  # shares of the steps
# Sixteen of each, so that all can be tried. A constant force moves ANGD by rate/(1 − μ) in a step, by as much as plain
# methods. β = μh/(1 − μ) for μ = 0.8, where momentum is a running mean of forces that are all brought up to date.
NORMS = {"norm": (0.01, 0.05), "walkers": (FEW,)}
PLAIN = {"rate": (0.05, 0.1), **NORMS}
FAST = {"rate": (0.01,), "mu": (0.8, 0.9), **NORMS}
LARGER = {"norm": (0.05, 0.2), "walkers": (MANY,)}
HESSIAN = {"beta": (0.0, 0.4)}
# Second grids around the winners, which were at edges.
BOLD = {"damping": (1e-3, 4e-3), "norm": (0.05, 0.2), "walkers": (FEW,)}
# Directions of Wasserstein-2 are stiff, and larger steps turn back and forth. With the larger rates every step is as
# long as the norm constraint allows.
STIFF = {"norm": (0.005, 0.02), "damping": (4e-3, 1.6e-2, 6.4e-2, 0.25), "walkers": (FEW,)}
KFAC = {"solver": ("kfac",)}
MILD = {"rate": (0.01,), "mu": (0.8, 0.9)}
PAIRS = {
    "fisher-rao": {
        "spring": PLAIN | {"eta": (0.8, 0.9, 0.95, 0.99)},
        "angd-fr": FAST | HESSIAN | {"eta": (0.8, 0.9)},
    },
    "many-walkers": {
        "spring": {"rate": (0.1, 0.2), "eta": (0.5, 0.8, 0.9, 0.95), **LARGER},
        "angd-fr": {"rate": (0.03,), "mu": (0.8, 0.9), "eta": (0.8, 0.95), **LARGER} | HESSIAN,
    },
    "bare": {
        "minsr": PLAIN | {"damping": (1e-3, 4e-3, 1.6e-2, 6.4e-2)},
        "angd-fr": FAST | HESSIAN | {"eta": (0,), "damping": (4e-3, 1.6e-2)},
    },
    "damped": {
        "spring": BOLD | {"rate": (0.1,), "eta": (0.5, 0.8, 0.9, 0.95)},
        "angd-fr": BOLD | {"rate": (0.01,), "eta": (0,), "mu": (0.9, 0.95), "beta": (0.4, 0.9)},
    },
    "wasserstein": {"ngd-w2": STIFF | {"rate": (0.002, 0.05)}, "angd-w2p": STIFF | MILD, "angd-w2": STIFF | MILD},
    "wasserstein-kfac": {"ngd-w2": KFAC | STIFF | {"rate": (0.002, 0.05)}, "angd-w2": KFAC | STIFF | MILD},
}


class Printed(FisherRao):
    """With the signs of β as printed: negative Hessian damping."""

    def _carried(self, context: Any, problem: Any, e: Any, old: Any) -> Any:
        return super()._carried(context, problem, e, old) + 2 * context.beta_prev * (e - old)


def options(method: str, changes: dict[str, Any]) -> Vmc:
    """A method's options for this study."""
    preset = DENSITIES[method].recipe
    found = preset.changed({"walkers": FEW, "decay": 1e-3, **changes}, method)
    assert isinstance(found, Vmc)
    return found


@lru_cache
def start(seed: int) -> TrainState:
    """The pretrained network of a seed."""
    task, chosen = beryllium(), options("spring", {})
    first, phase = TrainState(task.start(jax.random.key(seed))), chosen.phases(task)[0]
    every = train(chosen.problem(task), [phase], first, jax.random.key(100 + seed), Budget(steps=phase.steps))
    *_, (last, _) = every
    return TrainState(last.params)


def energy(params: Any, chosen: Vmc, seed: int, measurements: int) -> tuple[float, float]:
    """On fresh walkers, above the reference, with the standard error."""
    task = beryllium()
    chain = replace(chosen, burn_in=300, walkers=512).markov_chain(task)
    try:
        found = vmc.evaluate(
            chosen.problem(task), cast(params, True), chain, jax.random.key(10_000 + seed), measurements
        )
    except vmc.RefusedWave:
        return inf, inf
    assert task.energy is not None
    return 1e3 * (found.energy - task.energy), 1e3 * found.error


def course(chosen: Vmc, seed: int, steps: int, metric: Any = None) -> Iterator[tuple[int, float, Any]]:
    """Step, CPU seconds since the second (all is compiled then), and parameters."""
    task = beryllium()
    optimiser = chosen.optimiser(molecule_of(task))
    if metric is not None:
        optimiser = replace(optimiser, metric=metric)
    phase, began = Phase(optimiser, chosen.markov_chain(task), single=True), process_time()
    for now, _ in train(chosen.problem(task), [phase], start(seed), jax.random.key(seed), Budget(steps=steps)):
        began = process_time() if now.k <= 2 else began
        yield now.k, process_time() - began, now.params


def at(chosen: Vmc, seed: int, stops: list[int], measurements: int, metric: Any = None) -> list[dict[str, float]]:
    """Energies at some steps; from the runs that are kept, if it is there."""
    name = json.dumps([asdict(chosen), seed, stops, measurements, type(metric).__name__], sort_keys=True)
    lines = KEPT.read_text(encoding="utf-8").splitlines() if KEPT.exists() else []
    kept = {run["name"]: run["found"] for run in map(json.loads, lines)}
    if name in kept:
        return kept[name]
    found = looked(chosen, seed, stops, measurements, metric)
    with KEPT.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"name": name, "found": found}) + "\n")
    return found


def looked(chosen: Vmc, seed: int, stops: list[int], measurements: int, metric: Any) -> list[dict[str, float]]:
    """Energies at some steps; the clock does not run while they are measured."""
    found, paused = [], 0.0
    for k, seconds, params in course(chosen, seed, max(stops), metric):
        if k in stops:
            before = process_time()
            error, uncertainty = energy(params, chosen, seed, measurements)
            row = {"step": k, "cpu_seconds": seconds - paused, "error": error, "standard_error": uncertainty}
            found.append({name: float(f"{value:.4g}") for name, value in row.items()})
            paused += process_time() - before
    return found


def tuned(method: str, grid: dict[str, tuple[Any, ...]], steps: int) -> tuple[dict[str, Any], list[Any]]:
    """The best configuration, and all that were tried with their energies and standard errors."""
    tried: list[Any] = []

    def ranked(candidates: list[dict[str, Any]], stop: int, seeds: tuple[int, ...]) -> list[dict[str, Any]]:
        found = []
        for c in candidates:
            looks = [at(options(method, c), seed, [stop], MEASUREMENTS)[-1] for seed in seeds]
            error = fmean(look["error"] for look in looks)
            own = sum(look["standard_error"] ** 2 for look in looks) ** 0.5 / len(looks)
            tried.append({"at": stop, "error": round(error, 2), "standard_error": round(own, 2), **c})
            print(method, tried[-1], flush=True)
            found.append((error if isfinite(error) else inf, c))
        return [c for _, c in sorted(found, key=lambda pair: pair[0])]

    early = ranked(configurations(grid), steps // EARLY, TUNING[:1])
    late = ranked(early[:LATE], steps, TUNING)
    return late[0], sorted(tried, key=lambda row: (row["at"], row["error"]))


def protocol(seeds: int, steps: int) -> dict[str, Any]:
    """How a method is tuned and measured; only those measured alike are compared."""
    tuning = {"early": EARLY, "late": LATE, "tuning_seeds": list(TUNING)}
    return tuning | {"seeds": seeds, "steps": steps, "measurements": MEASUREMENTS}


def measured(method: str, grid: dict[str, tuple[Any, ...]], seeds: int, steps: int) -> dict[str, Any]:
    """A method, tuned and run from every seed."""
    stops = [round(steps * share) for share in LOOKS]
    best, ranking = tuned(method, grid, steps)
    runs = [at(options(method, best), seed, stops, MEASUREMENTS) for seed in range(seeds)]
    return {
        "protocol": protocol(seeds, steps),
        "best": best,
        "steps": stops,
        "millihartree": [round(fmean(run[i]["error"] for run in runs), 2) for i in range(len(stops))],
        "standard_error": [round(uncertainty([run[i]["error"] for run in runs]), 2) for i in range(len(stops))],
        "cpu_seconds": [round(fmean(run[i]["cpu_seconds"] for run in runs)) for i in range(len(stops))],
        "ranking": ranking,
        "runs": runs,
    }


def compare(pair: str, seeds: int, steps: int, known: dict[str, Any], only: str | None) -> dict[str, Any]:
    """All methods of a pair, or one beside what is known of the others, if they were measured alike."""
    same = [method for method in PAIRS[pair] if known.get(method, {}).get("protocol") == protocol(seeds, steps)]
    found = {method: known[method] for method in same}
    for method, grid in PAIRS[pair].items():
        if only in (None, method):
            found[method] = measured(method, grid, seeds, steps)
            print(method, *(found[method][name] for name in ("best", "millihartree", "standard_error")), flush=True)
    found = {method: found[method] for method in PAIRS[pair] if method in found}
    return found | judged(pair, found)


def judged(pair: str, found: dict[str, Any]) -> dict[str, Any]:
    """Accelerated methods against the plain one: when they reach its last energy, and how far apart they are, seed by
    seed from the same start."""
    plain, *fast = [method for method in PAIRS[pair] if method in found]
    if plain != next(iter(PAIRS[pair])):
        return {}
    goal = found[plain]["millihartree"][-1]
    return {
        "iterations": {method: reached(found[method], goal) for method in fast},
        "difference": {method: difference(found[method]["runs"], found[plain]["runs"]) for method in fast},
    }


def difference(fast: list[Any], plain: list[Any]) -> dict[str, list[float]]:
    """Mean over seeds of how much higher the first is at each look, with the standard error of that mean."""
    pairs = zip(fast, plain, strict=True)
    apart = [[a["error"] - b["error"] for a, b in zip(one, other, strict=True)] for one, other in pairs]
    looks = [list(values) for values in zip(*apart, strict=True)]
    return {
        "millihartree": [round(fmean(values), 2) for values in looks],
        "standard_error": [round(uncertainty(values), 2) for values in looks],
    }


def uncertainty(values: list[float]) -> float:
    """Of a mean."""
    if not all(map(isfinite, values)):
        return inf
    return stdev(values) / len(values) ** 0.5 if len(values) > 1 else float("nan")


def reached(found: dict[str, Any], goal: float) -> dict[str, Any]:
    """The first stop from which on the mean energy stays at or below a goal, as steps, share and seconds."""
    i = settled(found["millihartree"], goal)
    if i is None:
        return {"steps": None, "share": None, "cpu_seconds": None}
    return {
        "steps": found["steps"][i],
        "share": found["steps"][i] / found["steps"][-1],
        "cpu_seconds": found["cpu_seconds"][i],
    }


def signs(seeds: int, steps: int) -> dict[str, Any]:
    """β = 0.15 in the Fisher–Rao metric, as corrected and as printed."""
    chosen, stops = options("angd-fr", {"beta": 0.15}), [steps // 4, steps // 2, steps]
    found: dict[str, Any] = {}
    for name, kind in (("corrected", FisherRao), ("printed", Printed)):
        runs = [at(chosen, seed, stops, MEASUREMENTS, kind(limit=chosen.limit)) for seed in range(seeds)]
        found[name] = {"steps": stops, "millihartree": [[r["error"] for r in run] for run in runs]}
        print(name, found[name], flush=True)
    return found


def recorded() -> dict[str, Any]:
    """What the file has."""
    return json.loads(OUT.read_text(encoding="utf-8"))["values"] if OUT.exists() else {}


def main(arguments: list[str]) -> None:
    jax.config.update("jax_enable_x64", True)
    given = dict(a[2:].split("=", 1) for a in arguments if a.startswith("--"))
    seeds = int(given.get("seeds", 5))
    for part in [a for a in arguments if not a.startswith("--")] or [*PAIRS, "signs"]:
        steps = int(given.get("steps", STEPS.get(part, 600)))
        known, only = recorded().get(part, {}), given.get("method")
        found = signs(min(seeds, 3), steps) if part == "signs" else compare(part, seeds, steps, known, only)
        values = recorded()  # again: hours may have passed
        report = stamp("python tools/measure_beryllium.py", list(range(seeds))) | {"values": values | {part: found}}
        text = json.dumps(report, indent=1)
        write_atomically(OUT, lambda path, text=text: path.write_text(text + "\n", encoding="utf-8"))


if __name__ == "__main__":
    main(sys.argv[1:])
