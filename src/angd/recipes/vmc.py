"""Ground-state experiments: molecules of the catalogue, and phases from options."""

from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

import equinox as eqx
import jax.numpy as jnp

import angd
from angd.method import baselines
from angd.problems import vmc
from angd.recipes.base import INFINITE, Vmc
from angd.recipes.tuned import falling
from angd.train.loop import Phase, Stand, cast


@dataclass(frozen=True)
class System:
    """A molecule with its network and mean field."""

    molecule: vmc.Molecule
    network: vmc.FermiNet
    mean_field: vmc.HartreeFock

    def problem(self, options: Vmc) -> vmc.GroundState:
        clipping = vmc.Clipping(None if options.clip == INFINITE else options.clip, options.centre)
        return vmc.GroundState(self.network, vmc.Coulomb(self.molecule), clipping)

    def chain(self, options: Vmc) -> Any:
        start, counts = vmc.AroundNuclei(self.molecule), (options.walkers, options.moves, options.burn_in)
        if options.chain == "graded":
            return vmc.Graded(start, *counts)
        if options.chain == "langevin":
            return vmc.Langevin(start, *counts)
        return vmc.Metropolis(start, *counts, one=options.chain == "one-electron")


@lru_cache
def system(name: str, network: str) -> System:
    """Solved once for all runs of a process."""
    molecule = vmc.MOLECULES[name]
    made = vmc.FermiNet(molecule) if network == "small" else vmc.FermiNet.published(molecule)
    return System(molecule, made, vmc.HartreeFock.of(molecule))


def phases(options: Vmc, made: System) -> list[Phase]:
    """Pretraining, then the optimiser on the same walkers, in single precision but for the linear systems."""
    chain = made.chain(options)
    before = vmc.Pretraining(made.network, made.mean_field)
    return [
        Phase(before, vmc.OfHartreeFock(chain, made.mean_field), options.pretrain, single=True),
        Phase(optimiser(options, made.molecule), chain, single=True, follows=True),
    ]


def optimiser(options: Vmc, molecule: vmc.Molecule) -> Any:
    """The method that the options describe, for a molecule."""
    if options.metric == "none":
        return baselines.adam(lambda k: options.rate / (1 + options.decay * k))
    transport = angd.CurrentJVP() if options.metric == "parametric-wasserstein" else angd.JVP()
    return angd.ANGD(flow(options), metric(options, molecule), solver(options), controller(options), transport)


def flow(options: Vmc) -> angd.ARGFlow:
    """The gain γ, and β with it, fall as 1/(1 + decay k): with momentum or without, the rate falls alike."""
    if options.mu == 0:
        return angd.ARGFlow.gradient(falling(options.rate, options.decay))
    h = options.rate**0.5
    return angd.ARGFlow(
        alpha=jnp.asarray((1 - options.mu) / h),
        beta=falling(options.beta, options.decay) if options.beta else 0.0,
        gamma=falling(1.0, options.decay),
        h=jnp.asarray(h),
    )


def metric(options: Vmc, molecule: vmc.Molecule) -> Any:
    """Fisher–Rao (without the quadratic term where there is no momentum) or Wasserstein-2."""
    clip, reset = _finite(options.force_clip), _finite(options.velocity_reset)
    if options.metric == "wasserstein":
        refit = vmc.ElectronRefit(molecule) if options.refit == "electrons" else angd.AffineRefit()
        return angd.Wasserstein(refit, clip, reset)
    if options.metric == "parametric-wasserstein":
        return angd.ParametricWasserstein(clip=clip)
    if options.mu == 0:
        return angd.FisherRao(limit=None, correction=False)
    return angd.FisherRao(limit=_finite(options.limit))


def solver(options: Vmc) -> Any:
    """The kernel (by Woodbury's identity for Wasserstein-2) or Kronecker factors; with projected momentum if asked."""
    damping = jnp.asarray(options.damping)
    if options.solver == "kfac":
        inner: Any = angd.KFAC(damping)
    else:
        inner = angd.Kernel(damping) if options.metric == "fisher-rao" else angd.Normal(damping)
    return angd.ProjectedMomentum(jnp.asarray(options.eta), inner) if options.eta > 0 else inner


def controller(options: Vmc) -> Any:
    """Restarts, then the norm constraint."""
    restarts = [angd.Restart()] if options.restart else []
    if options.restart_above < INFINITE:
        restarts.append(angd.Restart(options.restart_above))
    return angd.in_turn([*restarts, angd.StepNorm(jnp.asarray(options.norm))])


def _finite(value: float) -> float | None:
    return None if value == INFINITE else value


def chain_report(problem: vmc.GroundState, stand: Stand, energies: bool = True) -> dict[str, float]:
    """How the Markov chain does at a look, with its local energies or without."""
    walkers = stand.samples
    found = {"acceptance": float(walkers.acceptance), "respawned": float(walkers.respawned)}
    if not energies:
        return found
    return found | {"masked": float(_masked(problem, stand.params, walkers.x))}


@eqx.filter_jit
def _masked(problem: vmc.GroundState, params: Any, xs: Any) -> Any:
    return jnp.sum(~jnp.isfinite(problem.local_energies(params, xs)))


def final(made: System, options: Vmc, params: Any, key: Any) -> dict[str, float]:
    """The energy on fresh walkers that have settled ten times as long as those of training; none if none is finite."""
    chain = replace(options, burn_in=10 * options.burn_in)
    try:
        found = vmc.evaluate(made.problem(options), cast(params, True), made.chain(chain), key, options.measurements)
    except vmc.RefusedWave:
        return dict.fromkeys(("energy", "error", "standard_error", "rhat"), float("nan"))
    exact = made.molecule.exact
    return asdict(found) | {
        "standard_error": found.error,
        "error": float("nan") if exact is None else found.energy - exact,
        "hartree_fock": made.mean_field.energy,
    }
