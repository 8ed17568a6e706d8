"""Quantum dots: electrons in a harmonic trap, in one, two or three dimensions, and a network for them.

    ψ = Σ_k det(φ_k↑) det(φ_k↓) exp(J − w ω Σ x²/2)

Orbitals φ are the oscillator's, filled shell by shell, times and plus what a network says of each electron among the
others. Its features are smooth where electrons meet, so that the cusps are those of J alone, and exact.
"""

from collections.abc import Sequence
from itertools import product
from math import factorial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from angd.problems.vmc.determinants import slogdet
from angd.problems.vmc.hamiltonian import Trap
from angd.problems.vmc.layers import affine, dense, residual
from angd.problems.vmc.problem import GroundState
from angd.problems.vmc.sampling import GaussianStart, Metropolis

NUDGE = 0.05  # of what the network adds to the oscillator's orbitals at the start


class DotNet(eqx.Module):
    """An antisymmetric network for electrons in a harmonic trap.

    **Arguments:**

    - `spins`: electrons up and down, (n↑, n↓).
    - `dimension`: of the trap, 1, 2 or 3.
    - `omega`: its frequency ω, in Hartree.
    - `hidden`: widths of each layer, for an electron and for a pair.
    - `determinants`: how many products are summed.

    **Returns:** called as `(params, x)` with x of shape (n, dimension), spin up first, the pair (sign, log|ψ|).

    **Example:** `GroundState(DotNet((1, 1)), Trap(1.0, repulsion=1.0, spins=(1, 1)))`
    """

    spins: tuple[int, int] = eqx.field(static=True)
    dimension: int = eqx.field(static=True, default=2)
    omega: float = eqx.field(static=True, default=1.0)
    hidden: tuple[tuple[int, int], ...] = eqx.field(static=True, default=((24, 12), (24, 12)))
    determinants: int = eqx.field(static=True, default=4)

    def __check_init__(self):
        if min(self.spins) < 0 or sum(self.spins) < 1 or self.dimension not in (1, 2, 3) or not self.omega > 0:
            raise ValueError("DotNet: it takes electrons, spins ≥ 0, dimension 1, 2 or 3, and omega > 0.")
        if not self.hidden or min(map(min, self.hidden)) < 1 or self.determinants < 1:
            raise ValueError("DotNet: hidden widths and determinants must be positive.")

    def init(self, key: Array) -> PyTree:
        """Parameters: the oscillator's orbitals, hardly disturbed."""
        keys = iter(jax.random.split(key, 2 * len(self.hidden) + 2))
        one = two = self.dimension + 1
        layers = []
        for wide, narrow in self.hidden:
            layers.append({"one": dense(next(keys), 3 * one + 2 * two, wide), "two": dense(next(keys), two, narrow)})
            one, two = wide, narrow
        return {
            "layers": layers,
            "orbitals": [dense(next(keys), one, 2 * self.determinants * count, NUDGE) for count in self.spins if count],
            "jastrow": jnp.zeros(one),
            "range": jnp.ones(2),
            "width": jnp.ones(()),
        }

    def __call__(self, params: PyTree, x: Float[Array, "n d"]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        y = jnp.sqrt(self.omega) * x
        h = self._stream(params["layers"], y)
        sign, log = jnp.ones(self.determinants, x.dtype), jnp.zeros(self.determinants, x.dtype)
        start, changes = 0, iter(params["orbitals"])
        for count in self.spins:
            if count:
                mine = slice(start, start + count)
                signs, logs = slogdet(self._orbitals(next(changes), h[mine], y[mine]))
                sign, log, start = sign * signs, log + logs, start + count
        top = jnp.max(log)
        total = jnp.sum(sign * jnp.exp(log - top))
        smooth = jnp.sum(h @ params["jastrow"]) - params["width"] * jnp.sum(y**2) / 2
        return jnp.sign(total), top + jnp.log(jnp.abs(total)) + smooth + self.cusps(params, x)

    def _orbitals(self, layer: Any, h: Float[Array, "m w"], y: Float[Array, "m d"]) -> Float[Array, "K m m"]:
        """p_j(y_i) (1 + u_kj(h_i)) + v_kj(h_i)."""
        m, K = h.shape[0], self.determinants
        u, v = jnp.moveaxis(affine(layer, h).reshape(m, 2, K, m), (1, 2), (0, 1))
        return oscillator(y, m)[None] * (1 + u) + v

    def _stream(self, layers: Sequence[Any], y: Float[Array, "n d"]) -> Float[Array, "n w"]:
        """Each electron among the others: its own values, means over the spins, and means over its pairs."""
        h, pair = _bounded(y), _bounded(y[:, None] - y[None])
        for layer in layers:
            means = jnp.broadcast_to(self._means(h, 0).reshape(1, -1), (h.shape[0], 2 * h.shape[1]))
            pairs = jnp.moveaxis(self._means(pair, 1), 0, 1).reshape(h.shape[0], -1)
            h = residual(h, jnp.tanh(affine(layer["one"], jnp.concatenate([h, means, pairs], axis=-1))))
            pair = residual(pair, jnp.tanh(affine(layer["two"], pair)))
        return h

    def _means(self, values: Array, axis: int) -> Array:
        """Over the electrons of each spin, the spins first; zeros where there are none."""
        up, down = self.spins
        total = [
            jnp.sum(jnp.take(values, np.arange(*ends), axis=axis), axis=axis) for ends in ((0, up), (up, up + down))
        ]
        return jnp.stack([part / max(count, 1) for part, count in zip(total, self.spins, strict=True)])

    def cusps(self, params: PyTree, x: Float[Array, "n d"]) -> Float[Array, ""]:
        """−Σ c α²/(α + r): slopes 1/(d + 1) between equal spins and 1/(d − 1) between others as r → 0."""
        up, down = self.spins
        spin = np.array([0] * up + [1] * down)
        i, j = np.triu_indices(up + down, 1)
        if not i.size or self.dimension == 1:
            return jnp.zeros((), x.dtype)
        equal = spin[i] == spin[j]
        slope = jnp.asarray(np.where(equal, 1 / (self.dimension + 1), 1 / (self.dimension - 1)), x.dtype)
        alpha = jnp.where(equal, jnp.abs(params["range"][0]), jnp.abs(params["range"][1]))
        return -jnp.sum(slope * alpha**2 / (alpha + jnp.linalg.norm(x[i] - x[j], axis=-1)))


def oscillator(y: Float[Array, "m d"], count: int) -> Float[Array, "m count"]:
    """Hermite polynomials of the lowest states of the oscillator, as if normalised, at each place."""
    degrees = lowest_degrees(y.shape[1], count)
    powers = _hermite(y, max(map(max, degrees)))
    columns = [jnp.prod(jnp.stack([powers[a][:, i] for i, a in enumerate(state)]), axis=0) for state in degrees]
    return jnp.stack(columns, axis=1)


def lowest_degrees(dimension: int, count: int) -> list[tuple[int, ...]]:
    """Quantum numbers of the states that are filled, shell by shell."""
    states = product(range(count), repeat=dimension)
    return sorted(states, key=lambda state: (sum(state), tuple(-a for a in state)))[:count]


def _hermite(y: Float[Array, "m d"], top: int) -> list[Float[Array, "m d"]]:
    """H_a(y)/√(2^a a!) for a up to `top`."""
    found = [jnp.ones_like(y), 2 * y]
    for a in range(1, top):
        found.append(2 * y * found[a] - 2 * a * found[a - 1])
    return [H / np.sqrt(2.0**a * factorial(a)) for a, H in enumerate(found[: top + 1])]


def quantum_dot(
    spins: tuple[int, int], dimension: int = 2, omega: float = 1.0, energy: float | None = None
) -> dict[str, Any]:
    """A dot's problem, its Markov chain and its reference energy, as arguments of `Task`.

    **Arguments:**

    - `spins`: electrons up and down, (n↑, n↓).
    - `dimension`: 2 or 3.
    - `omega`: the frequency of the trap, in Hartree.
    - `energy`: a reference, or None.

    **Returns:** a dictionary.

    **Example:** `angd.Task(**quantum_dot((3, 3)), name="six electrons")`
    """
    if dimension not in (2, 3):
        raise ValueError(
            f"quantum_dot: dimension must be 2 or 3, got {dimension!r}: on a line 1/r has no finite energy."
        )
    network = DotNet(spins, dimension, omega)
    chain = Metropolis(GaussianStart(sum(spins), dimension, omega**-0.5), 512, 10, 200, 0.3 * omega**-0.5)
    problem = GroundState(network, Trap(omega, repulsion=1.0, spins=spins))
    return {"problem": problem, "samples": chain, "energy": energy}


def _bounded(v: Float[Array, "... d"]) -> Float[Array, "... f"]:
    """v/s and log s with s = √(1 + v²): smooth where v = 0."""
    s = jnp.sqrt(1 + jnp.sum(v**2, axis=-1, keepdims=True))
    return jnp.concatenate([v / s, jnp.log(s)], axis=-1)
