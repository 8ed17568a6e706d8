"""Potentials: any function V(x) of the places of all particles, an (n, d) array, to a number."""

from itertools import combinations
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from angd.problems.vmc.molecules import Molecule


class Coulomb(eqx.Module):
    """Electrons among nuclei: attraction, repulsion, and the nuclei's own energy, in Hartree.

    **Arguments:**

    - `molecule`: a `Molecule`.

    **Returns:** called with x of shape (n, 3), the potential energy.
    """

    places: Float[Array, "atoms 3"]
    charges: Float[Array, " atoms"]
    constant: float
    spins: tuple[int, int] = eqx.field(static=True)

    def __init__(self, molecule: Molecule):
        self.places, self.charges = jnp.asarray(molecule.places), jnp.asarray(molecule.charges, float)
        self.constant, self.spins = nuclear_energy(molecule), molecule.spins

    def __call__(self, x: Float[Array, "n 3"]) -> Float[Array, ""]:
        places, charges = self.places.astype(x.dtype), self.charges.astype(x.dtype)
        to_nuclei = jnp.linalg.norm(x[:, None, :] - places[None, :, :], axis=-1)
        attraction = -jnp.sum(charges[None, :] / to_nuclei)
        return attraction + coulomb_repulsion(x) + self.constant


class Trap(eqx.Module):
    """Particles in a harmonic well, ½ Σ ω² x², that may repel each other: + κ Σ_{i<j} 1/r_ij.

    **Arguments:**

    - `omega`: frequency ω, a number, or one for each coordinate, shape (d,).
    - `repulsion`: κ; 1 is that of electrons, in atomic units.
    - `spins`: how many there are of either spin, where they have one: ψ is checked to be antisymmetric.

    **Returns:** called with x of shape (n, d), the potential energy.
    """

    omega: Any = 1.0
    repulsion: float = eqx.field(static=True, default=0.0)
    spins: tuple[int, int] | None = eqx.field(static=True, default=None)

    def __call__(self, x: Float[Array, "n d"]) -> Float[Array, ""]:
        omega = jnp.broadcast_to(jnp.asarray(self.omega, x.dtype), x.shape[-1:])
        well = 0.5 * jnp.sum((x * omega[None, :]) ** 2)
        return well if self.repulsion == 0 else well + self.repulsion * coulomb_repulsion(x)


def coulomb_repulsion(x: Float[Array, "n d"]) -> Float[Array, ""]:
    """Σ_{i<j} 1/r_ij."""
    i, j = np.triu_indices(x.shape[0], 1)
    return jnp.sum(1.0 / jnp.linalg.norm(x[i] - x[j], axis=-1)) if i.size else jnp.zeros((), x.dtype)


def nuclear_energy(molecule: Molecule) -> float:
    """Repulsion of the nuclei."""
    nuclei = list(zip(molecule.charges, molecule.places, strict=True))
    return float(sum(a * b / np.linalg.norm(np.subtract(p, q)) for (a, p), (b, q) in combinations(nuclei, 2)))
