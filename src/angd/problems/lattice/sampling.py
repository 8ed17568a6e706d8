"""Markov chains for |ψ|² on lattices: walkers that go on from step to step.

    Flip        one entry changes                                 where H conserves nothing
    Exchange    two unequal entries of one part change places     where H conserves how many there are

A move is a sweep: as many proposals as a configuration has entries. `chain_of(H)` takes the one that suits.
"""

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int, PyTree

from angd.method.samples import Samples
from angd.problems.lattice.hamiltonians import AbstractHamiltonian
from angd.problems.lattice.hermitian import check_hermitian


class LatticeWalkers(Samples):
    """Samples with what their Markov chain reports.

    **Arguments:**

    - `x`: configurations, shape (N, n).
    - `acceptance`: of the last moves.
    - `respawned`: how many walkers were replaced, being where the density is not finite.
    - `omega`: weights, shape (N,); 1/N by default.
    """

    acceptance: Float[Array, ""]
    respawned: Int[Array, ""]

    def __init__(self, x: Any, acceptance: Any = 0.0, respawned: Any = 0, omega: Any = None):
        super().__init__(x, omega)
        self.acceptance, self.respawned = jnp.asarray(acceptance, float), jnp.asarray(respawned, int)

    def masked(self, bad: Bool[Array, "n"]) -> "LatticeWalkers":
        """The same, and counted."""
        found = super().masked(bad)
        return eqx.tree_at(lambda walkers: walkers.respawned, found, self.respawned + jnp.sum(bad))


class AbstractMoves(eqx.Module):
    """A Markov chain of `moves` sweeps between two steps of the optimiser, and `burn_in` before the first."""

    hamiltonian: eqx.AbstractVar[AbstractHamiltonian]
    walkers: eqx.AbstractVar[int]
    moves: eqx.AbstractVar[int]
    burn_in: eqx.AbstractVar[int]

    def __check_init__(self):
        counts = (self.walkers, self.moves, self.burn_in)
        if not all(isinstance(n, int) for n in counts) or self.walkers < 1 or self.moves < 1 or self.burn_in < 0:
            raise ValueError(f"{type(self).__name__}: it takes whole walkers ≥ 1, moves ≥ 1 and burn_in ≥ 0.")
        check_hermitian(self.hamiltonian)

    @abc.abstractmethod
    def start(self, key: Array) -> Int[Array, "n"]:
        """A configuration at random."""

    @abc.abstractmethod
    def proposal(self, key: Array, x: Int[Array, "n"]) -> Int[Array, "n"]:
        """Another configuration, as likely as the way back."""

    def __call__(self, key: Array, problem: Any, params: PyTree) -> LatticeWalkers:
        """Fresh walkers, settled."""
        place, settle = jax.random.split(key)
        x = jax.vmap(self.start)(jax.random.split(place, self.walkers))
        if self.burn_in < 1:
            return LatticeWalkers(x)
        return self._run(settle, problem, params, self._begun(problem, params, LatticeWalkers(x)), self.burn_in)

    def move(self, key: Array, problem: Any, params: PyTree, samples: LatticeWalkers) -> LatticeWalkers:
        """The same walkers, some sweeps later; those where ρ is not finite are replaced by copies of others."""
        begun = self._begun(problem, params, samples)
        found = begun.masked(~jnp.isfinite(begun.x[1])).weighed_as(begun)
        assert isinstance(found, LatticeWalkers)
        return self._run(key, problem, params, found, self.moves)

    def _begun(self, problem: Any, params: PyTree, samples: LatticeWalkers) -> LatticeWalkers:
        """Walkers with what the chain keeps of each, its place and log ρ there, in place of x."""
        logs = _log_densities(problem, params, samples.x)
        return eqx.tree_at(lambda walkers: walkers.x, samples, (samples.x, logs))

    def _run(self, key: Array, problem: Any, params: PyTree, begun: LatticeWalkers, sweeps: int) -> LatticeWalkers:
        def once(carry: tuple[Array, Array], key: Array) -> tuple[tuple[Array, Array], Array]:
            x, log = carry
            propose, accept = jax.random.split(key)
            there = jax.vmap(self.proposal)(jax.random.split(propose, x.shape[0]), x)
            log_there = _log_densities(problem, params, there)
            yes = jnp.log(jax.random.uniform(accept, log.shape, log.dtype)) < log_there - log
            return (jnp.where(yes[:, None], there, x), jnp.where(yes, log_there, log)), jnp.mean(yes)

        (x, _), rates = lax.scan(once, begun.x, jax.random.split(key, sweeps * self.hamiltonian.size))
        return LatticeWalkers(x, jnp.mean(rates), begun.respawned, begun.omega)


