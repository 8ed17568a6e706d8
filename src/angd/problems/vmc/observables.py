"""What is measured of a wave function besides its energy, in atomic units.

    Dipole              μ = Σ_A Z_A R_A − Σ_i r_i
    Density             of one electron: in shells around a place, along a line, or on a plane
    PairDistribution    of the distance between two electrons
    Forces              on the nuclei, by Hellmann and Feynman, without their infinite variance

Each is a function of one walker for `evaluate(…, observables=…)`; `of(problem)` takes from a problem what it needs.
"""

from collections.abc import Callable
from itertools import pairwise
from math import gamma, pi
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from angd.problems.vmc.molecules import Molecule

MARGIN = 4.0  # a₀ that a density is measured beyond the nuclei
Pair = tuple[float, float]
Direction = tuple[float, ...]


class Dipole(eqx.Module):
    """The dipole moment, μ = Σ_A Z_A R_A − Σ_i r_i, in e a₀; 1 e a₀ is 2.5417 debye.

    That of an ion depends on where the origin is; it is that of the molecule's coordinates.

    **Arguments:**

    - `molecule`: a `Molecule`.

    **Returns:** called with x of shape (n, 3), a vector of shape (3,).
    """

    molecule: Molecule = eqx.field(static=True)
    unit: ClassVar[str] = "e a₀"

    @classmethod
    def of(cls, problem: Any) -> "Dipole":
        """Of the molecule of a problem."""
        return cls(needed_molecule(problem, "dipole"))

    def __call__(self, x: Float[Array, "n 3"]) -> Float[Array, "3"]:
        nuclei = np.asarray(self.molecule.charges) @ np.asarray(self.molecule.places)
        return jnp.asarray(nuclei, x.dtype) - jnp.sum(x, axis=0)


class Density(eqx.Module):
    """The density of one particle, counted in cells: their mean number in a cell, divided by its volume.

    Without directions cells are shells around the centre: n(r) is the average over angles, and ∫ n = n_electrons.
    With one direction it is integrated over all others, with two over the third: particles per length or area.

    **Arguments:**

    - `directions`: orthonormal vectors, none, one or two.
    - `span`: where cells begin and end, in a₀ from the centre: a pair for each direction, or one for the radius.
    - `bins`: cells along each; error bars grow as cells shrink.
    - `centre`: a place; None is the origin.

    **Returns:** called with x of shape (n, d), densities of shape (bins,) or (bins, bins).

    **Example:** `Density(((0.0, 0.0, 1.0),), ((-5.0, 8.0),))`
    """

    directions: tuple[Direction, ...] = eqx.field(static=True, default=())
    span: tuple[Pair, ...] = eqx.field(static=True, default=((0.0, 6.0),))
    bins: int = eqx.field(static=True, default=40)
    centre: Direction | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        _check_cells("Density", self.span, self.bins)
        vectors = np.array(self.directions, float)
        if len(self.directions) > 2 or len(self.span) != max(len(self.directions), 1):
            raise ValueError("Density: give at most two directions, and a span for each.")
        if self.directions and not np.allclose(vectors @ vectors.T, np.eye(len(vectors)), atol=1e-6):
            raise ValueError("Density: directions must be orthonormal.")
        if not self.directions and self.span[0][0] < 0:
            raise ValueError("Density: a radius begins at 0 or later.")

    @classmethod
    def of(cls, problem: Any) -> "Density":
        """Around a lone nucleus or the middle of a trap; of a molecule on the plane of its nuclei."""
        molecule = molecule_of(problem)
        if molecule is None or len(molecule.places) == 1:
            return cls(centre=None if molecule is None else molecule.places[0])
        places = np.asarray(molecule.places)
        centre = places.mean(axis=0)
        directions = _principal(places - centre)
        shadow = (places - centre) @ directions.T
        low, high = shadow.min(axis=0) - MARGIN, shadow.max(axis=0) + MARGIN
        span = tuple((float(a), float(b)) for a, b in zip(low, high, strict=True))
        return cls(tuple(tuple(map(float, v)) for v in directions), span, 40, tuple(map(float, centre)))

    @property
    def unit(self) -> str:
        """Of the values."""
        return f"particles per {('volume', 'length', 'area')[len(self.directions)]} (atomic units)"

    @property
    def at(self) -> dict[str, list[float]]:
        """The middles of the cells, by the name of what varies."""
        names = [_axis(v, i) for i, v in enumerate(self.directions)] or ["r"]
        return {name: middles(pair, self.bins) for name, pair in zip(names, self.span, strict=True)}

    def __call__(self, x: Float[Array, "n d"]) -> Float[Array, "*bins"]:
        away = x if self.centre is None else x - jnp.asarray(self.centre, x.dtype)[None]
        if not self.directions:
            distance = jnp.linalg.norm(away, axis=-1)
            return counted(distance[:, None], self.span, self.bins) / self._shells(x.shape[-1]).astype(x.dtype)
        cell = np.prod([(high - low) / self.bins for low, high in self.span])
        return counted(away @ jnp.asarray(self.directions, x.dtype).T, self.span, self.bins) / cell

    def _shells(self, dimension: int) -> Float[Array, "bins"]:
        return jnp.asarray(shells(self.span[0], self.bins, dimension))


