"""What a wave function is worth: fresh walkers, a long chain, and an error bar that knows about autocorrelation."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from angd.method.samples import check_start
from angd.problems import estimate
from angd.problems.observables import check_functions, described, estimates_of, functions_of, group_means
from angd.problems.statistics import autocorrelation_time, rhat
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
    - `variance_error`: the standard error of `variance`.
    - `observables`: what else was measured, by name; each has `value` and `error`, numbers or arrays.
    """

    energy: float
    error: float
    variance: float
    time: float
    effective: float
    rhat: float
    acceptance: float
    bad: int
    variance_error: float = 0.0
    observables: Mapping[str, estimate.Estimate] = field(default_factory=dict)


def evaluate(
    problem: Any,
    params: PyTree,
    chain: Any,
    key: Array,
    measurements: int = 100,
    observables: Any = None,
) -> Estimate:
    """The energy on fresh walkers, in the precision of the parameters; training energies are not used, they lie.

    **Arguments:**

    - `problem`: a `GroundState` or a `LatticeState`.
    - `params`: of its wave function.
    - `chain`: a Markov chain, such as `Metropolis`, `Graded` or `Exchange`.
    - `key`: of the chain.
    - `measurements`: how often the walkers are measured, at least 4; the chain moves in between.
    - `observables`: what else to measure, by name: functions of one walker x, or of (params, x), that give a number or
      an array. `Dipole`, `Density`, `PairDistribution` and `Forces` are ready-made.

    **Returns:** an `Estimate`.

    **Example:** `evaluate(problem, params, chain, key, observables={"radius": lambda x: jnp.linalg.norm(x)})`
    """
    if measurements < 4:
        raise ValueError(f"evaluate: at least 4 measurements are needed, got {measurements}.")
    functions = functions_of(observables)
    place, run = jax.random.split(key)
    if functions:
        check_functions(functions, params, eqx.filter_eval_shape(_drawn, chain, place, problem, params).x)
    walkers = _drawn(chain, place, problem, params)
    check_start(problem, params, walkers)
    rows, rates, seen = [], [], []
    for k in range(measurements):
        walkers = _moved(chain, jax.random.fold_in(run, k), problem, params, walkers)
        rows.append(np.real(np.asarray(_local_energies(problem, params, walkers.x))).astype(float))
        rates.append(float(walkers.acceptance))
        if functions:
            seen.append(jax.device_get(_measured(functions, params, walkers.x)))
    found = summarise(np.stack(rows), float(np.mean(rates)))
    return replace(found, observables=estimates_of(seen))


def final_energy(
    problem: Any,
    params: PyTree,
    chain: Any,
    key: Array,
    measurements: int,
    reference: float | None,
    single: bool,
    observables: Any = None,
) -> dict[str, Any]:
    """The last word about a run: the energy on fresh walkers, with its distance from the reference.

    **Arguments:** as of `evaluate`; `reference`, an energy or None; `single`: in single precision.

    **Returns:** an `Estimate` as a dictionary whose `error` is above the reference, with `standard_error`; all NaN
    where no local energy is finite. `observables`, where there are some, as JSON can hold them.
    """
    try:
        chosen = in_precision(params, jnp.float32) if single else params
        found = evaluate(problem, chosen, chain, key, measurements, observables)
    except RefusedWave:
        return dict.fromkeys(("energy", "error", "standard_error", "rhat"), float("nan"))
    above = float("nan") if reference is None else found.energy - reference
    numbers = asdict(replace(found, observables={})) | {"standard_error": found.error, "error": above}
    del numbers["observables"]
    return numbers | ({"observables": described(found.observables, observables)} if observables else {})


def exact_energy(
    problem: Any, params: PyTree, states: Any, reference: float | None, observables: Any = None
) -> dict[str, Any]:
    """The same where all states can be summed, by a sampler with `energy(problem, params)`.

    **Returns:** `energy`, its `error` above the reference, a `standard_error` of 0, and the number of `states`;
    `observables` without error, where there are some.
    """
    energy = float(eqx.filter_jit(states.energy)(problem, params))
    above = float("nan") if reference is None else energy - reference
    found = {"energy": energy, "error": above, "standard_error": 0.0, "states": float(states.basis.size)}
    functions = functions_of(observables)
    if not observables:
        return found
    check_functions(functions, params, states.basis.x)
    means = eqx.filter_jit(states.means)(functions, problem, params)
    exact = {name: estimate.Estimate(np.asarray(mean), np.zeros(mean.shape)) for name, mean in means.items()}
    return found | {"observables": described(exact, observables)}


# Functions of the module, so that states of one wave function are compiled once, however many are evaluated.
@eqx.filter_jit
def _drawn(chain: Any, key: Array, problem: Any, params: PyTree) -> Any:
    return _like(params, chain(key, problem, params))


@eqx.filter_jit
def _moved(chain: Any, key: Array, problem: Any, params: PyTree, walkers: Any) -> Any:
    return _like(params, chain.move(key, problem, params, walkers))


@eqx.filter_jit
def _local_energies(problem: Any, params: PyTree, xs: Array) -> Array:
    return problem.local_energies(params, xs)


_measured = eqx.filter_jit(group_means)


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
    time = float(autocorrelation_time(filled))
    effective = filled.size / time
    error = float(np.sqrt(variance / effective))
    squares = (filled - mean) ** 2
    spread = float(np.sqrt(np.var(squares) * autocorrelation_time(squares) / squares.size))
    return Estimate(mean, error, variance, time, effective, rhat(filled), acceptance, int(bad.sum()), spread)
