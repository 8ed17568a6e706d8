"""Chains of sixteen spins in NetKet, by its own `VMC_SR` and by `VMC_ANGD`, into results/netket.json.

    python tools/measure_netket.py [sampled] [exact] [step] [tfim] [heisenberg]          needs angd[bench]

Critical Ising and Heisenberg chains (S·S, with Marshall's signs), `RBMSymm` of eight units, double precision, one core.

`exact`: `FullSumState`. Both methods with the settings that `measure_lattice.py` found best with the same network on
twelve sites (`results/lattice.json`), in NetKet's units, from three starts: iterations until the relative error of the
energy stays below 1e-4, 1e-5 and 1e-6.
`sampled`: `MCState`, 1024 samples of NetKet's own chains, one setting for both systems. Now and then the energy of all
configurations judges, and its time is not counted.
`step`: one step with 1024 samples at hand beside that of each form of `VMC_SR`, as `benchmarks/vmc_sr.py` measures it.
"""

import contextlib
import io
import json
import sys
import time
from pathlib import Path
from typing import Any

import jax
import netket as nk
import numpy as np
import optax

import angd
from angd.compat.netket import VMC_ANGD
from angd.train.environment import stamp
from angd.train.files import write_atomically
from settled import settled

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))
import vmc_sr

OUT = Path(__file__).parent.parent / "results" / "netket.json"
LATTICE = OUT.with_name("lattice.json")
L, UNITS, SPREAD = 16, 8, 0.05
GOALS = (1e-4, 1e-5, 1e-6)
TUNED_ON = 12  # sites
STARTS, STEPS = range(3), {"tfim": 220, "heisenberg": 120}
SECONDS, BETWEEN, SAMPLES = 180.0, 20, 1024
SAMPLED = angd.ANGD(
    angd.ARGFlow.momentum(0.8, 0.1), angd.FisherRao(), angd.ProjectedMomentum(0.95, angd.Normal(1e-3)), angd.Restart()
)


