"""O as layer factors: every product straight from the small arrays (a, g).

The kernel takes, leaf by leaf, whichever is cheaper: the Hadamard form Σ_{t,t'} (a_t a_t'ᵀ) ∘ (g_t g_t'ᵀ), which never
sees in × out numbers per sample, or the per-sample gradients of that leaf and one large product.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, PyTree

from angd.method.jacobian.base import AbstractJacobian, Layout, shifted, wide_layout
from angd.method.jacobian.hadamard import Plain, Relative
from angd.method.jacobian.leaves import (
    backward,
    backward_less_mean,
    block,
    forward,
    forward_less_mean,
    hadamard_wins,
    less_mean,
    rows,
    side_by_side,
)
from angd.method.jacobian.symmetric import outer, outer_blocks, weigh, weigh_rows
from angd.method.jacobian.taps import Group, Leaf, taps
from angd.tree import in_precision

# Rows (samples × outputs × uses) per block of a Hadamard product: two such blocks of inner products stay in the cache.
BLOCK = 320


class Factored(AbstractJacobian):
    """O held as the activations and cotangents of each parameter leaf; see `angd.method.jacobian.taps`.

    `relative` says that the row of the mean factors is taken off every row; `small`, that the kernel should take little
    memory rather than little time.
    """

    leaves: tuple[Leaf, ...]
    layout: Layout = eqx.field(static=True)
    shape: tuple[int, ...] = eqx.field(static=True)
    relative: bool = eqx.field(static=True, default=False)
    small: bool = eqx.field(static=True, default=False)

    @classmethod
    def of(cls, f: Callable[..., Any], params: PyTree, xs: PyTree) -> "Factored":
        batch = jax.vmap(lambda x: taps(f, params, x))(xs)
        # Factors are computed once: fused into the products that use them they would be computed again and again.
        leaves = lax.optimization_barrier(batch.leaves)
        return cls(leaves=leaves, layout=Layout.of(params), shape=batch.value.shape)

    def matvec(self, d: PyTree) -> Float[Array, "n *m"]:
        directions = self.layout.treedef.flatten_up_to(d)
        push = forward_less_mean if self.relative else forward
        parts = [push(g, v) for leaf, v in zip(self.leaves, directions, strict=True) for g in leaf.groups]
        return sum(parts, jnp.zeros(self._rows, self.layout.dtype)).reshape(self.shape)

    def rmatvec(self, y: Float[Array, "n *m"]) -> PyTree:
        y = y.reshape(self._rows)
        pull = backward_less_mean if self.relative else backward
        pulled = [sum((pull(g, y) for g in leaf.groups), jnp.zeros(leaf.shape)) for leaf in self.leaves]
        cast = [leaf.astype(dtype) for leaf, dtype in zip(pulled, self.layout.dtypes, strict=True)]
        return self.layout.treedef.unflatten(cast)

    def kernel(self, scale: Float[Array, " N"] | None = None, relative: bool = False) -> Float[Array, "N N"]:
        # In double precision a common part costs no digits that anybody misses.
        relative = (relative or self.relative) and self.layout.dtype.itemsize < 8
        paired = [g for leaf in self.leaves if leaf.separate for g in leaf.groups if self._pairs(g)]
        whole = self._paired_kernel(paired, relative) if paired else jnp.zeros((self.n_rows,) * 2, self.layout.dtype)
        columns = [part for leaf in self.leaves for part in self._columns(leaf)]
        if not columns:
            return weigh(whole, scale)
        rows = side_by_side([self._less_mean(part) for part in columns] if relative else columns)
        return weigh(whole + outer(rows), scale)

    def gram(
        self, scale: Float[Array, " N"] | None = None, shift: Float[Array, "m p"] | None = None
    ) -> Float[Array, "p p"]:
        return outer(weigh_rows(shifted(self.dense(), shift), scale).T)

    def dense(self) -> Float[Array, "N p"]:
        return side_by_side([rows(self._seen(leaf), *self._rows, self.layout.dtype) for leaf in self.leaves])

    def _seen(self, leaf: Leaf) -> Leaf:
        """A leaf with the factors of its rows as they are seen."""
        return eqx.tree_at(lambda x: x.groups, leaf, tuple(map(less_mean, leaf.groups))) if self.relative else leaf

    @property
    def _rows(self) -> tuple[int, int]:
        return self.shape[0], math.prod(self.shape[1:])

    def _columns(self, leaf: Leaf) -> list[Float[Array, "N width"]]:
        """The part of a leaf that enters the kernel as whole gradients."""
        if not leaf.separate:
            return [rows(leaf, *self._rows, self.layout.dtype)]
        return [block(g).reshape(self.n_rows, -1) for g in leaf.groups if not self._pairs(g)]

    def _pairs(self, group: Group) -> bool:
        return self.small or hadamard_wins(group)

    def _less_mean(self, part: Float[Array, "N width"]) -> Float[Array, "N width"]:
        return shifted(part, jnp.mean(part.reshape(*self._rows, -1), axis=0))

    def near(self) -> "Factored":
        return self if self.layout.dtype.itemsize >= 8 else replace(self, relative=True)

    def wide(self) -> "Factored":
        layout = wide_layout(self.layout)
        leaves = in_precision(self.leaves, layout.dtype)
        return Factored(leaves=leaves, layout=layout, shape=self.shape, small=True)

    def _paired_kernel(self, groups: list[Group], relative: bool) -> Float[Array, "N N"]:
        """Sum of Hadamard forms, over blocks of samples small enough for the cache."""
        n, m = self._rows
        size = min(n, max(8, BLOCK // (m * max(g.a.shape[3] for g in groups))))
        count = -(-n // size)
        cut = [(Relative.of(g) if relative else Plain.of(g)).cut(count, size) for g in groups]
        kernel = outer_blocks(count, size * m, lambda i, j: reduce(jnp.add, (pairs.block(i, j) for pairs in cut)))
        return kernel[: n * m, : n * m]
