"""Periodic lattices: their bonds, and the translations that map them to themselves. Sites are counted row by row."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np
from jaxtyping import Int


@dataclass(frozen=True)
class Lattice:
    """A periodic lattice, a torus of so many sites along each direction; `ring` and `square` make the usual ones.

    **Arguments:**

    - `shape`: sites along each direction, (10,) or (4, 4).

    **Example:** `Lattice((4, 4)).bonds(2)` are its diagonals.
    """

    shape: tuple[int, ...]

    def __post_init__(self):
        if not self.shape or any(count != int(count) or count < 1 for count in self.shape) or self.sites < 2:
            raise ValueError(f"A lattice needs at least two sites, got the shape {self.shape}.")

    @property
    def sites(self) -> int:
        """How many."""
        return prod(self.shape)

    def bonds(self, shell: int = 1) -> Int[np.ndarray, "bonds 2"]:
        """Pairs of neighbours: nearest for `shell` 1, next-nearest for 2, and so on. Each pair comes once."""
        pairs = {tuple(sorted(pair)) for step in self._steps(shell) for pair in self._moved(step) if pair[0] != pair[1]}
        return np.array(sorted(pairs), int).reshape(-1, 2)

    def displacements(self, shell: int = 1) -> Int[np.ndarray, "bonds d"]:
        """The shortest way along each of the bonds, from its first site to its second."""
        first, second = self.bonds(shell).T
        way = self.places()[second] - self.places()[first]
        size = np.array(self.shape)
        return (way + size // 2) % size - size // 2

    def places(self) -> Int[np.ndarray, "sites d"]:
        """Coordinates of every site."""
        return np.array(list(product(*map(range, self.shape))))

    def translations(self) -> Int[np.ndarray, "translations sites"]:
        """Row t says which site comes to each place: x[translations[t]] is x moved; the first row is the identity."""
        return np.stack([[second for _, second in self._moved(step)] for step in self.places().tolist()])

    def sublattice(self) -> Int[np.ndarray, "sites"]:
        """0 and 1 in turn, like the colours of a chessboard."""
        return self.places().sum(axis=1) % 2

    @property
    def bipartite(self) -> bool:
        """Do nearest neighbours have different colours everywhere?"""
        colours = self.sublattice()[self.bonds(1)]
        return bool(np.all(colours[:, 0] != colours[:, 1]))

    def _moved(self, step: Sequence[int]) -> list[tuple[int, int]]:
        """Every site with the one that is a step away."""
        there = (self.places() + np.array(step)) % np.array(self.shape)
        return list(enumerate(np.atleast_1d(np.ravel_multi_index(tuple(there.T), self.shape)).tolist()))

    def _steps(self, shell: int) -> list[tuple[int, ...]]:
        """The steps of a length that is the first, second, … of all that there are."""
        reach = range(-shell, shell + 1)
        steps = [step for step in product(reach, repeat=len(self.shape)) if any(step)]
        lengths = sorted({sum(s * s for s in step) for step in steps})
        return [step for step in steps if sum(s * s for s in step) == lengths[shell - 1]]


def ring(sites: int) -> Lattice:
    """A closed chain.

    **Arguments:**

    - `sites`: how many, at least two.

    **Returns:** a `Lattice`.
    """
    return Lattice((sites,))


def square(rows: int, columns: int | None = None) -> Lattice:
    """A square lattice, closed in both directions.

    **Arguments:**

    - `rows`, `columns`: sites along each direction; as many columns as rows by default.

    **Returns:** a `Lattice`.
    """
    return Lattice((rows, rows if columns is None else columns))


def both_spins(symmetry: Int[np.ndarray, "order sites"]) -> Int[np.ndarray, "order both"]:
    """Permutations of sites as those of a configuration that has all sites twice, spin up and spin down.

    **Arguments:**

    - `symmetry`: permutations of sites, such as `lattice.translations()`.

    **Returns:** permutations of twice as many entries.
    """
    return np.concatenate([symmetry, symmetry + symmetry.shape[1]], axis=1)
