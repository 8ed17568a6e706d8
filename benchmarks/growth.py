"""How time and memory of a step grow with samples n, parameters p and electrons, and what the plan says they cost.

    python benchmarks/growth.py [--quick | --record] [--residuals | --electrons | --replan]

A step here is what every natural gradient has: rows of the Jacobian, matrix, factorisation, direction; for electrons
local energies, and rows with their kernel. One core, double precision (single for electrons); CPU seconds, medians of
interleaved repetitions; memory is what XLA says of the compiled step. Slopes are of log time against log size, by least
squares. "planned" is what `angd.train.plan` says from the roofline's figures (`benchmarks/roofline.py --record` first):
the seconds over the fastest measured ones, since the roofline's are the fastest too. `--replan` works these out again
from the times that the file has.
"""

import json
import sys
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_factor, cho_solve

from angd.method.jacobian import jacobian
from angd.train.plan import Size, plan
from machines import this_core
from step import Burgers, network
from timing import RESULTS, cpu_times, one_core, record

REPEATS = 3
SMALL, LARGE = (2, 20, 20, 20, 1), (2, 64, 64, 64, 64, 1)
Sized = dict[int, tuple[Callable[..., Any], tuple[Any, ...]]]


def step(form: str, params: Any, xs: jax.Array) -> Any:
    """A Gauss–Newton direction, by the p × p or the n × n matrix."""
    f = Burgers().residual
    O, b = jacobian(f, params, xs), jax.vmap(f, (None, 0))(params, xs)
    if form == "normal":
        flat = jnp.concatenate([leaf.ravel() for leaf in jax.tree.leaves(O.rmatvec(b))])
        return cho_solve(cho_factor(_damped(O.gram())), flat)
    return O.rmatvec(cho_solve(cho_factor(_damped(O.kernel())), b))


def _damped(matrix: jax.Array) -> jax.Array:
    return matrix + 1e-3 * jnp.trace(matrix) * jnp.eye(len(matrix))


def points(n: int) -> jax.Array:
    return jax.random.uniform(jax.random.key(1), (n, 2))


def residuals(quick: bool) -> dict[str, tuple[str, Sized]]:
    """Sizes of the steps on Burgers' residual, by what grows."""
    ns = (100, 200) if quick else (1000, 2000, 4000, 8000)
    few = (100, 200) if quick else (250, 500, 1000, 2000)
    widths = (16, 24) if quick else (24, 48, 96, 192)
    networks = {h: network((2, h, h, h, 1)) for h in widths}
    sizes = {sum(leaf.size for leaf in jax.tree.leaves(params)): params for params in networks.values()}
    some, gram = points(100 if quick else 500), points(100 if quick else 2000)
    narrow = {p: params for p, params in sizes.items() if p < 6000}
    return {
        "p × p, samples": ("normal", {n: (partial(step, "normal"), (network(SMALL), points(n))) for n in ns}),
        "p × p, parameters": (
            "normal", {p: (partial(step, "normal"), (params, gram)) for p, params in narrow.items()}
        ),
        "n × n, samples": ("kernel", {n: (partial(step, "kernel"), (network(LARGE), points(n))) for n in few}),
        "n × n, parameters": (
            "kernel", {p: (partial(step, "kernel"), (params, some)) for p, params in sizes.items()}
        ),
    }  # fmt: skip


def electrons(quick: bool) -> dict[str, Sized]:
    """Local energies, and rows with their kernel, of chains of hydrogen atoms."""
    from angd.problems.vmc import Coulomb, FermiNet, GroundState, Molecule
    from angd.tree import in_precision

    found: dict[str, Sized] = {"local energies": {}, "rows and kernel": {}}
    for number in (2, 4) if quick else (2, 4, 8, 12):
        molecule = Molecule.of([("H", (0.0, 0.0, 1.8 * k)) for k in range(number)], units="bohr")
        net = FermiNet(molecule)
        problem, params = GroundState(net, Coulomb(molecule)), in_precision(net.init(jax.random.key(0)), jnp.float32)
        place = jnp.stack([jnp.zeros(number), jnp.zeros(number), 1.8 * jnp.arange(number)], axis=1)
        noise = jax.random.normal(jax.random.key(1), (32 if quick else 128, number, 3))
        walkers = (place + noise).astype(jnp.float32)
        found["local energies"][number] = (problem.local_energies, (params, walkers))
        kernel = partial(_rows_and_kernel, problem.log_density)
        found["rows and kernel"][number] = (kernel, (params, walkers))
    return found


