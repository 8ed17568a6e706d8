"""The algebra of one leaf's factors over a batch: `a` is (n, c, B, T, in) and `g` is (n, m, B, T, out)."""

import itertools
import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from angd.method.jacobian.taps import Group, Leaf

# Cost of one entry of a Hadamard product, in multiply-adds of a large matrix product; fitted to measured times.
HADAMARD = 64
# Up to so many uses, a sum of outer products is one fused loop; beyond, a batched matrix product is faster.
FUSED = 24


def forward(group: Group, d: Float[Array, "..."]) -> Float[Array, "n m"]:
    """`O_leaf d`: push the leaf's direction through the activations, then pair with the cotangents."""
    moved = jnp.einsum("ncbti,bio->ncbto", group.a, group.arrangement(d).astype(group.a.dtype))
    return jnp.sum(moved * group.g, axis=(2, 3, 4))


def backward(group: Group, y: Float[Array, "n m"]) -> Float[Array, "..."]:
    """`O_leafᵀ y`."""
    weighted = group.g * y[:, :, None, None, None]
    if group.a.shape[1] == 1:
        weighted = weighted.sum(1, keepdims=True)
    return group.arrangement.transpose(jnp.einsum("ncbti,ncbto->bio", group.a, weighted))


def block(group: Group) -> Float[Array, "n m B in out"]:
    """Per-sample gradients Σ_t a_t ⊗ g_t in the group's own arrangement."""
    a, g = group.a, group.g
    if a.shape[3] > FUSED:
        a = jnp.broadcast_to(a, (*g.shape[:2], *a.shape[2:]))
        return jnp.einsum("nmbti,nmbto->nmbio", a, g)
    terms = [a[:, :, :, t, :, None] * g[:, :, :, t, None, :] for t in range(a.shape[3])]
    return sum(terms[1:], terms[0])


class Fluctuation(eqx.Module):
    """Factors around their means, a = ā + ã and g = ḡ + g̃: those of the rows less Σ_t ā_t ⊗ ḡ_t, which are
    Σ_t ã_t ⊗ g_t + ā_t ⊗ g̃_t."""

    group: Group
    a: Float[Array, "n c B T in"]
    g: Float[Array, "n m B T out"]
    a0: Float[Array, "1 c B T in"]

    @classmethod
    def of(cls, group: Group) -> "Fluctuation":
        """Computed once: several products of one step need them."""
        a0, g0 = (jnp.mean(x, axis=0, keepdims=True) for x in (group.a, group.g))
        return cls(group, *lax.optimization_barrier((group.a - a0, group.g - g0, a0)))

    def whole(self) -> Group:
        """As one group, with twice the uses."""
        activations = jnp.concatenate([self.a, jnp.broadcast_to(self.a0, self.a.shape)], axis=3)
        return Group(self.group.arrangement, activations, jnp.concatenate([self.group.g, self.g], axis=3))

    def forward(self, d: Float[Array, "..."]) -> Float[Array, "n m"]:
        """`forward` of these rows, at the price of the plain one."""
        matrix = self.group.arrangement(d).astype(self.a.dtype)
        moved = jnp.einsum("ncbti,bio->ncbto", self.a, matrix) * self.group.g
        return jnp.sum(moved + jnp.einsum("ncbti,bio->ncbto", self.a0, matrix) * self.g, axis=(2, 3, 4))

    def backward(self, y: Float[Array, "n m"]) -> Float[Array, "..."]:
        """`backward` of these rows: what belongs to ā is one outer product for all samples."""
        full = self.group.g * y[:, :, None, None, None]
        # A product, not a sum: XLA fuses sums into the outer product, and computes them again for each of its entries.
        thin = jnp.einsum("nm,nmbto->mbto", y, self.g)[None]
        if self.a.shape[1] == 1:
            full, thin = full.sum(1, keepdims=True), thin.sum(1, keepdims=True)
        parts = [jnp.einsum("ncbti,ncbto->bio", *pair) for pair in ((self.a, full), (self.a0, thin))]
        return self.group.arrangement.transpose(parts[0] + parts[1])


def rows(leaf: Leaf, n: int, m: int, dtype: jnp.dtype) -> Float[Array, "N leaf"]:
    """Rows of the Jacobian for one leaf, in the order of its entries."""
    moved = [jax.vmap(jax.vmap(group.arrangement.transpose))(block(group)) for group in leaf.groups]
    total = sum(moved[1:], moved[0]) if moved else jnp.zeros((n, m, *leaf.shape), dtype)
    return total.reshape(n * m, math.prod(leaf.shape)).astype(dtype)


def side_by_side(columns: list[Float[Array, "N _"]]) -> Float[Array, "N p"]:
    """One matrix from its column blocks, each written in place (on CPU twice as fast as a concatenation)."""
    stops = [0, *itertools.accumulate(part.shape[1] for part in columns)]
    whole = jnp.zeros((columns[0].shape[0], stops[-1]), columns[0].dtype)
    for start, part in zip(stops, columns, strict=False):
        whole = lax.dynamic_update_slice(whole, part.astype(whole.dtype), (0, start))
    return whole


def pair_cost(group: Group) -> float:
    """Multiply-adds per entry of the kernel in Hadamard form: T² pairs of inner products."""
    (_, c, batch, uses, ins), (_, m, _, _, outs) = group.a.shape, group.g.shape
    return batch * uses**2 * (ins * (c / m) ** 2 + outs + HADAMARD)


def whole_cost(group: Group) -> float:
    """Multiply-adds per entry of the kernel from per-sample gradients, their assembly included."""
    (n, _, batch, uses, ins), (_, m, _, _, outs) = group.a.shape, group.g.shape
    return batch * ins * outs * (1 + 8 * uses / (n * m))


def hadamard_wins(group: Group) -> bool:
    """Is the Hadamard form the cheaper one?"""
    return pair_cost(group) < whole_cost(group)
