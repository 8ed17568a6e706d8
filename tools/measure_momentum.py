"""Does momentum pay in the energy metric? Iterations to given losses, into results/momentum.json.

    python tools/measure_momentum.py

Burgers from −sin(πx) on fixed points, 800 inside and 200 for each condition; with constant damping and a line search,
and with Levenberg–Marquardt; without momentum, with projected momentum, and with the accelerated flow: each transport,
with and without restarts where the momentum points uphill. Three starts each. A loss counts as reached when it stays.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import jax

import angd
from angd.problems.library import burgers
from angd.problems.pinn import Fixed, Problem, Uniform
from angd.problems.task import Task
from angd.recipes.base import Phase
from angd.train.environment import stamp
from angd.train.files import write_atomically
from angd.train.loop import Budget, TrainState, train
from settled import settled

OUT = Path(__file__).parent.parent / "results" / "momentum.json"
SEEDS, STEPS, DAMPING = (0, 1, 2), 150, 1e-2
LOSSES = (1e-2, 1e-3, 1e-4, 1e-5)
CONTROLLERS = {"constant": angd.LineSearch, "marquardt": angd.LevenbergMarquardt}


def variants() -> Iterator[tuple[str, Any, Any, Any, bool]]:
    """Name, flow, solver, transport, and whether momentum may be dropped."""
    normal, jvp, current = angd.Normal(DAMPING), angd.JVP(), angd.CurrentJVP()
    yield "none", angd.ARGFlow.gradient(1.0), normal, jvp, False
    for eta in (0.5, 0.9):
        yield f"projected_{eta}", angd.ARGFlow.gradient(1.0), angd.ProjectedMomentum(eta, normal), jvp, False
    for mu, rate in ((0.5, 0.5), (0.8, 0.3)):
        for name, transport in (("jvp", jvp), ("current", current)):
            for restart in (False, True):
                flow = angd.ARGFlow.momentum(mu, rate)
                yield f"flow_{mu}_{name}{'_restart' if restart else ''}", flow, normal, transport, restart


def course(problem: Problem, optimiser: Any, seed: int) -> tuple[list[float], int]:
    """Losses step by step, and how many steps were from rest."""
    points = Fixed(Uniform(**Task(problem).counts(800, 200)), jax.random.key(seed))
    start = TrainState(problem.init(jax.random.key(seed)))
    infos = [i for _, i in train(problem, [Phase(optimiser, points)], start, jax.random.key(0), Budget(steps=STEPS))]
    return [float(info.loss) for info in infos], sum(bool(info.restarted) for info in infos)


def steps_to(losses: list[float], goal: float) -> float:
    """Steps until the loss stays at or below a goal."""
    found = settled(losses, goal)
    return float("inf") if found is None else found


def measure() -> dict[str, Any]:
    values: dict[str, Any] = {}
    problem = burgers().problem
    for controller in CONTROLLERS:
        for name, flow, solver, transport, restart in variants():
            damper = CONTROLLERS[controller]()
            control = angd.in_turn([angd.Restart(), damper]) if restart else damper
            optimiser = angd.ANGD(flow, angd.Energy(), solver, control, transport)
            runs = [course(problem, optimiser, seed) for seed in SEEDS]
            counts = {f"{goal:.0e}": median(steps_to(losses, goal) for losses, _ in runs) for goal in LOSSES}
            found = {goal: count if count < float("inf") else None for goal, count in counts.items()}
            found["final"] = float(f"{median(losses[-1] for losses, _ in runs):.3g}")
            found["restarts"] = median(restarts for _, restarts in runs)
            values.setdefault(controller, {})[name.replace(".", "")] = found
            print(controller, name, found, flush=True)
    return values


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    report = stamp("python tools/measure_momentum.py", list(SEEDS)) | {"values": measure()}
    text = json.dumps(report, indent=1) + "\n"
    write_atomically(OUT, lambda path: path.write_text(text, encoding="utf-8"))
