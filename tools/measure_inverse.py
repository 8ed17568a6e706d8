"""Measure inverse problems into results/inverse.json: are the error bars of a coefficient right?

    python tools/measure_inverse.py [front | shock]...

`front`: the viscosity of a moving front from 500 values with noise of one per cent, twenty draws of the noise and of
the first parameters. `shock`: that of Burgers' shock, three draws, 120 CPU seconds each. Neither initial nor boundary
values are given. Runs that the file already has are kept.
"""

import json
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np

import angd
from angd.problems.pinn import Box, Coefficient, Network, Problem, d, observed
from angd.problems.pinn.burgers import NU, solution
from angd.train.environment import stamp
from angd.train.files import write_atomically

OUT = Path(__file__).parent.parent / "results" / "inverse.json"
VALUES, NOISE = 500, 0.01
BOX = Box((0.0, 1.0), (-1.0, 1.0))  # t, x
FRONT = 0.05


def points() -> np.ndarray:
    """Where it is measured, the same in all draws."""
    return np.asarray(BOX.place(jax.random.uniform(jax.random.key(7), (VALUES, 2))))


def equation(u: Any, z: Any, c: Any) -> Any:
    """Burgers' equation."""
    return d(u, 0)(z) + u(z) * d(u, 1)(z) - c["nu"] * d(u, 1, 1)(z)


def front(z: np.ndarray) -> np.ndarray:
    """A front that moves at speed ½."""
    t, x = z.T
    return (1 - np.tanh((x - t / 2) / (4 * FRONT))) / 2


def shock(z: np.ndarray) -> np.ndarray:
    """The solution that starts from −sin πx."""
    return solution("-sin", z)


SUITES = {
    "front": {"exact": front, "nu": FRONT, "widths": (12, 12), "draws": 20, "limit": {"steps": 150}},
    "shock": {"exact": shock, "nu": NU, "widths": (20, 20, 20), "draws": 3, "limit": {"cpu_seconds": 120}},
}


def run(suite: dict[str, Any], draw: int) -> dict[str, Any]:
    """One draw: what was found, and how sure it is."""
    z = points()
    values = suite["exact"](z) + NOISE * np.random.default_rng(draw).standard_normal(VALUES)
    conditions = {"measured": observed(z, values, noise=NOISE)}
    unknowns = {"nu": Coefficient(0.5, lower=0)}
    problem = Problem(Network(suite["widths"]), BOX, equation, conditions, unknowns=unknowns)
    fit = angd.fit(problem, key=draw, progress=False, **suite["limit"])
    found = problem.estimates(fit.params)["nu"]
    last = fit.records[-1]
    print(draw, found, last.step, round(last.cpu_seconds), flush=True)
    return {"draw": draw, "value": float(found.value), "error": float(found.error), "cpu_seconds": last.cpu_seconds}


def summary(nu: float, runs: list[dict[str, Any]]) -> dict[str, Any]:
    """How far off, in its own error bars."""
    values, errors = (np.array([r[name] for r in runs]) for name in ("value", "error"))
    off = np.abs(values - nu) / errors
    return {
        "nu": nu,
        "draws": len(runs),
        "mean": float(values.mean()),
        "spread": float(values.std(ddof=1)),
        "bar": float(np.sqrt(np.mean(errors**2))),
        "relative_bar": float(np.median(errors) / nu),
        "within_one": int(np.sum(off <= 1)),
        "within_two": int(np.sum(off <= 2)),
        "worst": float(off.max()),
        "cpu_seconds": float(np.median([r["cpu_seconds"] for r in runs])),
    }


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    runs = json.loads(OUT.read_text(encoding="utf-8"))["runs"] if OUT.exists() else {}
    for name in sys.argv[1:] or SUITES:
        mine = runs.setdefault(name, [])
        while True:
            values = {n: summary(SUITES[n]["nu"], r) for n, r in runs.items() if len(r) > 1}
            report = stamp("python tools/measure_inverse.py", list(range(len(mine)))) | {"values": values, "runs": runs}
            text = json.dumps(report, indent=1) + "\n"
            write_atomically(OUT, lambda path, text=text: path.write_text(text, encoding="utf-8"))
            if len(mine) == SUITES[name]["draws"]:
                break
            mine.append(run(SUITES[name], len(mine)))
