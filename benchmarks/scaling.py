"""Training steps on one, two and four devices: throughput, and what the devices tell each other.

    python benchmarks/scaling.py [--quick | --record] [--processes N] [case…]

Devices are simulated, each with one thread; four are more than the cores of the machine that the recorded numbers come
from, and are said so. A step is all that training does: new points or moves of the chain, rows, energies, matrix,
factorisation, update. "strong" shares the samples of one device, "weak" gives each device as many as one has; the
ratio is throughput, samples per second, over that of one device. Bytes are those of the arrays that devices exchange
in a step, read off the compiled program. Times are medians, interleaved in one run; "threads" is CPU seconds per
second, which tells whether a device kept to one.

With `--processes N` the same steps run on N processes of one device each, which meet on the loopback (`jax.distributed`
with gloo). They are other programs than those on one device, and so not interleaved with them.
"""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Must precede the import of JAX: one thread for each device. A process among others has one device.
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false --xla_force_host_platform_device_count=" + (
    "1" if "ANGD_SCALING_MEMBER" in os.environ else "4"
)
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"
# Waiting for batched determinants takes one thread of XLA's pool for each device.
os.environ.setdefault("PJRT_NPROC", "8")

import jax

if "ANGD_SCALING_MEMBER" in os.environ:  # before anything is computed
    ADDRESS, NUMBER, COUNT = os.environ["ANGD_SCALING_MEMBER"].split(",")
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(ADDRESS, int(COUNT), int(NUMBER))

import jax.numpy as jnp
import numpy as np

import angd
from angd.problems.pinn import Network, Uniform, burgers
from angd.problems.samplers import Spread
from angd.problems.vmc import MOLECULES, AroundNuclei, Coulomb, FermiNet, Graded, GroundState
from angd.train.communication import messages
from angd.train.compiled import Compiled
from angd.train.environment import stamp
from angd.train.files import write_atomically
from angd.train.loop import cast

OUT = Path(__file__).parent.parent / "results" / "scaling.json"
QUICK = "--quick" in sys.argv
MEMBER = "ANGD_SCALING_MEMBER"  # address, number and count of a process among others
DEVICES = (1, 2, 4)
WAIT = 1800  # seconds for processes that meet


class Case:
    """A step of training: what it needs for n samples on a mesh, and one run of it."""

    def __init__(self, samples: int, build: Callable[[int], tuple[Any, Any, Any, Any]], single: bool = False):
        self.samples, self.build, self.single = samples, build, single

    def step(self, n: int, over: Any) -> tuple[Callable[[], Any], int]:
        """One step with n samples, compiled, and the bytes that devices exchange in it."""
        problem, params, sampler, opt = self.build(n)
        if over is not None:
            sampler, params = Spread.over(sampler, over), angd.replicate(params, over)
        params = cast(params, self.single)
        samples = cast(Compiled(_draw, problem, sampler)(params, jax.random.key(1)), self.single)
        state = cast(opt.init(problem, params, samples), self.single)
        step = Compiled(_step, problem, sampler, opt)
        held = (params, samples, state, jax.random.key(2))
        program = step.ahead(*held)
        run = step.with_arrays(program)
        return lambda: run(*held), sum(message.bytes for message in messages(program.as_text()))


def _draw(problem: Any, sampler: Any, params: Any, key: Any) -> Any:
    return sampler(key, problem, params)


def _step(problem: Any, sampler: Any, opt: Any, params: Any, samples: Any, state: Any, key: Any) -> Any:
    if hasattr(sampler, "move"):
        samples = cast(sampler.move(key, problem, params, samples), samples.x.dtype == jnp.float32)
    else:
        samples = sampler(key, problem, params)
    return opt.step(problem, params, samples, state)