class Flip(AbstractMoves):
    """Metropolis: one entry takes its other value.

    **Arguments:**

    - `hamiltonian`: whose configurations they are; it should conserve nothing.
    - `walkers`: how many; they are independent of each other.
    - `moves`: sweeps between two steps of the optimiser.
    - `burn_in`: sweeps before the first step.

    **Returns:** called as `chain(key, problem, params)`, settled walkers; `chain.move` takes them along.
    """

    hamiltonian: AbstractHamiltonian
    walkers: int = eqx.field(static=True, default=1024)
    moves: int = eqx.field(static=True, default=2)
    burn_in: int = eqx.field(static=True, default=20)

    def __check_init__(self):
        if self.hamiltonian.counts is not None:
            raise ValueError(f"Flip leaves the configurations of {type(self.hamiltonian).__name__}: take Exchange.")

    def start(self, key: Array) -> Int[Array, "n"]:
        low, high = self.hamiltonian.values
        return jnp.where(jax.random.bernoulli(key, shape=(self.hamiltonian.size,)), high, low).astype(jnp.int32)

    def proposal(self, key: Array, x: Int[Array, "n"]) -> Int[Array, "n"]:
        low, high = self.hamiltonian.values
        chosen = jnp.arange(x.shape[0]) == jax.random.randint(key, (), 0, x.shape[0])
        return jnp.where(chosen, low + high - x, x)


class Exchange(AbstractMoves):
    """Metropolis: two unequal entries change places, as near or far as they are.

    **Arguments:**

    - `hamiltonian`: whose configurations they are; it must conserve how many entries have the larger value.
    - `walkers`: how many; they are independent of each other.
    - `moves`: sweeps between two steps of the optimiser.
    - `burn_in`: sweeps before the first step.

    **Returns:** called as `chain(key, problem, params)`, settled walkers; `chain.move` takes them along.
    """

    hamiltonian: AbstractHamiltonian
    walkers: int = eqx.field(static=True, default=1024)
    moves: int = eqx.field(static=True, default=2)
    burn_in: int = eqx.field(static=True, default=20)

    def __check_init__(self):
        if self.hamiltonian.counts is None:
            raise ValueError(f"Exchange does not reach all states of {type(self.hamiltonian).__name__}: take Flip.")

    def start(self, key: Array) -> Int[Array, "n"]:
        (low, high), counts = self.hamiltonian.values, self.hamiltonian.counts or ()
        each = self.hamiltonian.size // len(counts)
        parts = [jnp.where(jnp.arange(each) < count, high, low) for count in counts]
        keys = jax.random.split(key, len(counts))
        return jnp.concatenate([jax.random.permutation(k, p) for k, p in zip(keys, parts, strict=True)]).astype(
            jnp.int32
        )

    def proposal(self, key: Array, x: Int[Array, "n"]) -> Int[Array, "n"]:
        part, one, two = jax.random.split(key, 3)
        parts = len(self.hamiltonian.counts or ())
        mine = jnp.arange(x.shape[0]) // (x.shape[0] // parts) == jax.random.randint(part, (), 0, parts)
        first, second = (
            self._any(k, mine & (x == v)) for k, v in zip((one, two), self.hamiltonian.values, strict=True)
        )
        # In a part that is full or empty there is nothing to choose from, and both are the same place.
        possible = mine[first] & mine[second] & (x[first] != x[second])
        swapped = x.at[first].set(x[second]).at[second].set(x[first])
        return jnp.where(possible, swapped, x)

    def _any(self, key: Array, among: Bool[Array, "n"]) -> Int[Array, ""]:
        """One of those, each as likely."""
        return jnp.argmax(jnp.where(among, jax.random.uniform(key, among.shape), -1.0))


def chain_of(
    hamiltonian: AbstractHamiltonian, walkers: int = 1024, moves: int = 2, burn_in: int = 20
) -> Flip | Exchange:
    """The chain that reaches every configuration of a Hamiltonian.

    **Arguments:**

    - `hamiltonian`: H.
    - `walkers`, `moves`, `burn_in`: as of `Flip` and `Exchange`.

    **Returns:** `Flip` or `Exchange`.
    """
    return (Flip if hamiltonian.counts is None else Exchange)(hamiltonian, walkers, moves, burn_in)


def _log_densities(problem: Any, params: PyTree, xs: Int[Array, "N n"]) -> Float[Array, "N"]:
    """log ρ at every place; where it is not a number, no walker goes."""
    logs = jax.vmap(problem.log_density, (None, 0))(params, xs)
    return jnp.where(jnp.isnan(logs), -jnp.inf, logs)
