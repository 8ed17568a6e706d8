"""Markov chains for |ψ|²: walkers that go on from step to step, through blackjax.

A sampler is called once to place walkers and let them settle; afterwards `move` takes them along. The width of the
proposals follows the acceptance.
"""

import abc
from collections.abc import Callable
from typing import Any

import blackjax
import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int, PyTree

from angd.method.protocols import DensityProblem
from angd.method.samples import Samples
from angd.problems.vmc.chunks import in_chunks
from angd.problems.vmc.molecules import Molecule

CHUNK = 64  # walkers that are moved at a time


class Walkers(Samples):
    """Samples with what their Markov chain remembers.

    **Arguments:**

    - `x`: the walkers, shape (N, n, d).
    - `width`: of the chain's proposals.
    - `acceptance`: the last one.
    - `respawned`: how many walkers were replaced, being where the density is not finite.
    - `omega`: weights, shape (N,); 1/N by default.
    """

    width: Float[Array, ""]
    acceptance: Float[Array, ""]
    respawned: Int[Array, ""]

    def __init__(self, x: Any, width: Any, acceptance: Any = 0.0, respawned: Any = 0, omega: Any = None):
        super().__init__(x, omega)
        self.width, self.acceptance = jnp.asarray(width, float), jnp.asarray(acceptance, float)
        self.respawned = jnp.asarray(respawned, int)

    def masked(self, bad: Bool[Array, "n"]) -> "Walkers":
        """The same, and counted."""
        found = super().masked(bad)
        return eqx.tree_at(lambda walkers: walkers.respawned, found, self.respawned + jnp.sum(bad))


class AbstractChain(eqx.Module):
    """A Markov chain of `moves` transitions between two steps of the optimiser, and `burn_in` before the first."""

    start: eqx.AbstractVar[Any]
    walkers: eqx.AbstractVar[int]
    moves: eqx.AbstractVar[int]
    burn_in: eqx.AbstractVar[int]
    width: eqx.AbstractVar[float]
    target: eqx.AbstractVar[float]

    @abc.abstractmethod
    def transition(self, log_density: Any, width: Array) -> tuple[Any, Any]:
        """blackjax's `init` and `step` for proposals of a width."""

    def __call__(self, key: Array, problem: DensityProblem, params: PyTree) -> Walkers:
        """Fresh walkers, settled."""
        place, settle = jax.random.split(key)
        walkers = Walkers(self.start(place, self.walkers), self.width)
        if self.burn_in < 1:
            return walkers
        return self._run(settle, problem, params, self._begun(problem, params, walkers), self.burn_in)

    def move(self, key: Array, problem: DensityProblem, params: PyTree, samples: Walkers) -> Walkers:
        """The same walkers, some moves later; those where ρ is not finite are replaced by copies of others."""
        return self._run(key, problem, params, respawn(self._begun(problem, params, samples)), self.moves)

    def _begun(self, problem: DensityProblem, params: PyTree, samples: Walkers) -> Walkers:
        """Walkers with what blackjax keeps of each, its place and log ρ there, in place of x."""
        start = self.transition(_log_density(problem, params), samples.width)[0]
        return eqx.tree_at(lambda walkers: walkers.x, samples, in_chunks(start, samples.x, CHUNK))

    def _run(self, key: Array, problem: DensityProblem, params: PyTree, begun: Walkers, count: int) -> Walkers:
        log_density = _log_density(problem, params)

        def once(carry: tuple[Any, Array], key: Array) -> tuple[tuple[Any, Array], Array]:
            states, width = carry
            step = self.transition(log_density, width)[1]
            keys = jax.random.split(key, begun.omega.shape[0])
            states, rates = in_chunks(lambda pair: _moved(step, *pair), (keys, states), CHUNK)
            accepted = jnp.mean(rates)
            factor = jnp.where(accepted > self.target + 0.05, 1.05, jnp.where(accepted < self.target - 0.05, 0.95, 1.0))
            return (states, (width * factor).astype(width.dtype)), accepted

        (states, width), rates = lax.scan(once, (begun.x, begun.width), jax.random.split(key, count))
        return Walkers(states.position, width, jnp.mean(rates), begun.respawned, begun.omega)


def _moved(step: Callable[..., Any], key: Array, state: Any) -> tuple[Any, Array]:
    """One walker after a transition, and how likely that was to be accepted."""
    state, info = step(key, state)
    return state, info.acceptance_rate


def _log_density(problem: DensityProblem, params: PyTree) -> Callable[[Array], Array]:
    """log ρ at one place; where it is not a number, no walker goes."""

    def log_density(x: Array) -> Array:
        value = problem.log_density(params, x)
        return jnp.where(jnp.isnan(value), -jnp.inf, value)

    return log_density


