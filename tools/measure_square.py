"""Does momentum pay where states cannot be counted? Markov chains on a square of 6 × 6, into results/square.json.

    python tools/measure_square.py [--starts 3] [--steps 200] [heisenberg j1j2]

The Heisenberg square and the frustrated one (J₂ = J₁/2, complex amplitudes), with the translation-invariant RBMs of
tools/measure_lattice.py and a chain of 1,024 walkers. Settings are those tuned there on 4 × 4 with 4,096 samples; the
rate is tuned once more here, on a start of its own, among a half, once and twice that one. Energies of single steps are
noisy: goals count iterations until the mean of twenty steps stays below, and the last error is that of fresh walkers.
References per site are those of exact diagonalisation, −0.678872 and −0.503810 (Schulz, Ziman and Poilblanc 1996).
"""

import argparse
import json
import time
from pathlib import Path
from statistics import median
from typing import Any

import equinox as eqx
import jax
import numpy as np

from angd.problems.energies import evaluate
from angd.problems.lattice import Heisenberg, LatticeState, chain_of, square
from angd.train.environment import stamp
from angd.train.files import write_atomically
from measure_lattice import NETWORKS, Setting, optimiser
from settled import settled

OUT = Path(__file__).parent.parent / "results" / "square.json"
LOG = OUT.with_suffix(".jsonl")
TUNED = Path(__file__).parent.parent / "results" / "lattice.json"
SIDE, WALKERS, WINDOW = 6, 1024, 20
GOALS = (3e-2, 1e-2, 3e-3)
FACTORS = (1.0, 0.5, 2.0)
METHODS = ("ngd", "spring", "angd", "angd_projected")
SYSTEMS: dict[str, tuple[float, str, float]] = {  # J₂, network, energy per site
    "heisenberg": (0.0, "rbm", -0.678872),
    "j1j2": (0.5, "complex", -0.503810),
}


def problem_of(system: str) -> LatticeState:
    """The Hamiltonian with its network."""
    j2, network, _ = SYSTEMS[system]
    lattice = square(SIDE)
    return LatticeState(NETWORKS[network](lattice), Heisenberg(lattice, j2))


def setting_of(system: str, method: str, factor: float) -> dict[str, float]:
    """What was tuned on 4 × 4, with another rate."""
    known = json.loads(TUNED.read_text(encoding="utf-8"))["values"][f"{system}-4x4-{SYSTEMS[system][1]}"]
    setting = known["sampled"]["n4096"][method]["setting"]
    return setting | {"rate": setting["rate"] * factor}


def course(system: str, method: str, setting: dict[str, float], seed: int, steps: int) -> dict[str, Any]:
    """Relative energy errors of one run, step by step, and that of fresh walkers at its end."""
    problem, begin = problem_of(system), time.process_time()
    numbers = jax.tree.map(lambda leaf: leaf[0], Setting.of([setting]))
    opt, chain = optimiser(method, numbers), chain_of(problem.hamiltonian, WALKERS, moves=1)
    start, key = jax.random.split(jax.random.key(seed))
    params = problem.init(start)
    samples = eqx.filter_jit(chain)(key, problem, params)
    state = opt.init(problem, params, samples)
    move, advance = eqx.filter_jit(chain.move), eqx.filter_jit(opt.step)
    energies: list[float] = []
    for k in range(steps):
        samples = move(jax.random.fold_in(key, k), problem, params, samples)
        params, samples, state, info = advance(problem, params, samples, state)
        energies.append(float(info.loss))
        if not np.isfinite(energies[-1]):
            break
    ground = SYSTEMS[system][2] * SIDE**2
    fresh = evaluate(problem, params, chain, jax.random.key(seed + 10**6), 20)
    return {
        "errors": [round((e - ground) / abs(ground), 6) for e in energies],
        "last": (fresh.energy - ground) / abs(ground),
        "bar": fresh.error / abs(ground),
        "cpu_seconds": round(time.process_time() - begin, 1),
    }


def smooth(errors: list[float]) -> list[float]:
    """Means of the last WINDOW steps."""
    found = np.convolve(np.where(np.isfinite(errors), errors, np.inf), np.ones(WINDOW) / WINDOW, "valid")
    return [np.inf] * (WINDOW - 1) + found.tolist()


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Medians over the starts of each method."""
    values: dict[str, Any] = {}
    for row in rows:
        counts = {f"{g:.0e}": [settled(smooth(run["errors"]), g) for run in row["runs"]] for g in GOALS}
        middle = {g: median(np.inf if n is None else n for n in found) for g, found in counts.items()}
        values.setdefault(row["system"], {})[row["method"]] = {
            "setting": row["setting"],
            "iterations": {g: None if np.isinf(n) else n for g, n in middle.items()},
            "last": median(run["last"] for run in row["runs"]),
            "worst": max(run["last"] for run in row["runs"]),
            "bar": median(run["bar"] for run in row["runs"]),
            "starts": len(row["runs"]),
            "cpu_seconds": median(run["cpu_seconds"] for run in row["runs"]),
        }
    return values


def done() -> list[dict[str, Any]]:
    """What was measured before, the last of each."""
    lines = LOG.read_text(encoding="utf-8").splitlines() if LOG.exists() else []
    return list({(r["system"], r["method"]): r for r in map(json.loads, lines)}.values())


def row(system: str, method: str, starts: int, steps: int) -> dict[str, Any]:
    """One method: its rate, then the starts."""
    tried = [(course(system, method, setting_of(system, method, f), 1000, steps)["last"], f) for f in FACTORS]
    factor = min((last if np.isfinite(last) else np.inf, f) for last, f in tried)[1]
    setting = {name: float(f"{value:.3g}") for name, value in setting_of(system, method, factor).items()}
    runs = [course(system, method, setting, seed, steps) for seed in range(starts)]
    return {"system": system, "method": method, "setting": setting, "steps": steps, "runs": runs}


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    parser = argparse.ArgumentParser()
    parser.add_argument("systems", nargs="*", default=list(SYSTEMS))
    parser.add_argument("--starts", type=int, default=3)
    parser.add_argument("--steps", type=int, default=200)
    given = parser.parse_args()
    for system in given.systems:
        for method in METHODS:
            if (system, method) in {(r["system"], r["method"]) for r in done()}:
                continue
            found = row(system, method, given.starts, given.steps)
            print(system, method, found["setting"], [run["last"] for run in found["runs"]], flush=True)
            with LOG.open("a", encoding="utf-8") as file:
                file.write(json.dumps(found) + "\n")
    values = {"per_site": {name: entry[2] for name, entry in SYSTEMS.items()}} | summary(done())
    text = json.dumps(stamp("python tools/measure_square.py", list(range(given.starts))) | {"values": values}, indent=1)
    write_atomically(OUT, lambda path: path.write_text(text + "\n", encoding="utf-8"))
