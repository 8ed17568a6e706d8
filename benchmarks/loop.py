"""A step through `angd.fit` beside the loop that one would write by hand, on the same residual and as many points.

    python benchmarks/loop.py [--quick | --record]

On one core, as methods are compared (tools/suites.py): the CPU time of several threads has their waiting in it, which
depends on how busy the other cores are. Burgers in double precision, 1000 new uniform points inside and 250 for each
condition in every step. "by hand" is one jitted function that draws points and steps, called in a `for` that reads the
loss. Adam as the recipe has it; a Gauss–Newton step of `ANGD` against the same `opt.step`. Blocks of steps alternate in
one run, within `fit`'s own callback; a step lasts from one call of it to the next, so that everything `fit` does is
counted but for the evaluation of errors, which grows rare. Medians; read the ratios. "first step" is how long
`angd.fit("heat")` takes until then in a new process, after `import angd`.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from statistics import median
from time import process_time
from typing import Any

# Must precede the import of JAX.
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

import jax
import jax.numpy as jnp
import optax

import angd
from angd.problems.library import burgers
from angd.train.loop import is_evaluated
from timing import milliseconds, record

INTERIOR, CONDITION, RATE, HALVING = 1000, 250, 1e-2, 6000
FIRST = """
import time, jax, angd
jax.config.update("jax_enable_x64", True)
wall, cpu = time.perf_counter(), time.process_time()
def stop(state, info):
    print(time.perf_counter() - wall, time.process_time() - cpu)
    return "stop"
angd.fit("heat", callback=stop, progress=False)
"""


def points(key: jax.Array) -> dict[str, jax.Array]:
    """Inside [0, 1]², and at t = 0."""
    inside, start = jax.random.split(key)
    x = jax.random.uniform(start, (CONDITION,))
    return {
        "interior": jax.random.uniform(inside, (INTERIOR, 2)),
        "initial": jnp.stack([jnp.zeros(CONDITION), x], axis=1),
    }


def adam_by_hand(problem: Any) -> Callable[[], Any]:
    """One step of Adam and its loss at a call."""
    rule = optax.adam(optax.exponential_decay(RATE, HALVING, 0.5))

    def loss(params: Any, z: dict[str, jax.Array]) -> jax.Array:
        parts = {name: jax.vmap(f, (None, 0))(params, z[name]) for name, f in problem.residuals.items()}
        return sum((problem.weight(name) * jnp.mean(r**2) / 2 for name, r in parts.items()), jnp.zeros(()))

    @jax.jit
    def step(params: Any, state: Any, key: jax.Array) -> Any:
        key, now = jax.random.split(key)
        value, gradient = jax.value_and_grad(loss)(params, points(now))
        update, state = rule.update(gradient, state)
        return optax.apply_updates(params, update), state, key, value

    params = problem.init(jax.random.key(0))
    return repeated(step, (params, rule.init(params), jax.random.key(1)))


def step_by_hand(problem: Any, opt: Any) -> Callable[[], Any]:
    """One `opt.step` and its loss at a call."""

    def samples(key: jax.Array) -> Any:
        return {name: angd.Samples(z, weight=problem.weight(name)) for name, z in points(key).items()}

    @jax.jit
    def step(params: Any, state: Any, key: jax.Array) -> Any:
        key, now = jax.random.split(key)
        params, _, state, info = opt.step(problem, params, samples(now), state)
        return params, state, key, info.loss

    params, key = problem.init(jax.random.key(0)), jax.random.key(1)
    return repeated(step, (params, opt.init(problem, params, samples(key)), key))


def repeated(step: Callable[..., Any], held: tuple[Any, ...]) -> Callable[[], Any]:
    """Each call goes on from the one before and returns the loss as a number."""

    def once() -> float:
        nonlocal held
        *rest, loss = step(*held)
        held = tuple(rest)
        return float(loss)

    return once


def beside(task: angd.Task, method: Any, by_hand: Callable[[], Any], blocks: int, length: int) -> dict[str, float]:
    """CPU seconds of a step: medians, and as the run's own clock has it."""
    ours: list[float] = []
    theirs: list[float] = []
    counted: list[float] = []
    left, before = process_time(), 0.0

    def callback(state: Any, info: Any) -> None:
        nonlocal left, before
        if not is_evaluated(state.k - 1):
            ours.append(process_time() - left)
            counted.append(state.cpu_seconds - before)
        if state.k % length == 0:
            for _ in range(length):
                began = process_time()
                by_hand()
                theirs.append(process_time() - began)
        left, before = process_time(), state.cpu_seconds

    angd.fit(task, method, steps=blocks * length, callback=callback, progress=False)
    found = {"through fit": ours, "on its clock": counted, "by hand": theirs}
    return {name: median(times[len(times) // 10 :]) for name, times in found.items()}


def report(name: str, times: dict[str, float]) -> None:
    ratio = times["through fit"] / times["by hand"]
    print(f"\n{name}: {ratio:.2f} × the time by hand", flush=True)
    for part, seconds in times.items():
        print(f"  {part:<16}{1e3 * seconds:8.2f} CPU ms a step")
    if "--record" in sys.argv:
        record("loop", name.lower().replace("–", "_"), milliseconds(times) | {"ratio": round(ratio, 2)})


def first_step(repeats: int) -> None:
    """In new processes."""
    runs = [subprocess.run([sys.executable, "-c", FIRST], capture_output=True, check=True) for _ in range(repeats)]
    wall, cpu = (median(column) for column in zip(*(map(float, run.stdout.split()) for run in runs), strict=True))
    print(f"\nfirst step of angd.fit('heat'): {wall:.1f} s, {cpu:.1f} CPU s", flush=True)
    if "--record" in sys.argv:
        record("loop", "first_step", {"seconds": round(wall, 2), "cpu_seconds": round(cpu, 2)})


def main() -> None:
    jax.config.update("jax_enable_x64", True)
    quick, task = "--quick" in sys.argv, burgers()
    report("Adam", beside(task, "adam", adam_by_hand(task.problem), 3 if quick else 20, 100))
    opt = angd.ANGD(angd.ARGFlow.gradient(1.0), angd.Energy(), angd.Normal(1e-4), angd.LevenbergMarquardt())
    report("Gauss–Newton", beside(task, opt, step_by_hand(task.problem, opt), 8 if quick else 12, 20))
    first_step(1 if quick else 3)


if __name__ == "__main__":
    main()
