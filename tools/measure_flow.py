"""Measure the figures of stage one that README and docs quote, into results/flow.json. Deterministic: no seed."""

import json
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import angd
from angd.problems.flows import build
from angd.train.environment import stamp

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests" / "theory"))

from printed import PrintedMetric, printed_lyapunov, random_metric  # noqa: E402

jax.config.update("jax_enable_x64", True)
OUT = ROOT / "results" / "flow.json"
NESTEROV = angd.ARGFlow(alpha=angd.OverTime(3.0))


def solve(problem, flow, t0, t1, **kwargs):
    """The flow of a problem of the catalogue."""
    manifold, functional, rho0, minimiser = problem
    return angd.solve_flow(manifold, functional, flow, rho0, t0, t1, minimiser=minimiser, **kwargs)


def fisher_rao() -> dict:
    problem, damped = build("fisher-rao", "relative-entropy", 0), angd.ARGFlow(alpha=angd.OverTime(3.0), beta=0.4)
    first = solve(problem, damped, 0.5, 4.0, rtol=1e-11)
    second = solve(problem, damped, 0.5, 4.0, rtol=1e-11, form="covariant")
    left = solve(build("fisher-rao", "linear-energy", 0), NESTEROV, 0.5, 4.0)
    return {"form_difference": float(jnp.max(jnp.abs(first.rho - second.rho))), "exit_time": left.exit_time}


def counterexample() -> dict:
    run = solve(build("sobolev", "power", 0), angd.ARGFlow(alpha=angd.OverTime(2.0)), 1.0, 200.0, save=6001, rtol=1e-9)
    ts, scaled = np.asarray(run.ts), np.asarray(run.ts**2 * run.gap)
    first, last = scaled[ts <= 5].max(), scaled[ts > 100].max()
    return {"sup_first_window": float(first), "sup_last_window": float(last), "rate": run.rate}


def lyapunov() -> dict:
    flow = angd.ARGFlow.hessian_damped(alpha=3.0, beta=0.5)
    runs = [
        solve(build(*name, 0), flow, 1.0, 30.0, rtol=1e-12)
        for name in (("simplex", "square-distance"), ("gaussian", "relative-entropy"))
    ]
    return {"largest_increase": max(run.certificate.largest_increase for run in runs if run.certificate)}


def hessian_damping() -> dict:
    problem = build("fisher-rao", "relative-entropy", 0)

    def late_sup(flow):
        run = solve(problem, flow, 0.5, 40.0, save=2001)
        return float(jnp.max(jnp.where(run.ts >= 20, run.ts**2 * run.gap, 0.0)))

    return {"sup_without": late_sup(NESTEROV), "sup_with": late_sup(angd.ARGFlow.hessian_damped(alpha=3.0, beta=0.4))}


def proposition_1() -> dict:
    manifold, functional, x0 = random_metric(0)
    flow = angd.ARGFlow(alpha=angd.OverTime(3.0), beta=0.6)

    def run(of, **kwargs):
        return angd.solve_flow(of, functional, flow, jnp.asarray(x0), 1.0, 4.0, rtol=1e-12, save=11, **kwargs).rho

    judge = run(manifold, form="covariant")
    errors = [float(jnp.max(jnp.abs(run(of) - judge))) for of in (manifold, PrintedMetric(manifold))]
    return {"corrected_error": errors[0], "printed_error": errors[1]}


def printed_increase() -> float:
    problem = build("simplex", "square-distance", 0)
    run = solve(problem, NESTEROV, 1.0, 30.0)
    values = printed_lyapunov(problem.manifold, problem.functional, 3.0, run, problem.minimiser)
    return float(jnp.max(jnp.diff(values)))


def main() -> None:
    record = stamp("python tools/measure_flow.py", None) | {
        "values": {
            "fisher_rao": fisher_rao(),
            "counterexample": counterexample(),
            "lyapunov": lyapunov(),
            "hessian_damping": hessian_damping(),
            "proposition_1": proposition_1(),
            "printed_lyapunov_increase": printed_increase(),
        },
    }
    OUT.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(OUT.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
