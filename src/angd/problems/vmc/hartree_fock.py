"""Hartree–Fock by pyscf, and its orbitals as a JAX function: the wave function that a network is pretrained to."""

import os
from pathlib import Path
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from angd._requirements import needs
from angd.problems.vmc.molecules import Molecule

# Real spherical harmonics r^l Y_lm for l ≤ 2, in pyscf's order.
S, P, XY, ZZ, XX = 0.28209479177387814, 0.4886025119029199, 1.0925484305920792, 0.31539156525252005, 0.5462742152960396


def import_pyscf() -> Any:
    """pyscf, without the code that it would run from a `.pyscf_conf.py` in the working folder; a configuration that
    was chosen by its variable PYSCF_CONFIG_FILE counts."""
    needs("pyscf", "vmc", "Hartree–Fock")
    chosen = os.environ.get("PYSCF_CONFIG_FILE")
    os.environ["PYSCF_CONFIG_FILE"] = chosen or str(Path(__file__).parent / "pyscf_conf.py")
    try:
        import pyscf
        import pyscf.gto
        import pyscf.scf
    finally:
        if chosen is None:
            del os.environ["PYSCF_CONFIG_FILE"]
    return pyscf


class Shell(eqx.Module):
    """A contracted shell: Σ coefficients exp(−exponents r²) times the harmonics of degree l, around a place."""

    place: Float[Array, " 3"]
    exponents: Float[Array, " k"]
    coefficients: Float[Array, "k c"]
    degree: int = eqx.field(static=True)

    def __call__(self, x: Float[Array, " 3"]) -> Float[Array, " functions"]:
        v = x - self.place.astype(x.dtype)
        square = jnp.sum(v**2)
        radial = jnp.exp(-self.exponents.astype(x.dtype) * square) @ self.coefficients.astype(x.dtype)
        return (radial[:, None] * harmonics(v, square, self.degree)[None, :]).reshape(-1)


class HartreeFock(eqx.Module):
    """Orbitals of both spins by pyscf; `HartreeFock.of(molecule)` solves the mean-field equations.

    **Arguments:**

    - `shells`: the basis functions, contracted shells of Gaussians.
    - `mixtures`: coefficients of the occupied orbitals, shape (functions, electrons) for each spin.
    - `energy`: the Hartree–Fock energy.

    **Returns:** called as `(params, x)`, the pair (sign, log|ψ|); it ignores `params`.
    """

    shells: tuple[Shell, ...]
    mixtures: tuple[Float[Array, "functions _"], Float[Array, "functions _"]]
    energy: float = eqx.field(static=True)

    @classmethod
    def of(cls, molecule: Molecule, basis: str = "ccpvdz") -> "HartreeFock":
        """Solve the mean-field equations, restricted where the spins are balanced."""
        pyscf = import_pyscf()
        mol = pyscf.gto.M(
            atom=list(zip(molecule.symbols, molecule.places, strict=True)),
            unit="bohr",
            basis=basis,
            charge=sum(molecule.charges) - molecule.electrons,
            spin=molecule.spins[0] - molecule.spins[1],
            verbose=0,
        )
        if max(molecule.spins) > mol.nao:
            raise ValueError(
                f"Hartree–Fock has {mol.nao} orbitals in the basis {basis!r} for {max(molecule.spins)} electrons of "
                "one spin: give another charge or spin, or leave pretraining out (--pretrain 0)."
            )
        balanced = molecule.spins[0] == molecule.spins[1]
        solver: Any = pyscf.scf.RHF(mol) if balanced else pyscf.scf.UHF(mol)
        energy = float(solver.kernel())
        if not solver.converged:
            raise ValueError(f"Hartree–Fock did not converge for {molecule.symbols}: try another basis than {basis!r}.")
        mixed = (solver.mo_coeff, solver.mo_coeff) if balanced else solver.mo_coeff
        occupied = [jnp.asarray(C[:, :count]) for C, count in zip(mixed, molecule.spins, strict=True)]
        return cls(tuple(map(_shell, [mol] * mol.nbas, range(mol.nbas))), (occupied[0], occupied[1]), energy)

    def functions(self, x: Float[Array, " 3"]) -> Float[Array, " functions"]:
        """All basis functions at a place."""
        return jnp.concatenate([shell(x) for shell in self.shells])

    def orbitals(self, x: Float[Array, "n 3"]) -> Float[Array, "n n"]:
        """φ_j(x_i), in one block for each spin."""
        up = self.mixtures[0].shape[1]
        values = jnp.stack([self.functions(place) for place in x])
        blocks = [values[:up] @ self.mixtures[0].astype(x.dtype), values[up:] @ self.mixtures[1].astype(x.dtype)]
        whole = jnp.zeros((x.shape[0], x.shape[0]), x.dtype)
        return whole.at[:up, :up].set(blocks[0]).at[up:, up:].set(blocks[1])

    def __call__(self, params: PyTree, x: Float[Array, "n 3"]) -> tuple[Array, Array]:
        sign, log = jnp.linalg.slogdet(self.orbitals(x))
        return sign, log


def harmonics(v: Float[Array, " 3"], square: Float[Array, ""], degree: int) -> Float[Array, " m"]:
    """r^l Y_lm(v)."""
    x, y, z = v
    if degree == 0:
        return jnp.full((1,), S, v.dtype)
    if degree == 1:
        return P * v
    return jnp.stack([XY * x * y, XY * y * z, ZZ * (3 * z * z - square), XY * x * z, XX * (x * x - y * y)])


def _shell(mol: Any, i: int) -> Shell:
    if mol.bas_angular(i) > 2:
        raise ValueError("Basis functions beyond d are not there: take a smaller basis, such as 'ccpvdz'.")
    return Shell(
        jnp.asarray(np.array(mol.bas_coord(i))),
        jnp.asarray(mol.bas_exp(i)),
        jnp.asarray(mol._libcint_ctr_coeff(i)),
        int(mol.bas_angular(i)),
    )