class System:
    """A chain with its states, as NetKet has them."""

    def __init__(self, name: str):
        self.graph = nk.graph.Chain(L)
        self.hilbert = nk.hilbert.Spin(0.5, L, total_sz=0 if name == "heisenberg" else None)
        if name == "heisenberg":
            self.hamiltonian: Any = nk.operator.Heisenberg(
                self.hilbert, self.graph, J=0.25, sign_rule=True
            ).to_jax_operator()
            self.sampler: Any = nk.sampler.MetropolisExchange(self.hilbert, graph=self.graph, d_max=L // 2, n_chains=64)
        else:
            self.hamiltonian = nk.operator.IsingJax(self.hilbert, self.graph, h=1.0)
            self.sampler = nk.sampler.MetropolisLocal(self.hilbert, n_chains=64)
        self.ground = float(nk.exact.lanczos_ed(self.hamiltonian)[0])
        start = jax.nn.initializers.normal(SPREAD)
        self.model = nk.models.RBMSymm(
            symmetries=self.graph.translation_group(),
            alpha=UNITS,
            param_dtype=float,
            kernel_init=start,
            hidden_bias_init=start,
            visible_bias_init=start,
        )

    def summed(self, seed: int) -> Any:
        return nk.vqs.FullSumState(self.hilbert, self.model, seed=seed)

    def drawn(self, seed: int) -> Any:
        return nk.vqs.MCState(self.sampler, self.model, n_samples=SAMPLES, seed=seed, sampler_seed=seed)

    def error(self, energy: Any) -> float:
        """Relative to the ground state."""
        return abs(float(np.real(energy)) / self.ground - 1)


def published(system: System, state: Any, setting: dict[str, float]) -> Any:
    """`VMC_SR` in its own units."""
    options = {"diag_shift": setting["damping"] / 4, "momentum": setting.get("eta"), "use_ntk": False}
    with contextlib.redirect_stdout(io.StringIO()):
        return nk.driver.VMC_SR(system.hamiltonian, optax.sgd(setting["rate"] / 4), variational_state=state, **options)


def accelerated(system: System, state: Any, setting: dict[str, float]) -> Any:
    """`VMC_ANGD`, Fisher–Rao."""
    beta = setting.get("b", 0.0) * setting["rate"] ** 0.5
    flow = angd.ARGFlow.momentum(setting["mu"], setting["rate"], beta)
    opt = angd.ANGD(flow, angd.FisherRao(), angd.Normal(setting["damping"]), angd.Restart())
    return VMC_ANGD(system.hamiltonian, opt, variational_state=state)


def advance(driver: Any, steps: int) -> list[float]:
    """Energies before each of some steps."""
    log = nk.logging.RuntimeLog()
    with contextlib.redirect_stdout(io.StringIO()):
        driver.run(steps, out=log, show_progress=False)
    return [float(np.real(e)) for e in log.data["Energy"].Mean]


def best(name: str, methods: tuple[str, ...]) -> tuple[str, dict[str, float]]:
    """Which of some methods needs the fewest iterations to 1e-5 on this ring, and its tuned setting."""
    known = json.loads(LATTICE.read_text(encoding="utf-8"))["values"][f"{name}-{TUNED_ON}-rbm"]
    found = min((m for m in methods if m in known), key=lambda m: known[m]["1e-05"] or float("inf"))
    return found, known[found]["setting"]


def counted(system: System, make: Any, setting: dict[str, float], steps: int) -> dict[str, Any]:
    """Iterations with exact sums."""
    found: dict[str, Any] = {f"{goal:.0e}": [] for goal in GOALS}
    seconds, last = [], []
    for seed in STARTS:
        driver = make(system, system.summed(seed), setting)
        begin = time.process_time()
        errors = [system.error(e) for e in advance(driver, steps)]
        seconds.append(time.process_time() - begin)
        last.append(errors[-1])
        for goal in GOALS:
            found[f"{goal:.0e}"].append(settled(errors, goal))
    medians = {goal: middle(counts) for goal, counts in found.items()}
    last = [float(f"{e:.2g}") for e in last]
    return {"iterations": found, "median": medians, "last": last, "cpu_seconds": round(float(np.median(seconds)), 1)}


def middle(counts: list[int | None]) -> float | None:
    """The median; None where most do not arrive."""
    found = float(np.median([float("inf") if n is None else n for n in counts]))
    return found if np.isfinite(found) else None


def exact(name: str) -> dict[str, Any]:
    """Both methods, each at its best."""
    system, found = System(name), {}
    for label, make, methods in (
        ("vmc_sr", published, ("ngd", "spring")),
        ("angd", accelerated, ("angd", "angd_beta")),
    ):
        method, setting = best(name, methods)
        found[label] = {"method": method, "setting": setting} | counted(system, make, setting, STEPS[name])
        print(name, label, found[label], flush=True)
    return found


def sampled(name: str) -> dict[str, Any]:
    """Seconds, compilation included, until the error of all configurations is below 1e-4 and stays there."""
    system = System(name)
    driver, judge, used = (
        VMC_ANGD(system.hamiltonian, SAMPLED, variational_state=system.drawn(0)),
        system.summed(0),
        0.0,
    )
    steps, seconds, errors = [], [], []
    while used < SECONDS and len([e for e in errors[-3:] if e < GOALS[0]]) < 3:
        begin = time.process_time()
        advance(driver, BETWEEN)
        used += time.process_time() - begin
        judge.parameters = driver.state.parameters
        steps.append(driver.step_count)
        seconds.append(used)
        errors.append(system.error(judge.expect(system.hamiltonian).mean))
        print(name, steps[-1], round(used, 1), errors[-1], flush=True)
    at = settled(errors, GOALS[0])
    told = {"samples": SAMPLES, "last": float(f"{errors[-1]:.2g}")}
    return told | ({} if at is None else {"steps": steps[at], "cpu_seconds": round(seconds[at])})


def step(features: str) -> dict[str, Any]:
    """Milliseconds with as many hidden units per spin."""
    times = vmc_sr.report(L, int(features), SAMPLES, 10)
    best = min(ms for name, ms in times.items() if name != "angd")
    return {"ms": times, "ratio": float(f"{times['angd'] / best:.2g}")}


PARTS = {"sampled": (sampled, tuple(STEPS)), "exact": (exact, tuple(STEPS)), "step": (step, ("1", "4", "16"))}


def write(part: str, name: str, found: dict[str, Any]) -> None:
    """What was not measured now stays as it was."""
    values = json.loads(OUT.read_text(encoding="utf-8"))["values"] if OUT.exists() else {}
    values.setdefault(part, {})[name] = found
    report = stamp("python tools/measure_netket.py", list(STARTS)) | {"values": values}
    text = json.dumps(report, indent=1) + "\n"
    write_atomically(OUT, lambda path: path.write_text(text, encoding="utf-8"))


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    given = set(sys.argv[1:])
    for part in [p for p in PARTS if p in given] or PARTS:
        measure, names = PARTS[part]
        for name in [s for s in names if s in given] or names:
            write(part, name, measure(name))
