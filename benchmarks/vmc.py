"""Ground states, part by part: forward Laplacian against a loop, one step split, kernels, two devices, and chains.

    python benchmarks/vmc.py [--quick | --record] [--published | --chains]

- "loop" is the Laplacian one second derivative at a time (`kinetic_energy_by_loop`); "folx, all at once" is the forward
  Laplacian of all walkers together, "folx, chunks" what `GroundState` does with any wave function, "own, chunks" what
  it does with a FermiNet, which brings a forward Laplacian of its own.
- The parts of a Fisher–Rao step: moves of the chain, local energies, rows ∂_θ log ρ, the n × n kernel from them (dense,
  or from the layers' factors), the solution in double precision.
- Rows and kernel together: "reverse mode" is what one writes without taps, `vmap(grad)` and one matrix product; "dense"
  assembles the rows from the layers' factors and forms half of the product; "as chosen" is what a step does. Also for
  the sizes of the SPRING paper, where the matrix of N₂ has 3 GB (`--published` alone).
- Two devices are simulated on the cores of this machine, walkers split between them.
- Chains are compared by moves, not by time (one wave function each, with its gradient for Langevin): autocorrelation
  times, in moves, of the electrons' dipole and of the potential energy, on the Hartree–Fock density of Be (`--chains`
  alone).

Times of one system come from one run, interleaved; read the ratios.
"""

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

# Two simulated devices; must precede the import of JAX. Each blocks a thread of XLA's pool while it waits for batched
# determinants, which are computed by threads of the same pool: with one thread per device it would stand still.
os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=2")
os.environ.setdefault("PJRT_NPROC", "4")

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_factor, cho_solve

from angd import split
from angd.method.jacobian import Dense, Factored, jacobian
from angd.method.parallel import mesh, replicate
from angd.problems.statistics import autocorrelation_time
from angd.problems.vmc import (
    MOLECULES,
    AroundNuclei,
    Coulomb,
    FermiNet,
    Graded,
    GroundState,
    HartreeFock,
    Langevin,
    Metropolis,
    Walkers,
)
from angd.problems.vmc.problem import MANY, SPARSITY, kinetic_energy_by_loop
from angd.train.loop import cast
from timing import best_times, milliseconds, record


def ready(network: FermiNet, walkers: int) -> tuple[GroundState, Any, Any, Graded]:
    """The problem in single precision, parameters, settled walkers and their chain."""
    molecule = network.molecule
    problem = GroundState(network, Coulomb(molecule))
    params = cast(network.init(jax.random.key(0)), True)
    chain = Graded(AroundNuclei(molecule), walkers=walkers, burn_in=20)
    return problem, params, cast(eqx.filter_jit(chain)(jax.random.key(1), problem, params), True), chain


def laplacians(problem: GroundState, params: Any, xs: Any) -> dict[str, Callable[[], Any]]:
    """Local energies of all walkers in several ways."""

    def loop(params: Any, x: Any) -> Any:
        return kinetic_energy_by_loop(lambda y: problem.log_psi(params, y)[1], x) + problem.potential(x)

    by_loop = eqx.filter_jit(lambda params, xs: jax.vmap(loop, (None, 0))(params, xs))
    by_folx = replace(problem, sparsity=SPARSITY * (xs.shape[1] >= MANY))
    found = {
        "local energy, loop": by_loop,
        "local energy, folx all at once": eqx.filter_jit(
            lambda params, xs: jax.vmap(by_folx.variation, (None, 0))(params, xs)
        ),
        "local energy, folx in chunks": eqx.filter_jit(by_folx.local_energies),
        "local energy, own in chunks": eqx.filter_jit(problem.local_energies),
    }
    return {name: partial(job, params, xs) for name, job in found.items()}


