"""One step of stochastic reconfiguration beside NetKet's own, on the same samples and local energies.

    python benchmarks/vmc_sr.py [--quick] [--model rbm|attention|convolution] [--samples N …] [--forms "kernel" …]
                                [--repeats N] [--record]

Needs `angd[bench]`. NetKet's is `VMC_SR` in each of its forms; ours is `VMC_ANGD(vmc_sr(...))`. Times are those that
all cores spend on `compute_loss_and_update` with samples at hand (no Markov chain): local energies, Jacobian, matrix,
factorisation and update. Local energies are NetKet's own on both sides, and timed alone as well. Each is the least of
several, interleaved. The updates are compared as well.
"""

import argparse
import contextlib
import io
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import netket as nk
import optax

from angd.compat.netket import VMC_ANGD, vmc_sr
from timing import RESULTS, save

RATE, SHIFT, MU = 0.02, 1e-3, 0.8
FORMS = {
    "p x p": {"use_ntk": False},
    "kernel": {"use_ntk": True, "on_the_fly": False},
    "kernel on the fly": {"use_ntk": True, "on_the_fly": True},
}


class Attention(nn.Module):
    """A transformer on patches of a chain."""

    patch: int = 2
    width: int = 32
    heads: int = 4
    hidden: int = 96
    layers: int = 2

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        x = nn.Dense(self.width, param_dtype=float)(x.reshape(*x.shape[:-1], -1, self.patch))
        for _ in range(self.layers):
            y = nn.LayerNorm(param_dtype=float)(x)
            x = x + nn.MultiHeadDotProductAttention(self.heads, param_dtype=float)(y, y)
            y = nn.gelu(nn.Dense(self.hidden, param_dtype=float)(nn.LayerNorm(param_dtype=float)(x)))
            x = x + nn.Dense(self.width, param_dtype=float)(y)
        return jnp.sum(nk.nn.log_cosh(nn.Dense(self.width, param_dtype=float)(x)), axis=(-2, -1))


class Convolution(nn.Module):
    """A convolutional network on a ring."""

    features: tuple[int, ...] = (32, 64, 32)
    width: int = 5

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        x = x[..., None]
        for k, features in enumerate(self.features):
            x = nn.gelu(x) if k else x
            x = nn.Conv(features, (self.width,), padding="CIRCULAR", param_dtype=float)(x)
        return jnp.sum(nk.nn.log_cosh(x), axis=(-2, -1))


MODELS: dict[str, Callable[[int], Any]] = {
    "rbm": lambda features: nk.models.RBM(alpha=features, param_dtype=float),
    "attention": lambda features: Attention(),
    "convolution": lambda features: Convolution(),
}


def state(model: Any, spins: int, n: int) -> Any:
    hilbert = nk.hilbert.Spin(0.5, spins)
    sampler = nk.sampler.MetropolisLocal(hilbert, n_chains=16)
    return nk.vqs.MCState(sampler, model, n_samples=n, seed=1, sampler_seed=2)


def drivers(model: Any, spins: int, n: int, forms: list[str]) -> dict[str, Any]:
    """Each on a state of its own; the samples are the same."""
    graph, hilbert = nk.graph.Chain(spins), nk.hilbert.Spin(0.5, spins)
    hamiltonian = nk.operator.IsingJax(hilbert, graph, h=1.0)
    ours = VMC_ANGD(hamiltonian, vmc_sr(RATE, SHIFT, MU), variational_state=state(model, spins, n))
    found: dict[str, Any] = {"angd": ours}
    for name in forms:
        found[f"NetKet, {name}"] = nk.driver.VMC_SR(
            hamiltonian,
            optax.sgd(RATE),
            variational_state=state(model, spins, n),
            diag_shift=SHIFT,
            momentum=MU,
            **FORMS[name],
        )
    return found


def update(driver: Any) -> Any:
    driver._loss_stats, driver._dp = driver.compute_loss_and_update()
    return driver._dp


def observe(driver: Any) -> Any:
    """The local energies of a step, which NetKet computes for all of them."""
    return driver._observe(driver.optimizer_state)[1].x["energy"]


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


def report(model: Any, spins: int, n: int, repeats: int, forms: list[str]) -> dict[str, float]:
    """Milliseconds of a step of each, and how far the updates are apart."""
    with contextlib.redirect_stdout(io.StringIO()):
        found = drivers(model, spins, n, forms)
    first = {name: update(driver) for name, driver in found.items()}
    for driver in found.values():
        assert jnp.array_equal(driver.state.samples, found["angd"].state.samples)
    jobs = {name: partial(update, driver) for name, driver in found.items()}
    times = least_times(jobs | {"local energies": partial(observe, found["angd"])}, repeats)
    energies = times.pop("local energies")
    print(f"\n{spins} spins, {found['angd'].state.n_parameters} parameters, n = {n}")
    print(f"  {'local energies alone':<28}{1e3 * energies:9.1f} ms")
    for name, seconds in times.items():
        difference = "" if name == "angd" else f"   update differs by {far(first['angd'], first[name]):.0e}"
        print(
            f"  {name:<28}{1e3 * seconds:9.1f} ms, ours over it {times['angd'] / seconds:.2f}{difference}", flush=True
        )
    apart = max((far(first["angd"], other) for name, other in first.items() if name != "angd"), default=0.0)
    milliseconds = {name: float(f"{1e3 * seconds:.3g}") for name, seconds in times.items()}
    milliseconds["local energies"] = float(f"{1e3 * energies:.3g}")
    return milliseconds | {"parameters": found["angd"].state.n_parameters, "apart": apart}


CASES = {"rbm": [(16, 1, 1024), (16, 4, 1024), (16, 16, 1024)]}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--model", choices=list(MODELS), default="rbm")
    parser.add_argument("--samples", type=int, nargs="+", default=[512, 1024])
    parser.add_argument("--forms", nargs="+", choices=list(FORMS), default=list(FORMS))
    parser.add_argument("--repeats", type=int, default=10)
    given = parser.parse_args()
    cases = CASES.get(given.model, [(20, 1, n) for n in given.samples])
    for spins, features, n in [(8, 1, 64)] if given.quick else cases:
        repeats = 1 if given.quick else given.repeats
        found = report(MODELS[given.model](features), spins, n, repeats, given.forms)
        if given.record:
            command = f"python benchmarks/vmc_sr.py --model {given.model} --record"
            save(RESULTS / "speed_sr.json", command, f"{given.model}_{n}", found)


if __name__ == "__main__":
    main()
