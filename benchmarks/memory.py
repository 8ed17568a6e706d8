"""One step where a matrix of all samples and parameters would be 160 GB: peak memory, time, and whether it is right.

    python benchmarks/memory.py [--quick] [--record] [--only NAME]

Each case runs in a process of its own, whose largest resident set (`ru_maxrss`) is read right after the step. Then the
step d is put into (G + λI) d = v, with products by plain forward and reverse passes of a few samples at a time, which
share nothing with the solver: "residual" is what is left, over ‖v‖. "reduced" is how far the same code, with a budget
that makes it take the same way, is from the normal equations of 400 samples, solved as a matrix by NumPy.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.flatten_util import ravel_pytree

import angd
from timing import RESULTS, save

FULL, QUICK = ("8 GiB", 20_000, (10, 704, 704, 704, 1)), ("512 MiB", 4_000, (10, 96, 96, 96, 1))
REDUCED = (400, (10, 24, 24, 24, 1))
TIGHT = 2**22  # bytes: the way that large problems take, for a small one
SOME = 250  # samples of one pass of the check


def network(widths: Sequence[int]) -> Any:
    keys = jax.random.split(jax.random.key(0), len(widths) - 1)
    shapes = zip(keys, widths[:-1], widths[1:], strict=True)
    return [(jax.random.normal(k, (i, o)) / np.sqrt(i), jnp.zeros(o)) for k, i, o in shapes]


def value(params: Any, x: jax.Array) -> jax.Array:
    for W, b in params[:-1]:
        x = jnp.tanh(x @ W + b)
    W, b = params[-1]
    return (x @ W + b)[0]


class Density(eqx.Module):
    """log ρ is a network; the variation that of the divergence from a Gaussian."""

    def log_density(self, params: Any, x: jax.Array) -> jax.Array:
        return value(params, x) - jnp.sum(x**2) / 2

    def variation(self, params: Any, x: jax.Array) -> jax.Array:
        return value(params, x) - jnp.tanh(x[0]) * x[1]


class Poisson(eqx.Module):
    """∂₀²u + ∂₁²u = f by forward derivatives."""

    def residual(self, params: Any, x: jax.Array) -> jax.Array:
        def second(e: jax.Array) -> jax.Array:
            def slope(x: jax.Array) -> jax.Array:
                return jax.jvp(partial(value, params), (x,), (e,))[1]

            return jax.jvp(slope, (x,), (e,))[1]

        e = jnp.eye(x.size)
        return second(e[0]) + second(e[1]) - jnp.sin(jnp.sum(x[:2]))


class Case(eqx.Module):
    """What is stepped, and the rows, weights and right-hand side of its system as anybody would write them."""

    problem: Any
    metric: Any
    solver: Any
    rows: Any = eqx.field(static=True)
    force: Any = eqx.field(static=True)
    centred: bool = eqx.field(static=True)


CASES = {
    "FisherRao + Kernel": Case(
        Density(), angd.FisherRao(), angd.Kernel(1e-3), Density().log_density, Density().variation, True
    ),
    "Energy + Iterative": Case(
        Poisson(),
        angd.Energy(),
        angd.Iterative(10.0, rtol=1e-4, max_steps=12),
        Poisson().residual,
        Poisson().residual,
        False,
    ),
}


def start(n: int, widths: Sequence[int]) -> tuple[Any, angd.Samples]:
    return network(widths), angd.Samples(jax.random.normal(jax.random.key(1), (n, widths[0])))


def direction(case: Case, params: Any, samples: angd.Samples, memory: Any) -> Any:
    """The natural gradient: one step of rate 1 from rest."""
    opt = angd.ANGD(angd.ARGFlow.gradient(1.0), case.metric, case.solver, memory=memory)
    state = opt.init(case.problem, params, samples)
    after, _, _, info = jax.block_until_ready(eqx.filter_jit(opt.step)(case.problem, params, samples, state))
    assert bool(info.accepted), angd.RESULTS[info.result]
    return jax.tree.map(jnp.subtract, after, params)


@eqx.filter_jit
def residual(case: Case, params: Any, samples: angd.Samples, d: Any) -> jax.Array:
    """‖(G + λI) d + ∂L‖ / ‖∂L‖, some samples at a time."""
    xs = samples.x.reshape(-1, min(SOME, len(samples.x)), samples.x.shape[1])
    n = len(samples.x)

    def over(f: Any) -> jax.Array:
        return lax.map(f, xs).reshape(n)

    def pull(y: jax.Array) -> Any:
        def add(total: Any, some: tuple[jax.Array, jax.Array]) -> tuple[Any, None]:
            x, y = some
            back = jax.vjp(lambda p: jax.vmap(case.rows, (None, 0))(p, x), params)[1]
            return jax.tree.map(jnp.add, total, back(y)[0]), None

        return lax.scan(add, jax.tree.map(jnp.zeros_like, params), (xs, y.reshape(xs.shape[:2])))[0]

    def centred(y: jax.Array) -> jax.Array:
        return y - jnp.mean(y) if case.centred else y

    force = centred(over(lambda x: jax.vmap(case.force, (None, 0))(params, x)))
    moved = over(lambda x: jax.jvp(lambda p: jax.vmap(case.rows, (None, 0))(p, x), (params,), (d,))[1])
    v, _ = ravel_pytree(pull(force / n))
    left, _ = ravel_pytree(pull(centred(moved) / n))
    return jnp.linalg.norm(left + case.solver.damping * ravel_pytree(d)[0] + v) / jnp.linalg.norm(v)


def reduced(case: Case) -> float:
    """The same way on a small problem, against the normal equations as a matrix."""
    params, samples = start(*REDUCED)
    if isinstance(case.solver, angd.Iterative):
        case = eqx.tree_at(lambda c: c.solver, case, angd.Iterative(case.solver.damping, 1e-12, 1000))
    d = ravel_pytree(direction(case, params, samples, TIGHT))[0]
    flat, unravel = ravel_pytree(params)
    O = np.asarray(jax.vmap(jax.grad(lambda v, x: case.rows(unravel(v), x)), (None, 0))(flat, samples.x))
    e = np.asarray(jax.vmap(case.force, (None, 0))(params, samples.x))
    if case.centred:
        O, e = O - O.mean(0), e - e.mean()
    G = O.T @ O / len(e) + case.solver.damping * np.eye(O.shape[1])
    exact = -np.linalg.solve(G, O.T @ e / len(e))
    return float(np.linalg.norm(d - exact) / np.linalg.norm(exact))


def peak() -> int:
    """The largest resident set of this process so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def measure(name: str, memory: str, n: int, widths: Sequence[int]) -> dict[str, Any]:
    """In this process: the step, its peak and time, then what it leaves."""
    jax.config.update("jax_enable_x64", True)
    case, (params, samples) = CASES[name], start(n, widths)
    jax.block_until_ready((params, samples))
    before, began, cpu = peak(), time.perf_counter(), time.process_time()
    d = jax.block_until_ready(direction(case, params, samples, memory))
    found = {"peak_gib": peak() / 2**30, "before_gib": before / 2**30}
    found |= {"seconds": time.perf_counter() - began, "cpu_seconds": time.process_time() - cpu}
    found["residual"] = float(residual(case, params, samples, d))
    return found | {"reduced": reduced(case)}