def _rows_and_kernel(f: Callable[..., Any], params: Any, xs: Any) -> jax.Array:
    return jacobian(f, params, xs).kernel()


def measured(sized: Sized, repeats: int) -> dict[int, dict[str, Any]]:
    """Milliseconds with the fastest and slowest, and bytes, for each size."""
    jit: Any = eqx.filter_jit
    compiled = {n: jit(f).lower(*arguments).compile() for n, (f, arguments) in sized.items()}
    calls = {str(n): partial(compiled[n], *arguments) for n, (_, arguments) in sized.items()}
    times = cpu_times({n: (lambda call=call: jax.tree.leaves(call())) for n, call in calls.items()}, repeats)
    return {n: _row(times[str(n)], _memory(compiled[n])) for n in sized}


def _memory(compiled: Any) -> int:
    found = compiled.compiled.memory_analysis()
    return found.temp_size_in_bytes + found.argument_size_in_bytes + found.output_size_in_bytes


def _row(times: list[float], memory: int) -> dict[str, Any]:
    spread = [float(f"{1e3 * t:.4g}") for t in (min(times), max(times))]
    return {"ms": float(f"{1e3 * median(times):.4g}"), "spread": spread, "memory": memory}


def slopes(rows: dict[int, dict[str, Any]]) -> dict[str, float]:
    """Of log time and log memory."""
    size = np.log(list(rows))
    fits = {name: np.polyfit(size, np.log([row[name] for row in rows.values()]), 1)[0] for name in ("ms", "memory")}
    return {"time": round(float(fits["ms"]), 2), "memory": round(float(fits["memory"]), 2)}


def planned(solver: str, params: Any, xs: jax.Array) -> float:
    """Milliseconds that the plan says."""
    size = Size.of(Burgers().residual, params, xs)
    machine = this_core()
    return 1e3 * plan(size, machine, 1, solver).seconds(machine)


def show(name: str, rows: dict[int, dict[str, Any]], found: dict[str, Any]) -> None:
    print(f"\n{name}: time ∝ size^{found['slopes']['time']}, memory ∝ size^{found['slopes']['memory']}")
    for size, row in rows.items():
        note = f"   planned {row['planned']:.2f} of it" if "planned" in row else ""
        print(f"  {size:>8}{row['ms']:12.1f} ms{row['memory'] / 2**20:10.1f} MiB{note}", flush=True)


def report(name: str, sized: Sized, solver: str | None, repeats: int) -> None:
    rows = measured(sized, repeats)
    for size, (_, arguments) in sized.items():
        if solver is None:
            continue
        rows[size]["planned"] = round(planned(solver, *arguments) / rows[size]["spread"][0], 3)
    found = {"slopes": slopes(rows), "sizes": {str(size): row for size, row in rows.items()}}
    show(name, rows, found)
    if "--record" in sys.argv:
        record("growth", key(name), found, "growth")


def replan() -> None:
    """The plan's part of results/growth.json, nothing measured."""
    found = json.loads((RESULTS / "growth.json").read_text(encoding="utf-8"))["values"]
    for name, (solver, sized) in residuals(quick=False).items():
        rows = found[key(name)]["sizes"]
        for size, (_, arguments) in sized.items():
            rows[str(size)]["planned"] = round(planned(solver, *arguments) / rows[str(size)]["spread"][0], 3)
        show(name, rows, found[key(name)])
        record("growth", key(name), found[key(name)], "growth")


def key(name: str) -> str:
    """As the result file has it."""
    return name.replace(" × ", "x").replace(", ", "_").replace(" ", "_")


def main() -> None:
    one_core()
    jax.config.update("jax_enable_x64", True)
    quick = "--quick" in sys.argv
    if "--replan" in sys.argv:
        replan()
        return
    repeats = 1 if quick else REPEATS
    if "--electrons" not in sys.argv:
        for name, (solver, sized) in residuals(quick).items():
            report(name, sized, solver, repeats)
    if "--residuals" not in sys.argv:
        for name, sized in electrons(quick).items():
            report(f"electrons, {name}", sized, None, repeats)


if __name__ == "__main__":
    main()
