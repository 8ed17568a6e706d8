"""Is an operator Hermitian, where it has too many configurations to look at all of them?

Some are drawn at random, and every way that leads away from them must lead back, with the conjugate element. Small
systems are looked at as a whole, in `Basis.of`.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Int

from angd.problems.lattice.hamiltonians import AbstractHamiltonian

LOOKS, WAYS = 16, 32  # configurations, and how many of the ways from each


def check_hermitian(hamiltonian: AbstractHamiltonian) -> None:
    """Refuse an operator that is not, by what it does to a few configurations."""
    if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(hamiltonian)):
        return
    forth, home = _both_ways(hamiltonian, jnp.asarray(drawn(hamiltonian)))
    if not np.allclose(forth, np.conj(home), rtol=1e-4, atol=1e-6):
        raise ValueError(not_hermitian(hamiltonian))


@eqx.filter_jit
def _both_ways(hamiltonian: AbstractHamiltonian, x: Int[Array, "looks n"]) -> tuple[Array, Array]:
    """Elements from configurations to some that they lead to, and back."""
    there, elements = jax.vmap(hamiltonian.connections)(x)
    some = there[:, np.random.default_rng(1).permutation(there.shape[1])[:WAYS]]
    back, returned = jax.vmap(jax.vmap(hamiltonian.connections))(some)
    return _arriving(elements[:, None], there[:, None], some), _arriving(returned, back, x[:, None])


def not_hermitian(hamiltonian: AbstractHamiltonian) -> str:
    """The sentence."""
    return f"{type(hamiltonian).__name__} is not Hermitian: ⟨x|H|x′⟩ must be the conjugate of ⟨x′|H|x⟩."


def drawn(hamiltonian: AbstractHamiltonian) -> Int[np.ndarray, "looks n"]:
    """Configurations at random, with as many of the larger value as H conserves."""
    rng, (low, high) = np.random.default_rng(0), hamiltonian.values
    if hamiltonian.counts is None:
        return rng.choice([low, high], (LOOKS, hamiltonian.size)).astype(np.int32)
    each = hamiltonian.size // len(hamiltonian.counts)
    parts = [np.where(np.arange(each) < count, high, low) for count in hamiltonian.counts]
    return np.array([np.concatenate([rng.permutation(p) for p in parts]) for _ in range(LOOKS)], np.int32)


def _arriving(elements: Array, places: Array, at: Array) -> Array:
    """The elements of all ways that lead to a place, together."""
    return jnp.sum(jnp.where(jnp.all(places == at[..., None, :], axis=-1), elements, 0), axis=-1)