def report(name: str, memory: str, n: int, widths: Sequence[int]) -> dict[str, Any]:
    """In a process of its own."""
    command = [sys.executable, __file__, "--case", name, memory, str(n), *map(str, widths)]
    done = subprocess.run(command, env=os.environ, text=True, stdout=subprocess.PIPE, check=True)
    p = sum(i * o + o for i, o in pairwise(widths))
    found = json.loads(done.stdout.splitlines()[-1])
    kernel = 8 * n * n / 2**30
    print(
        f"\n{name}: n = {n:,}, p = {p:,}, float64; one kernel takes {kernel:.2f} GiB, the rows {8 * n * p / 2**30:.3g}"
    )
    print(f"  peak {found['peak_gib']:.2f} GiB of {memory} ({found['before_gib']:.2f} before the step)")
    print(f"  {found['seconds']:.0f} s, {found['cpu_seconds']:.0f} CPU s, compilation included")
    print(f"  residual {found['residual']:.1e}; reduced problem against its exact solution {found['reduced']:.1e}")
    return {"budget": memory, "n": n, "p": p, "kernel_gib": kernel} | found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--only", default="", help="cases whose names begin with this")
    parser.add_argument("--case", nargs="+", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.case:
        name, memory, n, *widths = given.case
        print(json.dumps(measure(name, memory, int(n), tuple(map(int, widths)))))
        return
    for name in (name for name in CASES if name.startswith(given.only)):
        found = report(name, *(QUICK if given.quick else FULL))
        if given.record:
            save(RESULTS / "memory.json", "python benchmarks/memory.py --record", name, found)


if __name__ == "__main__":
    main()