class PairDistribution(eqx.Module):
    """How often two particles are u apart: h(u) = ⟨Σ_{i<j} δ(u − r_ij)⟩, averaged over angles, from counts in shells.

    ∫ h over space is the number of pairs, n (n − 1)/2. Chemists call it the intracule density.

    **Arguments:**

    - `span`: of the distance, a pair, in a₀.
    - `bins`: shells.

    **Returns:** called with x of shape (n, d), values of shape (bins,).
    """

    span: Pair = eqx.field(static=True, default=(0.0, 8.0))
    bins: int = eqx.field(static=True, default=40)
    unit: ClassVar[str] = "pairs per volume (atomic units)"

    def __check_init__(self):
        _check_cells("PairDistribution", (self.span,), self.bins)
        if self.span[0] < 0:
            raise ValueError("PairDistribution: a distance begins at 0 or later.")

    @classmethod
    def of(cls, problem: Any) -> "PairDistribution":
        """The usual one; as wide as a molecule, and more."""
        molecule = molecule_of(problem)
        places = np.zeros((1, 3)) if molecule is None else np.asarray(molecule.places)
        apart = np.linalg.norm(places[:, None] - places[None], axis=-1).max()
        return cls((0.0, float(apart) + 2 * MARGIN))

    @property
    def at(self) -> dict[str, list[float]]:
        """The middles of the shells."""
        return {"u": middles(self.span, self.bins)}

    def __call__(self, x: Float[Array, "n d"]) -> Float[Array, "bins"]:
        i, j = np.triu_indices(x.shape[0], 1)
        apart = jnp.linalg.norm(x[i] - x[j], axis=-1)
        volumes = jnp.asarray(shells(self.span, self.bins, x.shape[-1]), x.dtype)
        return counted(apart[:, None], (self.span,), self.bins) / volumes


class Forces(eqx.Module):
    """Forces on the nuclei, −⟨∂V/∂R_A⟩ (Hellmann and Feynman), with finite variance (Assaraf and Caffarel 2003).

    With v = r_i − R_A, the attraction of electrons is Z_A Σ_i v/|v|³, whose variance is infinite. For any Q,
    ⟨−½ ΔQ − ∇Q·∇log|ψ|⟩ = −½ ∫ ∇·(ψ² ∇Q) = 0. Of Q = −Z_A Σ_i v/|v|, the first term is −Z_A Σ_i v/|v|³, and the sum is

        F_A = Z_A Σ_{B≠A} Z_B (R_A − R_B)/|R_A − R_B|³ + Z_A Σ_i (1 − v vᵀ/|v|²) ∇_i log|ψ| / |v|,

    which has the same mean for every ψ, and is bounded where electrons meet nuclei. It is the slope of the energy
    where ψ is the ground state, or the best of a set that does not move with the nuclei; otherwise it is off by the
    first power of the error of ψ.

    **Arguments:**

    - `molecule`: a `Molecule`.
    - `log_psi`: as of a `GroundState`; None leaves the correction out, to compare.

    **Returns:** called as `(params, x)`, forces of shape (atoms, 3) in Ha/a₀.
    """

    molecule: Molecule = eqx.field(static=True)
    log_psi: Callable[[PyTree, Array], tuple[Array, Array]] | None = None
    unit: ClassVar[str] = "Ha/a₀"

    @classmethod
    def of(cls, problem: Any) -> "Forces":
        """Of a problem's molecule and wave function."""
        return cls(needed_molecule(problem, "forces"), problem.log_psi)

    def __call__(self, params: PyTree, x: Float[Array, "n 3"]) -> Float[Array, "atoms 3"]:
        nuclei, charges = (jnp.asarray(values, x.dtype) for values in (self.molecule.places, self.molecule.charges))
        v = x[None] - nuclei[:, None]
        r = jnp.linalg.norm(v, axis=-1, keepdims=True)
        if self.log_psi is None:
            pull = v / r**3
        else:
            log_psi = self.log_psi
            slope = jax.grad(lambda y: log_psi(params, y)[1])(x)[None]
            pull = (slope - v * jnp.sum(v * slope, axis=-1, keepdims=True) / r**2) / r
        return jnp.asarray(self._repulsion, x.dtype) + charges[:, None] * jnp.sum(pull, axis=1)

    @property
    def _repulsion(self) -> Float[np.ndarray, "atoms 3"]:
        """Of the nuclei from each other."""
        places, charges = np.asarray(self.molecule.places), np.asarray(self.molecule.charges, float)
        apart = places[:, None] - places[None]
        cubes = np.sum(apart**2, axis=-1) ** 1.5 + np.eye(len(places))
        return np.einsum("a,b,abi->ai", charges, charges, apart / cubes[..., None])