def pinn(network: Network, damping: float) -> Callable[[int], tuple[Any, Any, Any, Any]]:
    """Gauss–Newton on Burgers, with a fifth of the points on the conditions."""

    def build(n: int) -> tuple[Any, Any, Any, Any]:
        problem = burgers.burgers("-sin", network)
        few = [name for name in problem.places() if name != "interior"]
        counts = {name: n // (10 * len(few)) * 2 for name in few}
        sampler = Uniform(interior=n - sum(counts.values()), **counts)
        opt = angd.ANGD(angd.ARGFlow.gradient(1.0), angd.Energy(), angd.Normal(damping), angd.LevenbergMarquardt())
        return problem, problem.init(jax.random.key(0)), sampler, opt

    return build


def vmc(name: str) -> Callable[[int], tuple[Any, Any, Any, Any]]:
    """Accelerated Fisher–Rao on a FermiNet, in single precision but for the system."""

    def build(n: int) -> tuple[Any, Any, Any, Any]:
        network = FermiNet(MOLECULES[name])
        problem = GroundState(network, Coulomb(network.molecule))
        chain = Graded(AroundNuclei(network.molecule), walkers=n, burn_in=2)
        solver = angd.ProjectedMomentum(0.99, angd.Kernel(4e-3))
        opt = angd.ANGD(angd.ARGFlow.momentum(0.8, 0.01), angd.FisherRao(), solver, angd.StepNorm(0.05))
        return problem, network.init(jax.random.key(0)), chain, opt

    return build


CASES = {
    "pinn_gram": Case(400 if QUICK else 8000, pinn(Network((24, 24, 24), embed=burgers.PERIODIC), 1e-6)),
    "pinn_kernel": Case(80 if QUICK else 1000, pinn(Network((20, 50, 80, 80, 50, 20)), 1e-6)),
    "vmc_be": Case(64 if QUICK else 1000, vmc("Be"), single=True),
}


def measured(jobs: dict[str, Callable[[], Any]], repeats: int) -> dict[str, tuple[float, float]]:
    """Median seconds of every job, interleaved, after one run to warm up; and how many threads were at work."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in jobs}
    for _ in range(repeats + 1):
        for name, job in jobs.items():
            wall, cpu = time.perf_counter(), time.process_time()
            jax.block_until_ready(job())
            times[name].append((time.perf_counter() - wall, time.process_time() - cpu))
    rows = {name: np.array(found[1:]) for name, found in times.items()}
    return {name: (float(np.median(row[:, 0])), float(row[:, 1].sum() / row[:, 0].sum())) for name, row in rows.items()}


def report(name: str, repeats: int) -> dict[str, Any]:
    """One case on all numbers of devices."""
    case, jobs, sent, n = CASES[name], {}, {}, {}
    for devices in DEVICES:
        over = None if devices == 1 else angd.parallel.mesh(jax.devices()[:devices])
        for kind, samples in (("strong", case.samples), ("weak", case.samples * devices)):
            if (devices, kind) != (1, "weak"):
                label = f"{kind}_{devices}"
                jobs[label], sent[label] = case.step(samples, over)
                n[label] = samples
    times = measured(jobs, repeats)
    base = n["strong_1"] / times["strong_1"][0]
    print(f"\n{name}: {case.samples} samples on one device", flush=True)
    found: dict[str, Any] = {}
    for label, (seconds, threads) in times.items():
        ratio = n[label] / seconds / base
        found[label] = {"ms": _short(1e3 * seconds), "ratio": round(ratio, 2), "bytes": sent[label]}
        found[label] |= {"samples": n[label], "threads": round(threads, 2)}
        print(
            f"  {label:<10}{1e3 * seconds:10.1f} ms{ratio:8.2f} × the throughput of one device"
            f"{sent[label] / 1e6:10.2f} MB sent{threads:6.1f} threads",
            flush=True,
        )
    return found


def _short(value: float) -> float:
    return float(f"{value:.3g}")


def together(count: int, names: list[str]) -> dict[str, Any]:
    """The same steps on processes of one device each."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    members = [
        subprocess.Popen(
            [sys.executable, __file__, *(["--quick"] if QUICK else []), *names],
            env=os.environ | {MEMBER: f"{address},{i},{count}"},
            stdout=subprocess.PIPE if i == 0 else subprocess.DEVNULL,
            text=True,
        )
        for i in range(count)
    ]
    try:
        said = members[0].communicate(timeout=WAIT)[0]
    finally:
        for member in members:
            member.kill()
    return json.loads(said.splitlines()[-1])


def member(names: list[str], repeats: int) -> None:
    """One of several processes; the first says how long it took."""
    found: dict[str, Any] = {}
    for name in names:
        job, sent = CASES[name].step(CASES[name].samples, angd.parallel.mesh())
        seconds, _ = measured({name: job}, repeats)[name]
        found[name] = {f"processes_{jax.process_count()}": {"ms": _short(1e3 * seconds), "bytes": sent}}
    print(json.dumps(found), flush=True)
    jax.distributed.shutdown()


def main() -> None:
    jax.config.update("jax_enable_x64", True)
    names = [name for name in sys.argv[1:] if name in CASES] or list(CASES)
    repeats = 2 if QUICK else 9
    if MEMBER in os.environ:
        member(names, repeats)
        return
    found = {name: report(name, repeats) for name in names}
    if "--processes" in sys.argv:
        for name, others in together(int(sys.argv[sys.argv.index("--processes") + 1]), names).items():
            for label, numbers in others.items():
                numbers["ratio"] = round(found[name]["strong_1"]["ms"] / numbers["ms"], 2)
                print(f"{name}, {label}: {numbers['ms']:.1f} ms, {numbers['ratio']:.2f} × one device", flush=True)
            found[name] |= others
    if "--record" in sys.argv:
        whole = stamp(" ".join(["python benchmarks/scaling.py", *sys.argv[1:]]), 0) | {"values": found}
        write_atomically(OUT, lambda path: path.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8"))


if __name__ == "__main__":
    main()
