"""Has a step become dearer? The same steps with the code of two commits, in turn, on one core.

    python benchmarks/since.py COMMIT [--rounds 3] [--only Be] [--record]

COMMIT is what the working tree is compared with. Each process imports the library, makes a problem, and steps: "first
step" is its CPU time until then, import and compilation included. Then both step in turn, one step each, so that other
work on the machine disturbs them alike: "step" is the median, "with moves" that of steps with ten moves of the Markov
chain before them (512 walkers). Read the ratios.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from timing import record

ROOT = Path(__file__).parent.parent

COMMON = """
import os, sys, time
from statistics import median
import jax, jax.numpy as jnp, equinox as eqx
jax.config.update("jax_enable_x64", True)
import angd
from angd.tree import in_precision
"""
PINN = """
from angd.problems.pinn import Uniform, burgers
problem = burgers.burgers("-sin", None)
params = problem.init(jax.random.key(0))
counts = {name: 3000 if name == "interior" else 300 for name in problem.places()}
samples = Uniform(**counts)(jax.random.key(1), problem, params)
solver = angd.Scaled(angd.Normal(1e-3), 0.5)
opt = angd.ANGD(angd.ARGFlow.gradient(1.0), angd.Energy(), solver, angd.LevenbergMarquardt())
state = opt.init(problem, params, samples)
"""
VMC = """
from angd.problems.vmc import MOLECULES, AroundNuclei, Coulomb, FermiNet, Graded, GroundState
molecule = MOLECULES["{molecule}"]
net = FermiNet(molecule)
problem = GroundState(net, Coulomb(molecule))
params = in_precision(net.init(jax.random.key(0)), jnp.float32)
chain = Graded(AroundNuclei(molecule), 512, 10, 50)
samples = in_precision(eqx.filter_jit(chain)(jax.random.key(1), problem, params), jnp.float32)
solver = angd.ProjectedMomentum(jnp.asarray(0.99), angd.Kernel(jnp.asarray(4e-3)))
flow, metric = angd.ARGFlow.momentum(0.8, 0.01), angd.FisherRao(limit=0.5)
opt = angd.ANGD(flow, metric, solver, angd.StepNorm(jnp.asarray(0.05)))
state = in_precision(opt.init(problem, params, samples), jnp.float32)
"""
MOVED = """
move = eqx.filter_jit(chain.move)
def moved():
    walkers = move(jax.random.key(2), problem, params, samples)
    return step(problem, params, in_precision(walkers, jnp.float32), state)
jobs["with moves"] = moved
"""
STEPS = """
step = eqx.filter_jit(opt.step)
jobs = {"step": lambda: step(problem, params, samples, state)}
def timed(job):
    began = time.process_time()
    jax.block_until_ready(jax.tree.leaves(job()))
    return time.process_time() - began
timed(jobs["step"])
print(time.process_time(), flush=True)
"""
ASKED = """
for line in sys.stdin:
    print(timed(jobs[line.strip()]), flush=True)
"""
PARTS = {"Burgers, energy": PINN + STEPS}
PARTS |= {f"{name}, angd-fr": VMC.format(molecule=name) + STEPS + MOVED for name in ("Be", "Li2", "N2")}
WARM, REPEATS = 2, 12


class Side:
    """A process with the code of one tree, which makes a problem, steps, and then does what it is asked to."""

    def __init__(self, source: Path, part: str):
        env = os.environ | {"PYTHONPATH": str(source), "OPENBLAS_NUM_THREADS": "1"}
        command = [sys.executable, "-c", COMMON + part + ASKED]
        self.process = subprocess.Popen(command, env=env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.first = self._number()

    def time(self, job: str) -> float:
        """CPU seconds of a step."""
        assert self.process.stdin is not None
        print(job, file=self.process.stdin, flush=True)
        return self._number()

    def _number(self) -> float:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        return float(line) if line else sys.exit("A process ended: see above.")

    def close(self) -> None:
        self.process.communicate()


def compare(name: str, before: Path, rounds: int) -> dict[str, float]:
    """Times now, and their ratios to those before: printed, and the ratios returned."""
    found: dict[str, list[tuple[float, float]]] = {}
    jobs = ("step", "with moves") if "move" in PARTS[name] else ("step",)
    for _ in range(rounds):
        sides = [Side(tree, PARTS[name]) for tree in (ROOT / "src", before)]
        found.setdefault("first step", []).append((sides[0].first, sides[1].first))
        for job in jobs:
            pairs = [(sides[0].time(job), sides[1].time(job)) for _ in range(WARM + REPEATS)]
            found.setdefault(job, []).extend(pairs[WARM:])
        for side in sides:
            side.close()
    ratios: dict[str, float] = {}
    for what, pairs in found.items():
        scale, unit = (1, "CPU s") if what == "first step" else (1e3, "CPU ms")
        now, then = (scale * median(pair[side] for pair in pairs) for side in (0, 1))
        print(f"{name:<18}{what:<12}{now:8.1f} {unit:<7} before {then:8.1f}  ratio {now / then:.2f}", flush=True)
        key = what.replace(" ", "_")
        ratios |= {key: float(f"{now:.3g}"), f"{key}_ratio": round(now / then, 2)}
    return ratios


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("commit")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="parts whose names begin with this")
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "before"
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", tree, given.commit], cwd=ROOT, check=True)
        try:
            for name in (name for name in PARTS if name.startswith(given.only)):
                ratios = compare(name, tree / "src", given.rounds)
                if given.record:
                    record("since", name.partition(",")[0], {"commit": given.commit} | ratios)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", tree], cwd=ROOT, check=True)


if __name__ == "__main__":
    main()
