"""Hamiltonians as sparse connections: `connections(x)` → every configuration x′ that H connects with x, and ⟨x|H|x′⟩.

Their number K does not depend on x, so that a batch is one array; where there is nothing to connect with, x′ is x and
the element 0. A configuration is an array of integers: spins ±1, or occupations 0 and 1.

    TransverseIsing   −J Σ σᶻσᶻ − h Σ σˣ                        spins
    Heisenberg        J₁ Σ S·S + J₂ Σ S·S                       spins, of fixed magnetisation
    Hubbard           −t Σ (c†c + h.c.) + U Σ n↑n↓ + V Σ n n    fermions with or without spin, of fixed number
    Operator          any other, by one function
"""

import abc
from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Inexact, Int

from angd.problems.lattice.lattices import Lattice

Connections = tuple[Int[Array, "K n"], Inexact[Array, "K"]]
SPINS, OCCUPATIONS = (-1, 1), (0, 1)


class AbstractHamiltonian(eqx.Module):
    """A Hermitian operator on configurations: a subclass defines `connections`.

    **Attributes:**

    - `size`: integers in a configuration.
    - `values`: the two that each of them may have.
    - `counts`: of how many entries the larger value is taken, for each of equal parts of a configuration (spin up and
      spin down fermions); None where H does not conserve it.
    """

    @property
    @abc.abstractmethod
    def size(self) -> int:
        """Integers in a configuration."""

    @property
    def values(self) -> tuple[int, int]:
        """What each of them may be."""
        return SPINS

    @property
    def counts(self) -> tuple[int, ...] | None:
        """What H conserves: nothing."""
        return None

    @abc.abstractmethod
    def connections(self, x: Int[Array, "n"]) -> Connections:
        """All x′ with ⟨x|H|x′⟩ ≠ 0, x itself first, and these elements."""


class Operator(AbstractHamiltonian):
    """A Hamiltonian of your own.

    **Arguments:**

    - `function`: `x` → (x′, elements), x of shape (n,), x′ of shape (K, n) and elements of shape (K,), the same K for
      all x.
    - `size`: n.
    - `values`: what an entry of x may be, (−1, 1) or (0, 1).
    - `counts`: how many entries have the larger value, `(n // 2,)`, if H conserves that; two numbers where it does so
      in each half of x. None: all configurations belong together.

    **Example:** `Operator(lambda x: (x[None], jnp.sum(x * jnp.roll(x, 1))[None]), 8)` is diagonal.
    """

    function: Callable[[Array], Connections]
    of: tuple[int, tuple[int, int], tuple[int, ...] | None] = eqx.field(static=True)

    def __init__(
        self,
        function: Callable[[Array], Connections],
        size: int,
        values: tuple[int, int] = SPINS,
        counts: tuple[int, ...] | None = None,
    ):
        self.function, self.of = function, (size, values, counts)

    @property
    def size(self) -> int:
        return self.of[0]

    @property
    def values(self) -> tuple[int, int]:
        return self.of[1]

    @property
    def counts(self) -> tuple[int, ...] | None:
        return self.of[2]

    def connections(self, x: Int[Array, "n"]) -> Connections:
        return self.function(x)


class TransverseIsing(AbstractHamiltonian):
    """H = −J Σ σᶻᵢσᶻⱼ − h Σ σˣᵢ over nearest neighbours; a ring is critical at h = J.

    **Arguments:**

    - `lattice`: a `Lattice`.
    - `field`: h.
    - `coupling`: J.
    """

    lattice: Lattice = eqx.field(static=True)
    field: float = 1.0
    coupling: float = 1.0

    @property
    def size(self) -> int:
        return self.lattice.sites

    def connections(self, x: Int[Array, "n"]) -> Connections:
        i, j = self.lattice.bonds().T
        flips = x[None] * (1 - 2 * jnp.eye(self.size, dtype=x.dtype))
        diagonal = -self.coupling * jnp.sum(x[i] * x[j])
        return _joined(x, diagonal, flips, jnp.full(self.size, -self.field, float))


