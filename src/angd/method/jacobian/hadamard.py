"""Kernels from factors without per-sample gradients: Σ_{t,t′} (a_t · a_t′)(g_t · g_t′), block by block of samples.

`Relative` takes the row Σ_t ā_t ⊗ ḡ_t of the mean factors off every row first. With a = ā + ã and g = ḡ + g̃ what is
left of a row is Σ_t ā_t ⊗ g̃_t + ã_t ⊗ g_t, so that a pair of uses contributes, with inner products of small vectors,

    (g̃·g̃′)(ā·ā′ + ã·ā′ + ã′·ā + ã·ã′) + (ã·ã′)(g̃·ḡ′ + g̃′·ḡ + ḡ·ḡ′) + (ã′·ā)(g̃·ḡ′) + (ã·ā′)(g̃′·ḡ):

no large numbers are subtracted, and the two products of matrices are those of the plain form.
"""

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, PyTree

from angd.method.jacobian.taps import Group


def _cut(pairs: PyTree, count: int, size: int) -> PyTree:
    """Samples of every array in `count` blocks of `size`, padded with zeros."""

    def cut(x: Array) -> Array:
        padded = jnp.pad(x, ((0, count * size - x.shape[0]), *((0, 0),) * (x.ndim - 1)))
        return padded.reshape(count, size, *x.shape[1:])

    return eqx.tree_at(lambda p: p.samples, pairs, tuple(map(cut, pairs.samples)))


class Plain(eqx.Module):
    """The factors as they are: `samples` has a (n, c, B, T, in) and g (n, m, B, T, out)."""

    samples: tuple[Array, ...]

    @classmethod
    def of(cls, group: Group) -> "Plain":
        return cls((group.a, group.g))

    def cut(self, count: int, size: int) -> "Plain":
        """In blocks of samples."""
        return _cut(self, count, size)

    def block(self, i: Array, j: Array) -> Float[Array, "N N"]:
        """Block (i, j) of the kernel."""
        a, g = self.samples
        return _summed(_inner(a[i], a[j]) * _inner(g[i], g[j]))


class Relative(eqx.Module):
    """Factors less their means; `samples` has ã, g̃, ã·ā′ and g̃·ḡ′, `means` has ā·ā′ and ḡ·ḡ′."""

    samples: tuple[Array, ...]
    means: tuple[Array, ...]

    @classmethod
    def of(cls, group: Group) -> "Relative":
        a0, g0 = jnp.mean(group.a, axis=0), jnp.mean(group.g, axis=0)
        a, g = group.a - a0[None], group.g - g0[None]
        along = [jnp.einsum("ncbti,dbui->ncbtdu", x, x0) for x, x0 in ((a, a0), (g, g0))]
        means = [jnp.einsum("cbti,dbui->cbtdu", x0, x0) for x0 in (a0, g0)]
        return cls((a, g, *along), tuple(means))

    def cut(self, count: int, size: int) -> "Relative":
        """In blocks of samples."""
        return _cut(self, count, size)

    def block(self, i: Array, j: Array) -> Float[Array, "N N"]:
        """Block (i, j) of the kernel."""
        a, g, along_a, along_g = self.samples
        aa, gg = (x.transpose(1, 2, 0, 4, 3)[:, :, None, :, :, None, :] for x in self.means)
        A, G = _inner(a[i], a[j]), _inner(g[i], g[j])
        a_left, g_left = (x[i].transpose(2, 3, 0, 1, 5, 4)[:, :, :, :, :, None, :] for x in (along_a, along_g))
        a_right, g_right = (x[j].transpose(2, 5, 4, 3, 0, 1)[:, :, None] for x in (along_a, along_g))
        product = G * (aa + a_left + a_right + A) + A * (g_left + g_right + gg) + a_right * g_left + a_left * g_right
        return _summed(product)


def _summed(product: Float[Array, "B T s c T s c"]) -> Float[Array, "N N"]:
    block = product.sum((0, 1, 4))
    return block.reshape(block.shape[0] * block.shape[1], -1)


def _inner(x: Float[Array, "s c B T k"], y: Float[Array, "s c B T k"]) -> Float[Array, "B T s c T s c"]:
    """All inner products between two blocks of samples, as one matrix product per b."""
    (s, c, batch, uses, k) = x.shape
    x, y = (lax.transpose(z, (2, 3, 0, 1, 4)).reshape(batch, uses * s * c, k) for z in (x, y))
    return jnp.einsum("bik,bjk->bij", x, y).reshape(batch, uses, s, c, uses, s, c)
