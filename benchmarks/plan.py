"""What a step would take on up to 1,024 accelerators, by `angd.train.plan`: predictions, nothing is run.

    python benchmarks/plan.py [--record]

Models are counted by walking over the functions themselves; machines are in `benchmarks/machines.py`.
"""

import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from math import isinf
from typing import Any

import jax
import jax.numpy as jnp

from angd.problems.vmc import MOLECULES, Coulomb, FermiNet, GroundState, Molecule
from angd.train.costs import Machine
from angd.train.plan import SOLVERS, Plan, Size, best, plan
from angd.tree import in_precision
from machines import H100, this_core
from step import Burgers, network
from timing import record

DEVICES = (1, 8, 64, 256, 1024)
MOVES = 10


def residual(width: int, layers: int, rows: int) -> Callable[[], Size]:
    """A residual with second derivatives, in double precision."""

    def counted() -> Size:
        params = network((2, *(width,) * layers, 1))
        return Size.of(Burgers().residual, params, jnp.zeros((2, 2)), rows)

    return counted


def ground_state(molecule: Molecule, walkers: int) -> Callable[[], Size]:
    """FermiNet in its published size, in single precision: ten moves and a local energy for each walker."""

    def counted() -> Size:
        net = FermiNet.published(molecule)
        problem = GroundState(net, Coulomb(molecule))
        params = in_precision(net.init(jax.random.key(0)), jnp.float32)
        xs = jax.random.normal(jax.random.key(1), (2, sum(molecule.spins), 3), jnp.float32)
        size = Size.of(problem.log_density, params, xs, walkers)
        energy = jax.jit(lambda params, x: problem.variation(params, x)).lower(params, xs[0]).cost_analysis() or {}
        return replace(size, sampling=energy.get("flops", 0.0) + MOVES * size.value)

    return counted


def chain(number: int) -> Molecule:
    return Molecule.of([("H", (0.0, 0.0, 1.8 * k)) for k in range(number)], units="bohr")


REGIMES: dict[str, Callable[[], Size]] = {
    "pinn_small": residual(64, 3, 20_000),
    "pinn_wide": residual(576, 4, 20_000),
    "pinn_large": residual(576, 4, 200_000),
    "n2": ground_state(MOLECULES["N2"], 4096),
    "h30": ground_state(chain(30), 16_384),
    "h30_many": ground_state(chain(30), 262_144),
}


def shown(each: Plan, machine: Machine) -> dict[str, Any]:
    """Milliseconds, what takes most of them, and what a device must hold."""
    seconds, longest = each.seconds(machine), each.longest(machine)
    part = each.parts[longest].seconds(machine, each.devices)
    return {
        "solver": each.solver,
        "ms": float(f"{1e3 * seconds:.3g}"),
        "longest": longest,
        "share": round(part / seconds, 2),
        "gib": float(f"{each.memory / 2**30:.3g}"),
        "fits": each.memory <= machine.memory,
    }


def regime(size: Size, machine: Machine) -> dict[str, Any]:
    """The best exact solver for each number of devices, that of today's code, and the approximate ones beside them."""
    exact = {f"d{d}": best(size, machine, d) for d in DEVICES}
    today = {f"d{d}": best(size, machine, d, SOLVERS[:2]) for d in DEVICES}
    rest = {name: {f"d{d}": shown(plan(size, machine, d, name), machine) for d in DEVICES} for name in SOLVERS[3:]}
    return {
        "rows": size.rows,
        "parameters": size.parameters,
        "exact": {d: None if found is None else shown(found, machine) for d, found in exact.items()},
        "today": {d: None if found is None else shown(found, machine) for d, found in today.items()},
        **rest,
    }


def _inputs(machine: Machine) -> dict[str, float | None]:
    """The named numbers that all this rests on."""
    found = {name: float(value) for name, value in asdict(machine).items() if name not in ("name", "per_host")}
    return {name: None if isinf(value) else float(f"{value:.3g}") for name, value in found.items()}


def main() -> None:
    jax.config.update("jax_enable_x64", True)
    for name, count in REGIMES.items():
        size = count()
        found = regime(size, H100)
        print(f"\n{name}: n = {size.rows:,}, p = {size.parameters:,}")
        for d in DEVICES:
            each, rest = found["exact"][f"d{d}"], [f"{s} {found[s][f'd{d}']['ms']:g}" for s in SOLVERS[3:]]
            said = (
                "no exact one fits" if each is None else f"{each['solver']} {each['ms']:g} ms, most {each['longest']}"
            )
            print(f"  {d:>5}: {said}; {', '.join(rest)} ms", flush=True)
        if "--record" in sys.argv:
            record("plan", name, found, "plan")
    if "--record" in sys.argv:
        record("plan", "machines", {each.name: _inputs(each) for each in (H100, this_core())}, "plan")


if __name__ == "__main__":
    main()