class Metropolis(AbstractChain):
    """Random-walk Metropolis: Gaussian proposals for all particles at once, or for one at a time.

    **Arguments:**

    - `start`: places walkers, `AroundNuclei(molecule)` or `GaussianStart(particles, dimension)`.
    - `walkers`: how many; they are independent of each other.
    - `moves`: transitions between two steps of the optimiser; 10 for small atoms, more for molecules.
    - `burn_in`: transitions before the first step.
    - `width`: standard deviation of the proposals at first; it follows the acceptance.
    - `target`: the acceptance that the width is adapted to, in (0, 1).
    - `one`: move one particle at a time.

    **Returns:** called as `chain(key, problem, params)`, settled `Walkers`; `chain.move` takes them
    along.
    """

    start: Any
    walkers: int = eqx.field(static=True, default=512)
    moves: int = eqx.field(static=True, default=10)
    burn_in: int = eqx.field(static=True, default=200)
    width: float = 0.2
    target: float = 0.5
    one: bool = eqx.field(static=True, default=False)

    def __check_init__(self):
        check_chain(self)

    def transition(self, log_density: Any, width: Array) -> tuple[Any, Any]:
        def proposal(key: Array, x: Array) -> Array:
            noise = width.astype(x.dtype) * jax.random.normal(key, x.shape, x.dtype)
            if not self.one:
                return noise
            chosen = jax.random.randint(jax.random.fold_in(key, 1), (), 0, x.shape[0])
            return jnp.where((jnp.arange(x.shape[0]) == chosen)[:, None], noise, 0.0)

        algorithm = blackjax.additive_step_random_walk(log_density, proposal)
        return algorithm.init, algorithm.step


class Langevin(AbstractChain):
    """Metropolis-adjusted Langevin (MALA): proposals drift along ∇ log ρ (Roberts and Tweedie 1996).

    **Arguments:**

    - `start`: places walkers, `AroundNuclei(molecule)` or `GaussianStart(particles, dimension)`.
    - `walkers`: how many; they are independent of each other.
    - `moves`: transitions between two steps of the optimiser; 10 for small atoms, more for molecules.
    - `burn_in`: transitions before the first step.
    - `width`: √(2ε) of the time step ε at first; it follows the acceptance.
    - `target`: the acceptance that the width is adapted to, in (0, 1).

    **Returns:** called as `chain(key, problem, params)`, settled `Walkers`; `chain.move` takes them
    along.
    """

    start: Any
    walkers: int = eqx.field(static=True, default=512)
    moves: int = eqx.field(static=True, default=10)
    burn_in: int = eqx.field(static=True, default=200)
    width: float = 0.1
    target: float = 0.65

    def __check_init__(self):
        check_chain(self)

    def transition(self, log_density: Any, width: Array) -> tuple[Any, Any]:
        # blackjax's step is a time: x + ε ∇ log ρ + √(2ε) noise, which has the width √(2ε).
        algorithm = blackjax.mala(log_density, width**2 / 2)
        return algorithm.init, algorithm.step


def check_chain(chain: AbstractChain) -> None:
    """Refuse what cannot be a chain."""
    if chain.walkers != int(chain.walkers) or chain.walkers < 1:
        raise ValueError(f"{type(chain).__name__}: walkers must be a whole number, at least one, got {chain.walkers}.")
    if chain.moves < 1 or chain.burn_in < 0 or not chain.width > 0 or not 0 < chain.target < 1:
        raise ValueError(f"{type(chain).__name__}: it takes moves ≥ 1, burn_in ≥ 0, width > 0 and 0 < target < 1.")


def respawn(begun: Walkers) -> Walkers:
    """Walkers where log ρ, known of each, is not finite become copies of ones where it is."""
    found = begun.masked(~jnp.isfinite(begun.x.logdensity)).weighed_as(begun)
    assert isinstance(found, Walkers)
    return found


class AroundNuclei(eqx.Module):
    """Electrons placed near nuclei, as many as the nucleus is charged.

    **Arguments:**

    - `molecule`: a `Molecule`.
    - `spread`: standard deviation around the nucleus, in Bohr radii.

    **Returns:** called as `(key, walkers)`, places of shape (walkers, n, 3).
    """

    molecule: Molecule = eqx.field(static=True)
    spread: float = 0.8

    def __call__(self, key: Array, walkers: int) -> Float[Array, "N n 3"]:
        homes = jnp.asarray([self.molecule.places[a] for a in homes_of(self.molecule)])
        return homes[None] + self.spread * jax.random.normal(key, (walkers, *homes.shape))


class GaussianStart(eqx.Module):
    """Particles placed independently around the origin.

    **Arguments:**

    - `particles`: how many, n.
    - `dimension`: d of the space that they live in.
    - `spread`: standard deviation.

    **Returns:** called as `(key, walkers)`, places of shape (walkers, n, d).
    """

    particles: int = eqx.field(static=True)
    dimension: int = eqx.field(static=True)
    spread: float = 1.0

    def __call__(self, key: Array, walkers: int) -> Float[Array, "N n d"]:
        return self.spread * jax.random.normal(key, (walkers, self.particles, self.dimension))


def homes_of(molecule: Molecule) -> list[int]:
    """The nucleus of each electron, spin up first: half of every charge goes up, neighbours take turns."""
    free = [charge / 2 for charge in molecule.charges]
    up = [_take(free) for _ in range(molecule.spins[0])]
    free = [float(charge - up.count(atom)) for atom, charge in enumerate(molecule.charges)]
    return up + [_take(free) for _ in range(molecule.spins[1])]


def _take(free: list[float]) -> int:
    best = max(range(len(free)), key=lambda atom: (free[atom], -(atom % 2)))
    free[best] -= 1
    return best
