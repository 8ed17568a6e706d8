"""Recipes for densities: Fisher–Rao or Wasserstein-2, plain or accelerated, on the walkers of a Markov chain.

Wave functions of molecules are pretrained to Hartree–Fock first. A density of your own brings its chain or sampler in
the task. Imports nothing heavy.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar

from angd import address
from angd.recipes.base import INFINITE, Phase, Recipe, number, one_of, switch, without_effect
from angd.recipes.pinn import (
    ALPHA,
    ALPHA_DECAY,
    BETA_DECAY,
    DECAYS,
    H_DECAY,
    made,
    solver,
    too_much_friction,
)

RAYS = ("fisher-rao", "fubini-study")  # the right-hand side is known at the samples
COUNTS = ("walkers", "moves", "burn_in")
SETTLE = 10  # times longer than in training do the walkers of the final evaluation settle


@dataclass(frozen=True)
class Vmc(Recipe):
    """Ground states and other densities: natural gradients, plain or accelerated, or Adam.

    Rates and damping are those of ρ = ψ²: twice and four times what the literature writes for log|ψ|. Safety options
    (clipping, norm, restart) mean the same for every metric.

    **Arguments:** see `angd run vmc-be angd-fr --help`; `rate` and `norm` are the ones to tune.
    """

    double: ClassVar[bool] = False
    either: ClassVar[tuple[tuple[str, str], ...]] = (("mu", "alpha"),)

    metric: str = one_of(
        *("fisher-rao", "wasserstein", "parametric-wasserstein", "fubini-study", "none"),
        about="fubini-study is for amplitudes with a phase, none is Adam",
        own="metric",
    )
    rate: float = number(0.01, 1e-9, 10, "h² γ at the start")
    mu: float = number(0, 0, 0.9999, "momentum μ = 1 − hα at the start; 0 is plain natural gradient descent")
    alpha: float = number(0, 0, 1e6, ALPHA)
    beta: float = number(0, 0, 10, "Hessian-driven damping β at the start")
    decay: float = number(1e-3, 0, 10, "γ, and the rate with it, falls as 1/(1 + decay k)")
    h_decay: float = number(0, 0, 10, H_DECAY)
    alpha_decay: float = number(0, 0, 10, ALPHA_DECAY)
    beta_decay: float = number(1e-3, 0, 10, BETA_DECAY)
    damping: float = number(4e-3, 1e-12, 1e6, "λ")
    eta: float = number(0.99, 0, 0.9999, "projected momentum η; 0 is none")
    solver: str = one_of(
        *("kernel", "normal", "kfac"),
        about="how the linear systems are solved; normal: in the smaller form",
        own="solver",
    )
    norm: float = number(0.05, 1e-12, 1e12, "C of the norm constraint ‖h d‖² ≤ C")
    norm_in_metric: bool = switch(False, "the norm constraint is h² dᵀGd ≤ C")
    restart: bool = switch(False, "drop the momentum when it points uphill")
    restart_above: float = number(INFINITE, 1e-9, INFINITE, "drop the momentum when ‖d‖ is larger")
    limit: float = number(0.5, 1e-6, INFINITE, "bound of h|φ| in the quadratic term of Fisher–Rao")
    implicit: bool = switch(False, "take that term implicitly, with --limit inf")
    clip: float = number(5, 0.1, INFINITE, "local energies within centre ± clip × mean absolute deviation")
    centre: str = one_of("median", "mean", about="centre of the clipping")
    force_clip: float = number(1, 1e-3, INFINITE, "bound of each coordinate of ∇E_L, for Wasserstein-2")
    velocity_reset: float = number(INFINITE, 1e-3, INFINITE, "coordinates of V beyond this are set to 0")
    refit: str = one_of("electrons", "affine", about="how velocities are carried to moved walkers, for Wasserstein-2")
    walkers: int = number(512, 1, 10**7, "walkers")
    moves: int = number(10, 1, 10**6, "moves of the chain between steps")
    burn_in: int = number(200, 0, 10**7, "moves before the first step")
    chain: str = one_of("graded", "metropolis", "one-electron", "langevin", about="which Markov chain")
    pretrain: int = number(400, 0, 10**9, "steps of pretraining to Hartree–Fock, for molecules; 0 is none")
    measurements: int = number(200, 4, 10**7, "measurements of the final evaluation")

    def contradiction(self) -> str | None:
        return too_much_friction(self) or without_effect(self, self._idle(), Vmc)

    def _idle(self) -> tuple[str, ...]:
        """Options that the method does not have."""
        if self.metric == "none":
            flow = ("mu", "alpha", "beta", *DECAYS, "damping", "solver", "norm", "norm_in_metric", "restart")
            return (*flow, "restart_above", "limit", "implicit", "force_clip", "velocity_reset", "refit")
        other = ("force_clip", "velocity_reset") if self.metric in RAYS else ("limit", "implicit")
        other = (*other, "implicit") if self.metric == "fubini-study" else other
        other = other if self.metric == "wasserstein" else (*other, "refit")
        return other if self.accelerated else (*other, "beta", *DECAYS, "limit", "implicit", "refit")

    @property
    def accelerated(self) -> bool:
        """Is there momentum of the flow?"""
        return self.mu > 0 or self.alpha > 0

    def problem(self, task: Any) -> Any:
        """With the clipping that was asked for."""
        if (self.clip, self.centre) == (Vmc.clip, Vmc.centre) or not hasattr(task.problem, "clipping"):
            return task.problem
        from angd.problems.vmc import Clipping

        return replace(task.problem, clipping=Clipping(_finite(self.clip), self.centre))

    def phases(self, task: Any, seed: int = 0) -> list[Phase]:
        """Pretraining, then the optimiser on the same walkers; molecules in single precision but for the systems."""
        molecule, chain = molecule_of(task), self.markov_chain(task)
        if molecule is None:
            return [Phase(self.optimiser(None), chain)]
        last = Phase(self.optimiser(molecule), chain, single=True, follows=self.pretrain > 0, name="energy")
        if self.pretrain == 0:
            return [last]
        from angd.problems.vmc import OfHartreeFock, Pretraining

        target = mean_field(molecule)
        before = Pretraining(task.problem.log_psi, target)
        chained = OfHartreeFock(chain, target)
        return [Phase(before, chained, self.pretrain, single=True, pretraining=True, name="pretraining"), last]

    def markov_chain(self, task: Any) -> Any:
        """The task's own, with the counts that differ from the usual ones, or the one for its molecule."""
        if task.samples is not None:
            changed = {name: getattr(self, name) for name in COUNTS if getattr(self, name) != getattr(Vmc, name)}
            own = task.sampler()
            return replace(own, **changed) if changed and hasattr(own, "move") else own
        molecule = molecule_of(task)
        if molecule is None and task.is_drawn:
            return task.draws(self.walkers)
        if molecule is None:
            raise ValueError(
                f"{task.name}: a density of your own needs samples=: a Markov chain such as Metropolis, a sampler "
                "(key, problem, params) -> Samples, or Samples that stay."
            )
        from angd.problems import vmc

        start, counts = vmc.AroundNuclei(molecule), [getattr(self, name) for name in COUNTS]
        if self.chain in ("graded", "langevin"):
            return (vmc.Graded if self.chain == "graded" else vmc.Langevin)(start, *counts)
        return vmc.Metropolis(start, *counts, one=self.chain == "one-electron")

    def optimiser(self, molecule: Any) -> Any:
        """The method that the options describe, for a molecule or None; without momentum it is a published one."""
        import angd
        from angd.method import baselines
        from angd.recipes import published
        from angd.recipes.tuned import falling

        if self.metric == "none":
            return baselines.adam(lambda k: self.rate / (1 + self.decay * k))
        if self.accelerated:
            transport = angd.CurrentJVP() if self.metric == "parametric-wasserstein" else angd.JVP()
            return angd.ANGD(self.flow(), self.space(molecule), self.inverse(), self.control(), transport)
        rate = falling(self.rate / 2, self.decay)  # published rates are those of log|ψ|
        if self.metric in RAYS:
            metric = angd.FubiniStudy(limit=None, correction=False) if self.metric == "fubini-study" else None
            return published.minsr(rate, solver=self.inverse(), controller=self.control(), metric=metric)
        return published.wqmc(rate, metric=self.space(molecule), solver=self.inverse(), controller=self.control())

    def flow(self) -> Any:
        """The gain γ falls as 1/(1 + decay k): with momentum or without, the rate falls alike."""
        from angd.recipes.tuned import falling, flow_of

        return flow_of(self, self.beta, gamma=falling(1.0, self.decay))

    def space(self, molecule: Any) -> Any:
        """The metric, for accelerated Fisher–Rao and for Wasserstein-2."""
        import angd

        if address.is_address(self.metric):
            return made(self.metric, "metric")
        clip, reset = _finite(self.force_clip), _finite(self.velocity_reset)
        if self.metric == "fisher-rao":
            return angd.FisherRao(limit=_finite(self.limit), implicit=self.implicit)
        if self.metric == "fubini-study":
            return angd.FubiniStudy(limit=_finite(self.limit))
        if self.metric == "parametric-wasserstein":
            return angd.ParametricWasserstein(clip=clip)
        if molecule is None or self.refit == "affine":
            return angd.Wasserstein(angd.AffineRefit(), clip, reset)
        from angd.problems.vmc import ElectronRefit

        return angd.Wasserstein(ElectronRefit(molecule), clip, reset)

    def inverse(self) -> Any:
        """The kernel (by Woodbury's identity for Wasserstein-2) or Kronecker factors; projected momentum if asked."""
        import jax.numpy as jnp

        import angd

        damping = jnp.asarray(self.damping)
        if self.solver == "kfac" or address.is_address(self.solver):
            inner = solver(self.solver, damping)
        else:
            rows = self.metric in RAYS and self.solver == "kernel"
            inner = angd.Kernel(damping) if rows else angd.Normal(damping)
        return angd.ProjectedMomentum(jnp.asarray(self.eta), inner) if self.eta > 0 else inner

    def control(self) -> Any:
        """Restarts, then the norm constraint."""
        import jax.numpy as jnp

        import angd

        restarts = [angd.Restart()] if self.restart else []
        if self.restart_above < INFINITE:
            restarts.append(angd.Restart(self.restart_above))
        return angd.in_turn([*restarts, angd.StepNorm(jnp.asarray(self.norm), self.norm_in_metric)])

    def final(self, task: Any, observables: Any = None) -> Callable[[Any, Any], dict[str, Any]] | None:
        """The energy on fresh walkers, with Hartree–Fock's where there is one; exact where states are summed."""
        chain, molecule = self.markov_chain(task), molecule_of(task)
        if hasattr(chain, "energy"):
            from angd.problems.energies import exact_energy

            return lambda params, key: exact_energy(task.problem, params, chain, task.energy, observables)
        if not (hasattr(task.problem, "local_energies") and hasattr(chain, "move")):
            return None
        from angd.problems.energies import final_energy

        known = {} if molecule is None or not self.pretrain else {"hartree_fock": mean_field(molecule).energy}
        if hasattr(task.problem, "hamiltonian"):
            known["sites"] = float(task.problem.hamiltonian.size)
        problem, settled = self.problem(task), replace(chain, burn_in=SETTLE * chain.burn_in)
        single = molecule is not None
        return lambda params, key: (
            final_energy(problem, params, settled, key, self.measurements, task.energy, single, observables) | known
        )


def molecule_of(task: Any) -> Any:
    """The molecule of a task's wave function, None where it is another problem."""
    return getattr(getattr(task.problem, "log_psi", None), "molecule", None)


@lru_cache
def mean_field(molecule: Any) -> Any:
    """Hartree–Fock, solved once for all runs of a process."""
    from angd.problems.vmc import HartreeFock

    return HartreeFock.of(molecule)


def _finite(value: float) -> float | None:
    return None if value == INFINITE else value
