"""Small systems, state by state: all configurations, how H connects them, exact sums and exact energies.

Basis.of(H)                       every configuration that H can reach, by its conserved numbers
Basis.of(H, lattice.translations())   one of each orbit, with the number of its members: for amplitudes that a
                                  translation does not change, sums over a tenth of the states are still exact
Enumerated(basis)                 a sampler whose weights are ρ; with `draws`, counts of independent samples
lowest(basis)                     the lowest energies, by Lanczos' method: the judge
"""

from functools import partial
from itertools import product
from math import comb, prod
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sparse
from jaxtyping import Array, Float, Inexact, Int, PyTree
from scipy.sparse.linalg import eigsh

from angd.method.samples import Samples
from angd.problems.lattice.hamiltonians import AbstractHamiltonian
from angd.problems.lattice.hermitian import not_hermitian

MOST = 2**22  # configurations that are enumerated
CHUNK = 2**12  # configurations at a time
DENSE = 200  # up to this size all eigenvalues are found at once


class Basis(eqx.Module):
    """All configurations, or one of each orbit of a symmetry, and where H leads from each.

    **Attributes:**

    - `x`: configurations, shape (n, size).
    - `members`: how many configurations each stands for, shape (n,).
    - `neighbours`: numbers of the configurations that H connects each with, shape (n, K).
    - `elements`: ⟨x|H|x′⟩, shape (n, K).
    """

    x: Int[Array, "n size"]
    members: Float[Array, "n"]
    neighbours: Int[Array, "n K"]
    elements: Inexact[Array, "n K"]

    @classmethod
    def of(cls, hamiltonian: AbstractHamiltonian, symmetry: Int[np.ndarray, "order size"] | None = None) -> "Basis":
        """Enumerate.

        **Arguments:** `hamiltonian`, which must be Hermitian; `symmetry`, permutations of the entries, a group that H
        commutes with and the amplitude does not notice, such as `lattice.translations()`.

        **Returns:** a `Basis`.
        """
        x = configurations(hamiltonian)
        codes = _codes(x, hamiltonian.values)
        if symmetry is None:
            first, orbit, members = np.arange(len(x)), np.arange(len(x)), np.ones(len(x))
        else:
            lowest = np.min([_codes(x[:, row], hamiltonian.values) for row in symmetry], axis=0)
            _, first, orbit, members = np.unique(lowest, return_index=True, return_inverse=True, return_counts=True)
        there, elements = _connections(hamiltonian, x[first])
        order = np.argsort(codes)
        place = np.searchsorted(codes, _codes(there, hamiltonian.values), sorter=order)
        found = order[np.minimum(place, len(order) - 1)]
        if np.any((x[found] != there) & (elements != 0)[..., None]):
            raise ValueError(
                f"{type(hamiltonian).__name__} leads out of its configurations: counts says what it conserves."
            )
        made = cls(jnp.asarray(x[first]), jnp.asarray(members, float), jnp.asarray(orbit[found]), jnp.asarray(elements))
        return made.checked(hamiltonian)

    @property
    def size(self) -> int:
        """How many there are."""
        return self.x.shape[0]

    def matrix(self) -> Any:
        """H between the normalised sums over orbits, a sparse matrix."""
        rows = np.repeat(np.arange(self.size), self.neighbours.shape[1])
        columns, members = np.asarray(self.neighbours).ravel(), np.asarray(self.members)
        # A sum over m members, divided by √m: from orbit i, Σ over what one member leads to, times √(mᵢ/mⱼ).
        wide = np.asarray(self.elements, complex if jnp.iscomplexobj(self.elements) else float)
        values = wide.ravel() * np.sqrt(members[rows] / members[columns])
        return sparse.csr_matrix((values, (rows, columns)), (self.size, self.size))

    def checked(self, hamiltonian: AbstractHamiltonian) -> "Basis":
        """Itself, if H is Hermitian."""
        H = self.matrix()
        if abs(H - H.conj().T).max() > 1e3 * jnp.finfo(self.elements.dtype).eps * max(abs(H).max(), 1):
            raise ValueError(not_hermitian(hamiltonian))
        return self

    def log_amplitudes(self, amplitude: Any, params: PyTree) -> Inexact[Array, "n"]:
        """log ψ of all."""
        return jax.vmap(amplitude, (None, 0))(params, self.x)

    def weights(self, log_psi: Inexact[Array, "n"]) -> Float[Array, "n"]:
        """ρ of all, each with its members: they sum to 1."""
        return jax.nn.softmax(2 * jnp.real(log_psi) + jnp.log(self.members))

    def local_energies(self, log_psi: Inexact[Array, "n"]) -> Inexact[Array, "n"]:
        """Σ_x′ ⟨x|H|x′⟩ ψ(x′)/ψ(x) of all, from one amplitude for each."""
        ratios = jnp.exp(log_psi[self.neighbours] - log_psi[:, None])
        return jnp.sum(jnp.where(self.elements != 0, self.elements * ratios, 0), axis=1)


class States(Samples):
    """Samples that are all states of a basis, with ρ, or counts, as weights.

    **Arguments:**

    - `basis`: a `Basis`.
    - `omega`: weights, shape (n,).
    """

    basis: Basis

    def __init__(self, basis: Basis, omega: Float[Array, "n"]):
        super().__init__(basis.x, omega)
        self.basis = basis


