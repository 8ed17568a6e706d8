"""What a wave function is worth: fresh walkers, a long chain, and an error bar that knows about autocorrelation."""

from dataclasses import asdict, dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from angd.method.samples import check_start
from angd.tree import in_precision


class RefusedWave(ValueError):
    """A wave function that cannot be used, not finite or not antisymmetric; runs that diverge leave such behind."""


@dataclass(frozen=True)
class Estimate:
    """An energy with its standard error, and how far the chain can be trusted.

    **Attributes:**

    - `energy`: the mean of the local energies.
    - `error`: its standard error, autocorrelation included.
    - `variance`: of the local energies; 0 for an exact state.
    - `time`: autocorrelation time in measurements.
    - `effective`: number of independent samples.
    - `rhat`: Gelman and Rubin's comparison of chains; close to 1 is well mixed.
    - `acceptance`: of the chain's proposals.
    - `bad`: local energies that were not finite and left out.
    """

    energy: float
    error: float
    variance: float
    time: float
    effective: float
    rhat: float
    acceptance: float
    bad: int


def evaluate(problem: Any, params: PyTree, chain: Any, key: Array, measurements: int = 100) -> Estimate:
    """The energy on fresh walkers, in the precision of the parameters; training energies are not used, they lie.

    **Arguments:**

    - `problem`: a `GroundState` or a `LatticeState`.
    - `params`: of its wave function.
    - `chain`: a Markov chain, such as `Metropolis`, `Graded` or `Exchange`.
    - `key`: of the chain.
    - `measurements`: how often the walkers are measured, at least 4; the chain moves in between.

    **Returns:** an `Estimate`.
    """
    if measurements < 4:
        raise ValueError(f"evaluate: at least 4 measurements are needed, got {measurements}.")
    place, run = jax.random.split(key)
    draw, move, local = eqx.filter_jit(chain), eqx.filter_jit(chain.move), eqx.filter_jit(problem.local_energies)
    walkers = _like(params, draw(place, problem, params))
    check_start(problem, params, walkers)
    rows, rates = [], []
    for k in range(measurements):
        walkers = _like(params, move(jax.random.fold_in(run, k), problem, params, walkers))
        rows.append(np.real(np.asarray(local(params, walkers.x))).astype(float))
        rates.append(float(walkers.acceptance))
    return summarise(np.stack(rows), float(np.mean(rates)))


def final_energy(
    problem: Any, params: PyTree, chain: Any, key: Array, measurements: int, reference: float | None, single: bool
) -> dict[str, float]:
    """The last word about a run: the energy on fresh walkers, with its distance from the reference.

    **Arguments:** as of `evaluate`; `reference`, an energy or None; `single`: in single precision.

    **Returns:** an `Estimate` as a dictionary whose `error` is above the reference, with `standard_error`; all NaN
    where no local energy is finite.
    """
    try:
        chosen = in_precision(params, jnp.float32) if single else params
        found = evaluate(problem, chosen, chain, key, measurements)
    except RefusedWave:
        return dict.fromkeys(("energy", "error", "standard_error", "rhat"), float("nan"))
    above = float("nan") if reference is None else found.energy - reference
    return asdict(found) | {"standard_error": found.error, "error": above}


def exact_energy(problem: Any, params: PyTree, states: Any, reference: float | None) -> dict[str, float]:
    """The same where all states can be summed, by a sampler with `energy(problem, params)`.

    **Returns:** `energy`, its `error` above the reference, a `standard_error` of 0, and the number of `states`.
    """
    energy = float(eqx.filter_jit(states.energy)(problem, params))
    above = float("nan") if reference is None else energy - reference
    return {"energy": energy, "error": above, "standard_error": 0.0, "states": float(states.basis.size)}


def _like(params: PyTree, walkers: Any) -> Any:
    """Walkers in the precision of the parameters, if these have any."""
    leaves = [leaf for leaf in jax.tree.leaves(params) if eqx.is_inexact_array(leaf)]
    if not leaves:
        return walkers
    return in_precision(walkers, jnp.result_type(*leaves))


def summarise(energies: Float[np.ndarray, "T N"], acceptance: float) -> Estimate:
    """From T measurements of N chains."""
    bad = ~np.isfinite(energies)
    if bad.all():
        raise RefusedWave("evaluate: no local energy is finite: check log ψ, its parameters and the potential.")
    clean = np.where(bad, np.nan, energies)
    mean, variance = float(np.nanmean(clean)), float(np.nanvar(clean))
    filled = np.where(bad, mean, energies)
    time = autocorrelation_time(filled)
    effective = filled.size / time
    error = float(np.sqrt(variance / effective))
    return Estimate(mean, error, variance, time, effective, rhat(filled), acceptance, int(bad.sum()))


def autocorrelation_time(series: Float[np.ndarray, "T N"]) -> float:
    """τ = 1 + 2 Σ ρ(t), averaged over chains and cut where t ≥ 5 τ(t)."""
    T = series.shape[0]
    centred = series - series.mean()
    power = np.mean(centred**2)
    if power == 0:
        return 1.0
    total = 1.0
    for t in range(1, T):
        total += 2 * np.mean(centred[t:] * centred[:-t]) / power
        if t >= 5 * total:
            break
    return float(max(total, 1.0))


def rhat(series: Float[np.ndarray, "T N"]) -> float:
    """Gelman and Rubin's ratio on split chains: √(pooled variance / variance within); infinite for chains that stand
    still apart."""
    half = series.shape[0] // 2
    chains = np.concatenate([series[:half], series[half : 2 * half]], axis=1)
    within = np.mean(np.var(chains, axis=0, ddof=1))
    between = np.var(chains.mean(axis=0), ddof=1)
    if within > 0:
        return float(np.sqrt((within * (half - 1) / half + between) / within))
    return float("inf") if between > 0 else 1.0
