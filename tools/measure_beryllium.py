"""Does acceleration pay on beryllium? ANGD against its plain forms in two metrics: results/beryllium.json.

    python tools/measure_beryllium.py [fisher-rao | wasserstein | signs]… [--seeds=5] [--steps=600]

All methods start from the same pretrained network and the same walkers, with the same clipping, norm constraint among
what is tuned, and 256 walkers. Of sixteen configurations the better third, by the energy on *fresh* walkers after a
quarter of the steps, goes on; the best of each method runs from every seed. Energies are measured on fresh walkers on
the way, in thousandths of a Hartree above the reference. "iterations" is where the accelerated method's mean over seeds
first is, and stays, at or below the plain one's last. "signs" compares β = 0.15 with the signs as corrected and as
printed.
"""

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from math import isfinite
from pathlib import Path
from statistics import fmean, stdev
from time import process_time
from typing import Any

import jax

from angd import FisherRao
from angd.experiments import vmc as experiments
from angd.experiments.catalogue import DENSITIES
from angd.experiments.environment import stamp
from angd.experiments.files import write_atomically
from angd.experiments.options import Vmc
from angd.experiments.runner import Budget, Phase, Stand, cast, train
from angd.experiments.sweep import configurations
from angd.problems import vmc
from settled import settled

OUT = Path(__file__).parent.parent / "results" / "beryllium.json"
WALKERS, MEASUREMENTS, ROUGH = 256, 150, 40
NORMS = (0.01, 0.05, 0.25)
PLAIN = {"rate": (0.01, 0.02, 0.05, 0.1, 0.2), "norm": NORMS}
FAST = {"rate": (0.005, 0.01, 0.02), "mu": (0.9, 0.8, 0.5), "norm": NORMS}
PAIRS = {
    "fisher-rao": {"spring": PLAIN, "angd-fr": FAST | {"beta": (0.0, 0.05)}},
    "wasserstein": {"ngd-w2": PLAIN, "angd-w2": FAST, "angd-w2p": FAST},
}
MOST = 16


class Printed(FisherRao):
    """With the signs of β as printed: negative Hessian damping."""

    def _momentum(self, setting: Any, e: Any, old: Any) -> Any:
        return super()._momentum(setting, e, old) + 2 * setting.beta_prev * (e - old)


def options(method: str, changes: dict[str, Any]) -> Vmc:
    """A method's options for this study."""
    preset = DENSITIES[method].options
    found = preset.changed(method, {"walkers": WALKERS, "decay": 1e-3, **changes})
    assert isinstance(found, Vmc)
    return found


@lru_cache
def start(seed: int) -> Stand:
    """The pretrained network of a seed."""
    made = experiments.system("Be", "small")
    chosen = options("spring", {})
    first, phase = Stand(made.network.init(jax.random.key(seed))), experiments.phases(chosen, made)[0]
    every = train(made.problem(chosen), [phase], first, jax.random.key(100 + seed), Budget(steps=phase.steps))
    *_, (last, _) = every
    return Stand(last.params)


def energy(params: Any, chosen: Vmc, seed: int, measurements: int) -> tuple[float, float]:
    """On fresh walkers, above the reference, with the standard error."""
    made = experiments.system("Be", "small")
    chain = made.chain(replace(chosen, burn_in=1000, walkers=512))
    found = vmc.evaluate(made.problem(chosen), cast(params, True), chain, jax.random.key(10_000 + seed), measurements)
    assert made.molecule.exact is not None
    return 1e3 * (found.energy - made.molecule.exact), 1e3 * found.error


def course(chosen: Vmc, seed: int, steps: int, metric: Any = None) -> Iterator[tuple[int, float, Any]]:
    """Step, CPU seconds since the first, and parameters."""
    made = experiments.system("Be", "small")
    optimiser = experiments.optimiser(chosen)
    if metric is not None:
        optimiser = replace(optimiser, metric=metric)
    phase, began = Phase(optimiser, made.chain(chosen), single=True), None
    for stand, _ in train(made.problem(chosen), [phase], start(seed), jax.random.key(seed), Budget(steps=steps)):
        began = process_time() if began is None else began
        yield stand.k, process_time() - began, stand.params


def at(chosen: Vmc, seed: int, stops: list[int], measurements: int, metric: Any = None) -> list[dict[str, float]]:
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
    """The best configuration, from some that spread over the grid, and all with their energies."""

    def ranked(tried: list[dict[str, Any]], stop: int) -> list[tuple[float, dict[str, Any]]]:
        found = [(at(options(method, c), 0, [stop], ROUGH)[-1]["error"], c) for c in tried]
        return sorted(found, key=lambda pair: pair[0] if isfinite(pair[0]) else float("inf"))

    early = ranked(configurations(grid, MOST), steps // 4)
    late = ranked([c for _, c in early[: MOST // 3]], steps)
    return late[0][1], [{"error": round(e, 2), **c} for e, c in early] + [{"late": round(e, 2), **c} for e, c in late]


def compare(metric: str, seeds: int, steps: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    stops = [round(steps * share) for share in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)]
    for method, grid in PAIRS[metric].items():
        before = process_time()
        best, ranking = tuned(method, grid, steps)
        tuning = process_time() - before
        runs = [at(options(method, best), seed, stops, MEASUREMENTS) for seed in range(seeds)]
        means = [fmean(run[i]["error"] for run in runs) for i in range(len(stops))]
        spread = [uncertainty([run[i]["error"] for run in runs]) for i in range(len(stops))]
        found[method] = {
            "best": best,
            "tuning_cpu_seconds": round(tuning),
            "steps": stops,
            "millihartree": [round(value, 2) for value in means],
            "standard_error": [round(value, 2) for value in spread],
            "cpu_seconds": [round(fmean(run[i]["cpu_seconds"] for run in runs)) for i in range(len(stops))],
            "ranking": ranking,
            "runs": runs,
        }
        print(method, best, found[method]["millihartree"], found[method]["standard_error"], flush=True)
    plain, *fast = found
    goal = found[plain]["millihartree"][-1]
    return found | {"iterations": {method: reached(found[method], goal) for method in fast}}


def uncertainty(values: list[float]) -> float:
    """Of a mean."""
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


def main(arguments: list[str]) -> None:
    jax.config.update("jax_enable_x64", True)
    given = dict(a[2:].split("=", 1) for a in arguments if a.startswith("--"))
    seeds, steps = int(given.get("seeds", 5)), int(given.get("steps", 600))
    for part in [a for a in arguments if not a.startswith("--")] or [*PAIRS, "signs"]:
        found = signs(min(seeds, 3), steps) if part == "signs" else compare(part, seeds, steps)
        values = json.loads(OUT.read_text(encoding="utf-8"))["values"] if OUT.exists() else {}
        report = stamp("python tools/measure_beryllium.py", list(range(seeds))) | {"values": values | {part: found}}
        text = json.dumps(report, indent=1)
        write_atomically(OUT, lambda path, text=text: path.write_text(text + "\n", encoding="utf-8"))


if __name__ == "__main__":
    main(sys.argv[1:])
