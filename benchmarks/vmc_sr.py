"""One step of stochastic reconfiguration beside NetKet's own, on the same samples and local energies.

    python benchmarks/vmc_sr.py [--quick]

Needs `angd[bench]`. NetKet's is `VMC_SR` in each of its forms; ours is `VMC_ANGD(vmc_sr(...))`. Times are those that
all cores spend on `compute_loss_and_update` with samples at hand (no Markov chain): local energies, Jacobian, matrix,
factorisation and update. Each is the least of several, interleaved. The updates are compared as well.
"""

import contextlib
import io
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import netket as nk
import optax

from angd.compat.netket import VMC_ANGD, vmc_sr

RATE, SHIFT, MU = 0.02, 1e-3, 0.8
FORMS = {
    "p x p": {"use_ntk": False},
    "kernel": {"use_ntk": True, "on_the_fly": False},
    "kernel on the fly": {"use_ntk": True, "on_the_fly": True},
}


def state(spins: int, features: int, n: int) -> Any:
    hilbert = nk.hilbert.Spin(0.5, spins)
    sampler = nk.sampler.MetropolisLocal(hilbert, n_chains=16)
    model = nk.models.RBM(alpha=features, param_dtype=float)
    return nk.vqs.MCState(sampler, model, n_samples=n, seed=1, sampler_seed=2)


def drivers(spins: int, features: int, n: int) -> dict[str, Any]:
    """Each on a state of its own; the samples are the same."""
    graph, hilbert = nk.graph.Chain(spins), nk.hilbert.Spin(0.5, spins)
    hamiltonian = nk.operator.IsingJax(hilbert, graph, h=1.0)
    ours = VMC_ANGD(hamiltonian, vmc_sr(RATE, SHIFT, MU), variational_state=state(spins, features, n))
    found: dict[str, Any] = {"angd": ours}
    for name, options in FORMS.items():
        found[f"NetKet, {name}"] = nk.driver.VMC_SR(
            hamiltonian,
            optax.sgd(RATE),
            variational_state=state(spins, features, n),
            diag_shift=SHIFT,
            momentum=MU,
            **options,
        )
    return found


def update(driver: Any) -> Any:
    driver._loss_stats, driver._dp = driver.compute_loss_and_update()
    return driver._dp


def least_times(jobs: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """Of all cores together, which other programs disturb less than the clock."""
    best = dict.fromkeys(jobs, float("inf"))
    for repeat in range(repeats + 1):
        for name, job in jobs.items():
            start = time.process_time()
            jax.block_until_ready(job())
            best[name] = min(best[name], time.process_time() - start) if repeat else float("inf")
    return best


def far(ours: Any, theirs: Any) -> float:
    """Relative difference of θ + ours and θ − rate × theirs."""
    difference = jax.tree.map(lambda a, b: a + RATE * b, ours, theirs)
    return float(optax.tree.norm(difference) / optax.tree.norm(ours))


def report(spins: int, features: int, n: int, repeats: int) -> dict[str, float]:
    """Milliseconds of a step of each."""
    with contextlib.redirect_stdout(io.StringIO()):
        found = drivers(spins, features, n)
    first = {name: update(driver) for name, driver in found.items()}
    for driver in found.values():
        assert jnp.array_equal(driver.state.samples, found["angd"].state.samples)
    times = least_times({name: partial(update, driver) for name, driver in found.items()}, repeats)
    print(f"\n{spins} spins, {found['angd'].state.n_parameters} parameters, n = {n}")
    for name, seconds in times.items():
        difference = "" if name == "angd" else f"   update differs by {far(first['angd'], first[name]):.0e}"
        print(f"  {name:<28}{1e3 * seconds:9.1f} ms, ours over it {times['angd'] / seconds:.2f}{difference}")
    return {name: float(f"{1e3 * seconds:.3g}") for name, seconds in times.items()}


def main() -> None:
    quick = "--quick" in sys.argv
    for spins, features, n in [(8, 1, 64)] if quick else [(16, 1, 1024), (16, 4, 1024), (16, 16, 1024)]:
        report(spins, features, n, 1 if quick else 10)


if __name__ == "__main__":
    main()
