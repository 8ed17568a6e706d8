"""Has a step become dearer? The same steps with the code of two commits, in turn, in new processes on one core.

    python benchmarks/since.py COMMIT [--rounds 3]

COMMIT is what the working tree is compared with. Each process imports the library, makes a problem, and steps: "first
step" is its CPU time until then, import and compilation included, "step" the median of the later ones. Medians over
the rounds; read the ratios.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

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
STEPS = """
step, times = eqx.filter_jit(opt.step), []
for _ in range(20):
    began = time.process_time()
    jax.block_until_ready(jax.tree.leaves(step(problem, params, samples, state)))
    times.append(time.process_time() - began)
    if len(times) == 1:
        first = time.process_time()
print(first, median(times[2:]))
"""
PARTS = {"Burgers, energy": PINN} | {f"{name}, angd-fr": VMC.format(molecule=name) for name in ("Be", "Li2")}


def measured(source: Path, part: str) -> tuple[float, float]:
    """CPU seconds to the first step, and of a later one."""
    env = os.environ | {"PYTHONPATH": str(source), "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-c", COMMON + part + STEPS]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{source}: {done.stderr.strip().splitlines()[-1]}")
    first, step = map(float, done.stdout.split())
    return first, step


def compare(name: str, before: Path, rounds: int) -> None:
    """One line: both times now, and their ratio to those before."""
    pairs = [(measured(ROOT / "src", PARTS[name]), measured(before, PARTS[name])) for _ in range(rounds)]
    for i, (what, scale, unit) in enumerate((("first step", 1, "CPU s"), ("step", 1e3, "CPU ms"))):
        now, then = (scale * median(pair[side][i] for pair in pairs) for side in (0, 1))
        print(f"{name:<18}{what:<12}{now:8.1f} {unit:<7} before {then:8.1f}  ratio {now / then:.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("commit")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "before"
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", tree, given.commit], cwd=ROOT, check=True)
        try:
            for name in PARTS:
                compare(name, tree / "src", given.rounds)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", tree], cwd=ROOT, check=True)


if __name__ == "__main__":
    main()