class Enumerated(eqx.Module):
    """Exact sums: a sampler that gives all states of a basis, weighed by ρ at the present parameters.

    **Arguments:**

    - `basis`: a `Basis`, whose symmetry the amplitude must share.
    - `draws`: give each state the share of so many independent samples of ρ that fall on it instead; None is exact.

    **Returns:** called as `(key, problem, params)`, `Samples` that know their basis; exact sums need no key, None.
    """

    basis: Basis
    draws: int | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        if self.draws is not None and self.draws < 2:
            raise ValueError(f"Enumerated: draws must be at least 2, or None for exact sums, got {self.draws}.")

    def __call__(self, key: Array | None, problem: Any, params: PyTree) -> States:
        rho = self.basis.weights(self.basis.log_amplitudes(problem.log_amplitude, params))
        return States(self.basis, rho if key is None or self.draws is None else counted(key, rho, self.draws))

    def energy(self, problem: Any, params: PyTree) -> Float[Array, ""]:
        """The energy of the state, without error."""
        log_psi = self.basis.log_amplitudes(problem.log_amplitude, params)
        return jnp.sum(self.basis.weights(log_psi) * jnp.real(self.basis.local_energies(log_psi)))

    def means(self, functions: Any, problem: Any, params: PyTree) -> dict[str, Array]:
        """Σ ρ f of functions f(params, x) by name, over every configuration: f need not share the basis's symmetry."""
        x = jnp.asarray(configurations(problem.hamiltonian))

        def at(x: Int[Array, "size"]) -> tuple[Array, dict[str, Array]]:
            log = 2 * jnp.real(problem.log_amplitude(params, x))
            return log, {name: jnp.real(f(params, x)) for name, f in functions.items()}

        logs, values = jax.lax.map(at, x, batch_size=min(CHUNK, x.shape[0]))
        rho = jax.nn.softmax(logs)
        return {name: jnp.tensordot(rho, value.astype(rho.dtype), 1) for name, value in values.items()}


def counted(key: Array, rho: Float[Array, "n"], draws: int) -> Float[Array, "n"]:
    """The share of independent samples that falls on each state."""
    cumulative = jnp.cumsum(rho)
    places = jnp.searchsorted(cumulative, cumulative[-1] * jax.random.uniform(key, (draws,), rho.dtype))
    return jnp.bincount(jnp.minimum(places, rho.shape[0] - 1), length=rho.shape[0]) / draws


def configurations(hamiltonian: AbstractHamiltonian) -> Int[np.ndarray, "n size"]:
    """Every configuration with the numbers that H conserves."""
    low, high = hamiltonian.values
    counts = hamiltonian.counts or (None,)
    each = hamiltonian.size // len(counts)
    if each > np.log2(MOST) or hamiltonian.size < 1:
        raise ValueError(f"Basis: configurations of {hamiltonian.size} entries are too many to enumerate: sample them.")
    parts = [_words(each, count) for count in counts]
    if min(map(len, parts)) == 0 or np.prod([len(part) for part in parts]) > MOST:
        raise ValueError(f"Basis: there are no, or more than {MOST}, configurations of counts {counts}.")
    whole = [np.concatenate(rows) for rows in product(*parts)] if len(parts) > 1 else parts[0]
    return np.where(np.asarray(whole) == 1, high, low).astype(np.int32)


def configurations_count(hamiltonian: AbstractHamiltonian) -> int:
    """How many configurations there are."""
    counts = hamiltonian.counts
    each = hamiltonian.size // len(counts) if counts else 0
    return 2**hamiltonian.size if counts is None else prod(comb(each, count) for count in counts)


def lowest(basis: Basis, count: int = 2) -> Float[np.ndarray, "count"]:
    """The lowest energies within a basis and its symmetry.

    **Arguments:**

    - `basis`: a `Basis`.
    - `count`: how many levels.

    **Returns:** energies in rising order.
    """
    H = basis.matrix()
    if basis.size <= max(DENSE, count + 1):
        return np.linalg.eigvalsh(H.toarray())[:count]
    start = np.random.default_rng(0).normal(size=basis.size)
    return np.sort(eigsh(H, k=count, which="SA", v0=start.astype(H.dtype))[0])


def _words(n: int, count: int | None) -> Int[np.ndarray, "words n"]:
    """All words of n bits, or those with so many ones."""
    bits = (np.arange(2**n)[:, None] >> np.arange(n - 1, -1, -1)) & 1
    return bits if count is None else bits[bits.sum(axis=1) == count]


def _codes(x: Int[np.ndarray, "*n size"], values: tuple[int, int]) -> Int[np.ndarray, "*n"]:
    """A configuration as one number."""
    return (x == values[1]).astype(np.int64) @ (1 << np.arange(x.shape[-1], dtype=np.int64))


def _connections(hamiltonian: AbstractHamiltonian, x: Int[np.ndarray, "n size"]) -> tuple[np.ndarray, np.ndarray]:
    """Those of every configuration."""
    each = jax.jit(partial(jax.lax.map, hamiltonian.connections, batch_size=min(CHUNK, len(x))))
    there, elements = each(jnp.asarray(x))
    return np.asarray(there), np.asarray(elements)