def parts(problem: GroundState, params: Any, walkers: Any, chain: Graded) -> dict[str, Callable[[], Any]]:
    """What a step is made of."""
    xs, n = walkers.x, len(walkers.x)
    move = eqx.filter_jit(chain.move)
    build = {form: eqx.filter_jit(partial(jacobian, problem.log_density, form=form)) for form in (Dense, Factored)}
    rows = {form: make(params, xs) for form, make in build.items()}
    kernel = eqx.filter_jit(lambda O: O.kernel())
    K = jnp.asarray(kernel(rows[Dense]), jnp.float64)
    solve = jax.jit(lambda K, y: cho_solve(cho_factor(K + 1e-3 * n * jnp.eye(n)), y))
    return {
        "ten moves": lambda: move(jax.random.key(2), problem, params, walkers).x,
        "rows, dense": lambda: jax.tree.leaves(build[Dense](params, xs)),
        "rows, factors": lambda: jax.tree.leaves(build[Factored](params, xs)),
        "kernel of dense rows": partial(kernel, rows[Dense]),
        "kernel of factors": partial(kernel, rows[Factored]),
        "Cholesky and solve": partial(solve, K, jnp.ones(n)),
    }


def kernels(problem: GroundState, params: Any, xs: Any) -> dict[str, Callable[[], Any]]:
    """∂_θ log ρ and its kernel, in several ways."""

    def reverse(params: Any, xs: Any) -> Any:
        rows = jax.vmap(jax.grad(problem.log_density), (None, 0))(params, xs)
        O = jnp.concatenate([leaf.reshape(len(xs), -1) for leaf in jax.tree.leaves(rows)], axis=1)
        return O @ O.T

    found = {
        "rows and kernel, reverse mode": jax.jit(reverse),
        "rows and kernel, dense": eqx.filter_jit(
            lambda params, xs: jacobian(problem.log_density, params, xs, form=Dense).kernel()
        ),
        "rows and kernel, as chosen": eqx.filter_jit(
            lambda params, xs: jacobian(problem.log_density, params, xs).kernel()
        ),
    }
    return {name: partial(job, params, xs) for name, job in found.items()}


def devices(problem: GroundState, params: Any, walkers: Walkers, chain: Graded) -> dict[str, Callable[[], Any]]:
    """Ten moves and local energies on one device, and with the walkers split between two."""
    both = mesh(jax.devices()[:2])
    energies, move = eqx.filter_jit(problem.local_energies), eqx.filter_jit(chain.move)
    here, there = (params, walkers), (replicate(params, both), split(walkers, both))
    found = [np.asarray(energies(params, walkers.x)) for params, walkers in (here, there)]
    print(f"  two devices: local energies differ by at most {np.max(np.abs(found[0] - found[1])):.1e} Ha", flush=True)

    def job(params: Any, walkers: Walkers) -> Any:
        moved = move(jax.random.key(3), problem, params, walkers)
        return moved.x, energies(params, moved.x)

    return {
        "moves and energies, one device": partial(job, *here),
        "moves and energies, two devices": partial(job, *there),
    }


def report(name: str, walkers: int, repeats: int) -> None:
    """All groups of one system."""
    problem, params, start, chain = ready(FermiNet(MOLECULES[name]), walkers)
    headline(name, walkers, params)
    groups: dict[str, Any] = {
        "Laplacian": (laplacians(problem, params, start.x), "local energy, loop"),
        "step": (parts(problem, params, start, chain), None),
        "kernel": (kernels(problem, params, start.x), "rows and kernel, reverse mode"),
    }
    if len(jax.devices()) > 1:
        groups["devices"] = devices(problem, params, start, chain), "moves and energies, one device"
    found: dict[str, float] = {}
    for jobs, base in groups.values():
        found |= timed(jobs, base, repeats)
    keep(name, found)


def published(name: str, walkers: int, repeats: int) -> None:
    """The kernel with published sizes."""
    problem, params, start, _ = ready(FermiNet.published(MOLECULES[name]), walkers)
    headline(f"{name}, published sizes", walkers, params)
    keep(f"{name}_published", timed(kernels(problem, params, start.x), "rows and kernel, reverse mode", repeats))


