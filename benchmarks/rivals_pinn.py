"""Burgers' equation from −sin(πx), ν = 0.01/π, at equal CPU seconds: ours, jinns, scimba_jax, and optax by hand.

    python benchmarks/rivals_pinn.py [PACKAGE | PACKAGE:METHOD]... [--seconds 120] [--seeds 0] [--core N] [--again]
                                     [--quick] [--no-record]

Each trains in float64 in a process of its own on one core; import and compilation count, looking at the error does not.
Errors are relative L² on our test grid, against our exact solution. `benchmarks/peers/with_*.py` have the settings and
where they are from. Runs that the file already has are kept; a package that is not there is reported, not left out.
With several seeds the methods take turns, so that other work on the machine disturbs them alike.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from angd.problems.pinn import burgers
from angd.train.environment import stamp
from angd.train.files import write_atomically

HERE = Path(__file__).parent
OUT = HERE.parent / "results" / "rivals_pinn.json"
METHODS = {
    "angd": ("default",),
    "jinns": ("ngd-page", "ngd", "ssbroyden"),
    "scimba": ("eng", "eng-strong", "dsgnar", "ssbroyden"),
    "optax": ("adam", "lbfgs"),
}
MARKS = (30, 60, 120, 300, 600)
GRACE = 30  # times the budget, for the wall clock of a busy machine
ONE_THREAD = {
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "JAX_PLATFORMS": "cpu",
}


def run(package: str, method: str, seed: int, budget: float, core: int, grid: str) -> dict[str, Any]:
    """One run, or why there is none."""
    process = [sys.executable, str(HERE / "peers" / "run.py"), package, method, str(seed), str(budget), grid]
    pinned = process if core < 0 else ["taskset", "-c", str(core), *process]
    head = {"package": package, "method": method, "seed": seed, "budget": budget}
    try:
        found = subprocess.run(
            pinned, capture_output=True, text=True, env=os.environ | ONE_THREAD, timeout=GRACE * budget, check=False
        )
    except subprocess.TimeoutExpired:
        return head | {"failed": f"not finished after {GRACE * budget:.0f} s"}
    if found.returncode:
        return head | {"failed": found.stderr.strip().splitlines()[-1]}
    return head | json.loads(found.stdout.strip().splitlines()[-1])


def grid(folder: str) -> str:
    """Test points and the exact solution there, for processes that do not import this library."""
    z, u = burgers.reference("-sin")
    path = Path(folder) / "grid.npz"
    np.savez(path, z=z, u=u)
    return str(path)


def at(run: dict[str, Any], seconds: float) -> float | None:
    """The last error that was seen by then."""
    seen = [error for spent, _, error in run.get("records", []) if spent <= 1.05 * seconds]
    return seen[-1] if seen and run["budget"] >= seconds else None


def summary(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """By package and method: medians over seeds of the error at the marks, and the best rival's over ours."""
    values: dict[str, Any] = {}
    for package, methods in METHODS.items():
        for method in methods:
            mine = longest([r for r in runs if (r["package"], r["method"]) == (package, method)])
            if mine:
                values[f"{package}_{method}".replace("-", "_")] = row(mine)
    return values | {"best": {f"s{mark}": best for mark in MARKS if (best := best_rival(values, mark))}}


def longest(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of each seed the run with the largest budget."""
    return list({r["seed"]: r for r in sorted(runs, key=lambda r: r["budget"])}.values())


def row(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """One method."""
    failed = [r["failed"] for r in runs if "failed" in r]
    if failed:
        return {"failed": failed[-1]}
    errors = {f"s{mark}": [e for r in runs if (e := at(r, mark)) is not None] for mark in MARKS}
    found: dict[str, Any] = {name: median(each) for name, each in errors.items() if each}
    found |= {f"{name}_spread": [min(each), max(each)] for name, each in errors.items() if len(each) > 1}
    last = max(runs, key=lambda r: r["budget"])
    spent, steps, _ = last["records"][-1]
    return found | {
        "seeds": len({r["seed"] for r in runs}),
        "parameters": runs[0]["parameters"],
        "first_step": median(r["first_step"] for r in runs),
        "steps": steps,
        "ms": float(f"{1e3 * (spent - last['first_step']) / max(steps, 1):.3g}"),
    }


def best_rival(values: dict[str, Any], mark: int) -> dict[str, Any] | None:
    """Who comes closest to us, and how many times larger its error is."""
    errors = {name: found[f"s{mark}"] for name, found in values.items() if f"s{mark}" in found}
    ours = errors.pop("angd_default", None)
    if ours is None or not errors:
        return None
    name = min(errors, key=lambda name: errors[name])
    return {"name": name, "error": errors[name], "ratio": float(f"{errors[name] / ours:.3g}")}


def kept(again: bool) -> list[dict[str, Any]]:
    return json.loads(OUT.read_text(encoding="utf-8"))["runs"] if OUT.exists() and not again else []


def save(runs: list[dict[str, Any]]) -> None:
    runs.sort(key=lambda r: (r["package"], r["method"], r["budget"], r["seed"]))
    report = stamp("python benchmarks/rivals_pinn.py", sorted({r["seed"] for r in runs}))
    report |= {"packages": versions(), "values": summary(runs), "runs": runs}
    text = json.dumps(report, indent=1).replace("\n     ", " ").replace("\n    ]", "]")
    write_atomically(OUT, lambda path: path.write_text(text + "\n", encoding="utf-8"))


def versions() -> dict[str, str]:
    """Of the rivals that are here."""
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for name in ("jinns", "scimba", "optax"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def show(found: dict[str, Any]) -> None:
    name = f"{found['package']} {found['method']}, seed {found['seed']}"
    if "failed" in found:
        print(f"{name:<32} did not run: {found['failed']}", flush=True)
        return
    spent, steps, error = found["records"][-1]
    first = f"first step after {found['first_step']:.1f} CPU-s"
    print(f"{name:<32}{error:10.1e} after {spent:.0f} CPU-s, {steps} steps; {first}", flush=True)


def chosen(names: list[str]) -> list[tuple[str, str]]:
    """What the command line names: packages, or one method of one."""
    every = [(package, method) for package, methods in METHODS.items() for method in methods]
    wanted = [pair for pair in every if not names or pair[0] in names or ":".join(pair) in names]
    return wanted or sys.exit(f"Nothing is called {names}; there are {[':'.join(pair) for pair in every]}.")


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seconds", type=float, default=120, help="CPU seconds of each")
    parser.add_argument("--seeds", default="0", help="such as 0,1,2")
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)), help="-1 for any")
    parser.add_argument("--again", action="store_true", help="measure what the file has anew")
    parser.add_argument("--quick", action="store_true", help="ten CPU seconds, nothing recorded")
    parser.add_argument("--no-record", action="store_true")
    return parser.parse_args()


def main() -> None:
    given = options()
    budget, recorded = (10.0, False) if given.quick else (given.seconds, not given.no_record)
    runs = kept(given.again) if recorded else []
    done = {(r["package"], r["method"], r["seed"], r["budget"]) for r in runs if "failed" not in r}
    with tempfile.TemporaryDirectory() as folder:
        points = grid(folder)
        for seed in map(int, given.seeds.split(",")):
            for package, method in chosen(given.names):
                if (package, method, seed, budget) in done:
                    continue
                found = run(package, method, seed, budget, given.core, points)
                show(found)
                head = {name: found[name] for name in ("package", "method", "seed", "budget")}
                runs = [r for r in runs if not head.items() <= r.items()] + [found]
                if recorded:
                    save(runs)


if __name__ == "__main__":
    main()