class Heisenberg(AbstractHamiltonian):
    """H = J₁ Σ Sᵢ·Sⱼ + J₂ Σ Sᵢ·Sⱼ over nearest and next-nearest neighbours, spins ½, antiferromagnetic for J > 0.

    **Arguments:**

    - `lattice`: a `Lattice`.
    - `j2`: J₂; 0.5 on a ring is the point of Majumdar and Ghosh, and the frustrated one of a square lattice.
    - `j1`: J₁.
    - `marshall`: rotate one sublattice by π about z, so that exchange between sublattices has negative elements, and
      without J₂ the ground state is positive everywhere. It needs an even number of sites along each direction.
    - `up`: spins up; half of them by default.
    """

    lattice: Lattice = eqx.field(static=True)
    j2: float = 0.0
    j1: float = 1.0
    marshall: bool = eqx.field(static=True, default=True)
    up: int | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        if self.marshall and not self.lattice.bipartite:
            raise ValueError(
                f"Heisenberg: a lattice of shape {self.lattice.shape} has no two sublattices; give marshall=False and "
                "a complex amplitude."
            )

    @property
    def size(self) -> int:
        return self.lattice.sites

    @property
    def counts(self) -> tuple[int, ...]:
        return (self.size // 2 if self.up is None else self.up,)

    def connections(self, x: Int[Array, "n"]) -> Connections:
        shells = [(self.lattice.bonds(1), self.j1), (self.lattice.bonds(2), self.j2)]
        shells = shells if self._frustrated else shells[:1]
        pairs = np.concatenate([bonds for bonds, _ in shells])
        strength = jnp.concatenate([jnp.full(len(bonds), j, float) for bonds, j in shells])
        i, j = pairs.T
        apart = x[i] != x[j]
        elements = jnp.where(apart, strength * self._signs(pairs) / 2, 0.0)
        return _joined(x, jnp.sum(strength * x[i] * x[j]) / 4, _swapped(x, pairs), elements)

    @property
    def _frustrated(self) -> bool:
        """Does J₂ count? Only a number can say no."""
        return not isinstance(self.j2, float | int) or self.j2 != 0

    def _signs(self, pairs: Int[np.ndarray, "bonds 2"]) -> np.ndarray:
        colours = self.lattice.sublattice()[pairs]
        return np.where(self.marshall & (colours[:, 0] != colours[:, 1]), -1.0, 1.0)


class Hubbard(AbstractHamiltonian):
    """H = −t Σ (e^{iA} c†ᵢcⱼ + h.c.) + U Σ n↑n↓ + V Σ nᵢnⱼ over nearest neighbours, in Jordan and Wigner's order.

    A configuration holds the occupations of all sites, spin up first. On a ring with an odd number of each spin, no
    flux and U of any sign, hopping elements are all −t, and the ground state is positive everywhere.

    **Arguments:**

    - `lattice`: a `Lattice`.
    - `particles`: how many, (n↑, n↓), or (n,) for fermions without spin.
    - `U`: repulsion on a site, between spins.
    - `t`: hopping.
    - `V`: repulsion of neighbours, of all particles there.
    - `flux`: magnetic flux through the ring, in radians: once around the first direction a particle gains this phase.
    """

    lattice: Lattice = eqx.field(static=True)
    particles: tuple[int, ...] = eqx.field(static=True)
    U: float = 4.0
    t: float = 1.0
    V: float = 0.0
    flux: float = eqx.field(static=True, default=0.0)

    def __check_init__(self):
        sites = self.lattice.sites
        if len(self.particles) not in (1, 2) or not all(0 <= n <= sites for n in self.particles):
            raise ValueError(f"Hubbard: particles must be (up, down) or (n,), at most {sites}, got {self.particles}.")

    @property
    def size(self) -> int:
        return len(self.particles) * self.lattice.sites

    @property
    def values(self) -> tuple[int, int]:
        return OCCUPATIONS

    @property
    def counts(self) -> tuple[int, ...]:
        return self.particles

    def connections(self, x: Int[Array, "n"]) -> Connections:
        spins, bonds = x.reshape(len(self.particles), -1), self.lattice.bonds()
        i, j = bonds.T
        total = jnp.sum(spins, axis=0)
        diagonal = self.V * jnp.sum(total[i] * total[j]) + self.U * (len(spins) == 2) * jnp.sum(jnp.prod(spins, axis=0))
        pairs = np.concatenate([bonds + s * self.lattice.sites for s in range(len(spins))])
        elements = jnp.concatenate([self._hopping(occupied, bonds) for occupied in spins])
        return _joined(x, diagonal, _swapped(x, pairs), elements)

    def _hopping(self, n: Int[Array, "sites"], bonds: Int[np.ndarray, "bonds 2"]) -> Inexact[Array, "bonds"]:
        """⟨x|H|x′⟩ = −t (−1)^{particles in between} e^{iA}, the particle going to where it is in x."""
        i, j = bonds.T
        before = jnp.cumsum(n)
        between = before[j] - n[j] - before[i]
        value = jnp.where(n[i] != n[j], -self.t * (1.0 - 2.0 * (between % 2)), 0.0)
        if not self.flux:
            return value
        phase = self.flux / self.lattice.shape[0] * self.lattice.displacements()[:, 0]
        return value * jnp.exp(1j * phase * jnp.where(n[j] == 1, 1, -1))


def _joined(x: Array, diagonal: Array, others: Array, elements: Array) -> Connections:
    """x itself first."""
    first = jnp.asarray(diagonal, elements.dtype)[None]
    return jnp.concatenate([x[None], others]), jnp.concatenate([first, elements])


def _swapped(x: Int[Array, "n"], pairs: Int[np.ndarray, "bonds 2"]) -> Int[Array, "bonds n"]:
    """x with the two entries of each pair exchanged."""
    order = np.tile(np.arange(x.shape[0]), (len(pairs), 1))
    rows = np.arange(len(pairs))
    order[rows, pairs[:, 0]], order[rows, pairs[:, 1]] = pairs[:, 1], pairs[:, 0]
    return x[order]