def molecule_of(problem: Any) -> Molecule | None:
    """The molecule of a problem's wave function, None of a trap."""
    return getattr(getattr(problem, "log_psi", None), "molecule", None)


def needed_molecule(problem: Any, name: str) -> Molecule:
    """The same, where nothing can be measured without."""
    molecule = molecule_of(problem)
    if molecule is None:
        raise ValueError(f"{name} is measured of molecules, whose wave functions know one; here are no nuclei.")
    return molecule


def counted(u: Float[Array, "m k"], span: tuple[Pair, ...], bins: int) -> Float[Array, "*bins"]:
    """How many of m points are in each cell; what is outside does not count."""
    low, high = (jnp.asarray(ends, u.dtype)[None] for ends in zip(*span, strict=True))
    place = jnp.floor((u - low) / (high - low) * bins)
    inside = jnp.all((place >= 0) & (place < bins), axis=-1, keepdims=True)
    index = jnp.where(inside, place, bins).astype(int)
    return jnp.zeros((bins,) * len(span), u.dtype).at[tuple(index.T)].add(1.0, mode="drop")


def shells(span: Pair, bins: int, dimension: int) -> Float[np.ndarray, "bins"]:
    """Volumes between spheres: π^{d/2} r^d / Γ(d/2 + 1), from one radius to the next."""
    ball = pi ** (dimension / 2) / gamma(dimension / 2 + 1)
    return ball * np.diff(np.linspace(*span, bins + 1) ** dimension)


def middles(span: Pair, bins: int) -> list[float]:
    """Of cells along a line."""
    return [float(a + b) / 2 for a, b in pairwise(np.linspace(*span, bins + 1))]


def _check_cells(name: str, span: tuple[Pair, ...], bins: int) -> None:
    if isinstance(bins, bool) or not isinstance(bins, int) or bins < 1:
        raise ValueError(f"{name}: bins must be a whole number, 1 at least, got {bins!r}.")
    if not all(np.isfinite(pair).all() and pair[0] < pair[1] for pair in span):
        raise ValueError(f"{name}: a span is a pair of numbers in rising order, got {span}.")


def _principal(places: Float[np.ndarray, "atoms 3"]) -> Float[np.ndarray, "2 3"]:
    """The two directions in which nuclei are spread most; coordinate axes where they can be."""
    vectors = np.linalg.svd(places)[2][:2]
    axes = np.abs(vectors).argmax(axis=1)
    aligned = np.allclose(np.abs(vectors[0]).max(), 1, atol=1e-6)
    if aligned and np.linalg.matrix_rank(places, tol=1e-6) == 1:
        return np.eye(3)[[axes[0], (axes[0] + 1) % 3]]
    return vectors * np.sign(vectors[np.arange(2), axes])[:, None]


def _axis(direction: Direction, i: int) -> str:
    """A letter for a direction."""
    names = [name for name, unit in zip("xyz", np.eye(len(direction)), strict=False) if np.allclose(direction, unit)]
    return names[0] if names else "st"[i]