def headline(name: str, walkers: int, params: Any) -> None:
    p = sum(leaf.size for leaf in jax.tree.leaves(params))
    print(f"\n{name}: {walkers} walkers, {p} parameters, float32", flush=True)


def timed(jobs: dict[str, Callable[[], Any]], base: str | None, repeats: int) -> dict[str, float]:
    """Times of a group, printed beside the one that they are compared with, if there is one."""
    times = best_times(jobs, repeats)
    for part, seconds in times.items():
        ratio = f"{times[base] / seconds:8.2f} × faster than {base}" if base else ""
        print(f"  {part:<32}{1e3 * seconds:10.1f} ms{ratio}", flush=True)
    return times


def keep(case: str, found: dict[str, float]) -> None:
    """Record, if asked."""
    if "--record" in sys.argv:
        record("vmc", case, milliseconds(found) | ratios(found))


def chains(name: str, quick: bool) -> None:
    """How many moves walkers need to forget where they were."""
    molecule = MOLECULES[name]
    problem, start, moves = GroundState(HartreeFock.of(molecule), Coulomb(molecule)), AroundNuclei(molecule), 15
    counts, measurements = (8, moves, 10) if quick else (64, moves, 1500), 8 if quick else 500
    kinds = {
        "metropolis": Metropolis(start, *counts),
        "one_electron": Metropolis(start, *counts, one=True),
        "langevin": Langevin(start, *counts),
        "graded": Graded(start, *counts),
    }
    print(f"\n{name}: autocorrelation times in moves", flush=True)
    found: dict[str, float] = {}
    for kind, chain in kinds.items():
        dipole, potential = forgetting(problem, chain, moves, measurements)
        found |= {f"{kind}_dipole": round(dipole), f"{kind}_potential": round(potential)}
        print(f"  {kind:<16}dipole {dipole:6.0f}    potential energy {potential:6.0f}", flush=True)
    if "--record" in sys.argv:
        record("vmc", f"{name}_chains", found)


def forgetting(problem: GroundState, chain: Any, moves: int, measurements: int) -> tuple[float, float]:
    """Autocorrelation times, in moves, of Σ z and of V."""
    move, potential = eqx.filter_jit(chain.move), jax.jit(jax.vmap(problem.potential))
    walkers, rows = eqx.filter_jit(chain)(jax.random.key(0), problem, None), []
    for k in range(measurements):
        walkers = move(jax.random.fold_in(jax.random.key(1), k), problem, None, walkers)
        rows.append((np.sum(walkers.x[..., 2], axis=1), np.asarray(potential(walkers.x))))
    z, V = (np.stack(series) for series in zip(*rows, strict=True))
    return moves * float(autocorrelation_time(z)), moves * float(autocorrelation_time(V))


def ratios(times: dict[str, float]) -> dict[str, float]:
    """What is claimed: how many times faster."""
    pairs = {
        "laplacian": ("local energy, loop", "local energy, folx in chunks"),
        "own_laplacian": ("local energy, loop", "local energy, own in chunks"),
        "reverse_mode": ("rows and kernel, reverse mode", "rows and kernel, as chosen"),
        "dense": ("rows and kernel, dense", "rows and kernel, as chosen"),
        "devices": ("moves and energies, one device", "moves and energies, two devices"),
    }
    return {f"{name}_ratio": round(times[a] / times[b], 2) for name, (a, b) in pairs.items() if a in times}


def main() -> None:
    jax.config.update("jax_enable_x64", True)
    quick = "--quick" in sys.argv
    alone = {"--published", "--chains"} & set(sys.argv)
    for name in ("Be", "N2"):
        if not alone:
            report(name, 64 if quick else 1000, 1 if quick else 3)
        if "--chains" not in alone:
            published(name, 64 if quick else 1000, 1)
    if "--published" not in alone:
        chains("Be", quick)


if __name__ == "__main__":
    main()
