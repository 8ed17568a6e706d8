"""FermiNet (Pfau, Spencer, Matthews and Foulkes 2020): an antisymmetric neural wave function.

One- and two-electron streams exchange means over spins; the one-electron stream gives the orbitals of several full
determinants, with exponential envelopes around the nuclei and a factor for the cusps between electrons.
"""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from angd.problems.vmc.determinants import slogdet
from angd.problems.vmc.laplacian import laplacian
from angd.problems.vmc.layers import affine, dense, residual
from angd.problems.vmc.molecules import Molecule

# log|ψ| of a determinant that vanishes.
LOWEST = -1e30
# Range of the cusp factor at the start, in a₀. It pushes electrons apart, which pretrained orbitals know nothing of:
# with 1 a₀ that costs N₂ most of a Hartree.
CUSP = 0.25


class FermiNet(eqx.Module):
    """An antisymmetric neural wave function (Pfau, Spencer, Matthews and Foulkes 2020).

    **Arguments:**

    - `molecule`: a `Molecule`.
    - `hidden`: (one-electron, two-electron) widths of each layer; `FermiNet.published` has (256, 16) thrice.
    - `last`: width of one more layer of the one-electron stream alone, 0 for none.
    - `determinants`: how many are summed.
    - `cusps`: multiply by a factor with the cusps between electrons.

    **Returns:** called as `(params, x)` with x of shape (n, 3), spin up first, the pair (sign, log|ψ|).

    **Example:** `GroundState(FermiNet(MOLECULES["LiH"]), Coulomb(MOLECULES["LiH"]))`
    """

    molecule: Molecule = eqx.field(static=True)
    hidden: tuple[tuple[int, int], ...] = eqx.field(static=True, default=((32, 8), (32, 8), (32, 8)))
    last: int = eqx.field(static=True, default=0)
    determinants: int = eqx.field(static=True, default=8)
    cusps: bool = eqx.field(static=True, default=True)

    def __check_init__(self):
        if not self.hidden or min(min(pair) for pair in self.hidden) < 1 or self.determinants < 1 or self.last < 0:
            raise ValueError("FermiNet: hidden widths and determinants must be positive, last ≥ 0.")

    @classmethod
    def medium(cls, molecule: Molecule) -> "FermiNet":
        """Twice as wide as the usual one, with twice the determinants; a step takes some times longer."""
        return cls(molecule, ((64, 16),) * 3, 0, 16)

    @classmethod
    def published(cls, molecule: Molecule) -> "FermiNet":
        """The sizes of the SPRING paper: (256, 16) three times, 256, and 16 determinants."""
        return cls(molecule, ((256, 16),) * 3, 256, 16)

    def init(self, key: Array) -> PyTree:
        """Parameters; envelopes begin as Slater orbitals, filled nucleus by nucleus."""
        n, atoms = self.molecule.electrons, len(self.molecule.charges)
        keys = iter(jax.random.split(key, 4 * len(self.hidden) + 8))
        one, two, layers = 4 * atoms, 4, []
        for k, (wide, narrow) in enumerate(self.hidden):
            layer = {"one": dense(next(keys), 3 * one + 2 * two, wide)}
            if k + 1 < len(self.hidden) or self.last:
                layer["two"] = dense(next(keys), two, narrow)
            layers.append(layer)
            one, two = wide, narrow
        if self.last:
            layers.append({"one": dense(next(keys), 3 * one + 2 * two, self.last)})
            one = self.last
        zeta, share = slater(self.molecule)
        spins = [s for s, count in enumerate(self.molecule.spins) if count]
        shape = (self.determinants, n, atoms)
        orbitals = {
            str(s): {
                "linear": dense(next(keys), one, self.determinants * n),
                "decay": jnp.broadcast_to(zeta[None], shape),
                "share": jnp.broadcast_to(share[None], shape),
            }
            for s in spins
        }
        return {"layers": layers, "orbitals": orbitals, "cusp": jnp.full(2, CUSP, zeta.dtype)}

    def __call__(self, params: PyTree, x: Float[Array, "n 3"]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        signs, logs = slogdet(self.orbitals(params, x))
        top = jnp.maximum(jnp.max(logs), LOWEST)
        total = jnp.sum(signs * jnp.exp(logs - top))
        log = top + jnp.log(jnp.abs(total))
        return jnp.sign(total), log + self.jastrow(params, x) if self.cusps else log

    def laplacian(self, params: PyTree, x: Float[Array, "n 3"]) -> tuple[Float[Array, "n 3"], Float[Array, ""]]:
        """∇ log|ψ| and Δ log|ψ| at one x: faster than a general forward Laplacian."""
        return laplacian(self, params, x)

    def orbitals(self, params: PyTree, x: Float[Array, "n 3"]) -> Float[Array, "K n n"]:
        """φ_j(x_i; all others) of every determinant: entry (k, i, j)."""
        h = self._stream(params["layers"], x)
        places = jnp.asarray(self.molecule.places, x.dtype)
        distance = jnp.linalg.norm(x[:, None, :] - places[None, :, :], axis=-1)
        parts, start = [], 0
        for s, count in enumerate(self.molecule.spins):
            if count:
                mine = slice(start, start + count)
                parts.append(self._spin_orbitals(params["orbitals"][str(s)], h[mine], distance[mine]))
            start += count
        return jnp.concatenate(parts, axis=1)

    def _spin_orbitals(self, params: PyTree, h: Float[Array, "m w"], distance: Float[Array, "m atoms"]) -> Array:
        K, n = self.determinants, self.molecule.electrons
        # Nuclei first and orbitals last: sums over a short last axis are slow.
        decay, share = (jnp.moveaxis(params[name], -1, 0).reshape(-1, 1, K * n) for name in ("decay", "share"))
        envelope = jnp.sum(share * jnp.exp(-decay * distance.T[:, :, None]), axis=0)
        orbitals = affine(params["linear"], h) * envelope
        return jnp.swapaxes(orbitals.reshape(h.shape[0], K, n), 0, 1)

    def _stream(self, layers: Sequence[Any], x: Float[Array, "n 3"]) -> Float[Array, "n w"]:
        """The one-electron stream after all layers."""
        h, pair = self._features(x)
        for layer in layers:
            means, pairs = (
                jnp.concatenate(_spin_means(values, self.molecule.spins, axis), axis=-1)
                for axis, values in enumerate((h, pair))
            )
            h = residual(h, jnp.tanh(gather(layer["one"], h, means, pairs)))
            if "two" in layer:
                pair = residual(pair, jnp.tanh(affine(layer["two"], pair)))
        return h

    def _features(self, x: Float[Array, "n 3"]) -> tuple[Float[Array, "n f"], Float[Array, "n n 4"]]:
        """To the nuclei and to each other: vectors and distances, growing like logarithms far away."""
        places = jnp.asarray(self.molecule.places, x.dtype)
        one = _shrunk(x[:, None, :] - places[None, :, :], jnp.zeros((), x.dtype))
        # The distance of an electron to itself is 0, where a norm has no derivative.
        same = jnp.eye(x.shape[0], dtype=x.dtype)[:, :, None]
        two = _shrunk(x[:, None, :] - x[None, :, :], same) * (1 - same)
        return one.reshape(x.shape[0], -1), two

    def jastrow(self, params: PyTree, x: Float[Array, "n 3"]) -> Float[Array, ""]:
        """−Σ c α²/(α + r): slope ¼ between equal spins and ½ between opposite ones where electrons meet."""
        up, down = self.molecule.spins
        spin = np.array([0] * up + [1] * down)
        i, j = np.triu_indices(x.shape[0], 1)
        if not i.size:
            return jnp.zeros((), x.dtype)
        opposite = spin[i] != spin[j]
        slope = jnp.asarray(np.where(opposite, 0.5, 0.25), x.dtype)
        alpha = jnp.where(opposite, params["cusp"][1], params["cusp"][0])
        r = jnp.linalg.norm(x[i] - x[j], axis=-1)
        return -jnp.sum(slope * alpha**2 / (alpha + r))


def slater(molecule: Molecule) -> tuple[Float[Array, "n atoms"], Float[Array, "n atoms"]]:
    """Exponents ζ and shares of the envelopes: each orbital belongs to a core shell, or to the outermost shells.

    Shells are filled from the inside, by Slater's rules in their simplest form: ζ = (Z − s)/shell, where s counts 0.85
    for every electron further inside and 0.35 for the others of the shell. Orbitals of a mean field spread over equal
    nuclei, so that those of a core begin at every nucleus that has it; all others begin at all nuclei.
    """
    charges, (up, down) = molecule.charges, molecule.spins
    places = [*_filled(molecule, up), *_filled(molecule, down)]
    cores = [shell if shell < _outer(charges[atom]) else None for atom, shell in places]
    zeta = np.array([[_exponent(Z, core or _outer(Z)) for Z in charges] for core in cores])
    share = np.array([[float(core is None or core < _outer(Z)) for Z in charges] for core in cores])
    return jnp.asarray(zeta), jnp.asarray(share)


CAPACITY = (1, 4, 4, 9)  # orbitals of each shell


def _filled(molecule: Molecule, count: int) -> list[tuple[int, int]]:
    """(nucleus, shell) of the orbitals of one spin: inner shells of all nuclei first, then outer ones in turn."""
    places = []
    for shell, capacity in enumerate(CAPACITY, 1):
        for _ in range(capacity):
            places += [(atom, shell) for atom, charge in enumerate(molecule.charges) if shell <= _outer(charge)]
    return places[:count] if len(places) >= count else [places[i % len(places)] for i in range(count)]


def _outer(charge: int) -> int:
    """The outermost shell of a neutral atom."""
    return 1 if charge <= 2 else 2 if charge <= 10 else 3 if charge <= 18 else 4


def _exponent(charge: int, shell: int) -> float:
    inside = {1: 0, 2: 2, 3: 10, 4: 18}[shell]
    beside = max(min(charge, {1: 2, 2: 10, 3: 18, 4: 36}[shell]) - inside - 1, 0)
    return max((charge - 0.85 * inside - 0.35 * beside) / shell, 0.5)


def _shrunk(v: Float[Array, "a b 3"], away: Float[Array, "..."]) -> Float[Array, "a b 4"]:
    """(v, r) log(1 + r)/r."""
    r = jnp.linalg.norm(v + away, axis=-1, keepdims=True)
    return jnp.concatenate([v, r], axis=-1) * jnp.log1p(r) / r


def _spin_means(h: Array, spins: tuple[int, int], axis: int = 0) -> list[Array]:
    """Means over the electrons of each spin; zeros where there are none."""
    up, down = spins
    parts = [
        jnp.take(h, np.arange(a, b), axis=axis).mean(axis, keepdims=axis == 0) if b > a else None
        for a, b in ((0, up), (up, up + down))
    ]
    like = next(part for part in parts if part is not None)
    return [jnp.zeros_like(like) if part is None else part for part in parts]


def gather(
    layer: tuple[Array, Array], h: Float[Array, "n w"], means: Float[Array, "1 v"], pairs: Float[Array, "n u"]
) -> Float[Array, "n out"]:
    """A layer of each electron's own values, the means over all, and those over its pairs. Means are the same for every
    electron, so their part is computed once: most of the work, and a gradient that is one outer product."""
    W, b = layer
    own, shared = h.shape[1], h.shape[1] + means.shape[1]
    common = means @ W[own:shared] + b[None]
    return h @ W[:own] + pairs @ W[shared:] + jnp.broadcast_to(common, (h.shape[0], b.shape[0]))
