"""O as layer factors: every product straight from the small arrays (a, g).

The kernel takes, leaf by leaf, whichever is cheaper: the Hadamard form Σ_{t,t'} (a_t a_t'ᵀ) ∘ (g_t g_t'ᵀ), which never
sees in × out numbers per sample, or the per-sample gradients of that leaf and one large product.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial, reduce
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, PyTree

from angd.method.jacobian.base import AbstractJacobian, Layout, shifted, wide_layout
from angd.method.jacobian.hadamard import Plain, Relative, taken
from angd.method.jacobian.leaves import (
    Fluctuation,
    backward,
    forward,
    hadamard_wins,
    rows,
    side_by_side,
)
from angd.method.jacobian.panels import Columns, add_products, columns_of
from angd.method.jacobian.symmetric import outer, tiled, weigh, weigh_rows
from angd.method.jacobian.taps import Group, Leaf, taps
from angd.tree import in_precision

# Rows (samples × outputs × uses) per block of a Hadamard product: two such blocks of inner products stay in the cache.
BLOCK = 320


class Factored(AbstractJacobian):
    """O held as the activations and cotangents of each parameter leaf; see `angd.method.jacobian.taps`.

    **Attributes:**

    - `leaves`: activations and cotangents of each parameter leaf.
    - `layout`: how parameters lie in a row.
    - `shape`: of the rows.
    - `around`: the factors of every leaf around their means; with them the row of the mean factors is taken off
      every row.
    - `small`: the kernel should take little memory rather than little time.
    """

    leaves: tuple[Leaf, ...]
    layout: Layout = eqx.field(static=True)
    shape: tuple[int, ...] = eqx.field(static=True)
    around: tuple[tuple[Fluctuation, ...], ...] | None = None
    small: bool = eqx.field(static=True, default=False)

    @classmethod
    def of(cls, f: Callable[..., Any], params: PyTree, xs: PyTree) -> "Factored":
        batch = jax.vmap(lambda x: taps(f, params, x))(xs)
        # Factors are computed once: fused into the products that use them they would be computed again and again.
        leaves = lax.optimization_barrier(batch.leaves)
        return cls(leaves=leaves, layout=Layout.of(params), shape=batch.value.shape)

    def matvec(self, d: PyTree) -> Float[Array, "n *m"]:
        directions = self.layout.treedef.flatten_up_to(d)
        parts = [push(v) for pushes, v in zip(self._pushes(), directions, strict=True) for push in pushes]
        return sum(parts, jnp.zeros(self._rows, self.layout.dtype)).reshape(self.shape)

    def rmatvec(self, y: Float[Array, "n *m"]) -> PyTree:
        y = y.reshape(self._rows)
        pulls = zip(self.leaves, self._pulls(), strict=True)
        pulled = [sum((pull(y) for pull in each), jnp.zeros(leaf.shape)) for leaf, each in pulls]
        cast = [leaf.astype(dtype) for leaf, dtype in zip(pulled, self.layout.dtypes, strict=True)]
        return self.layout.treedef.unflatten(cast)

    def kernel(self, scale: Float[Array, " N"] | None = None, relative: bool = False) -> Float[Array, "N N"]:
        relative, paired = self.relative(relative), self.paired
        whole = paired_kernel(paired, *self._rows, relative, self.layout.dtype) if paired else None
        change = self._less_mean if relative else lambda part: part
        return weigh(add_products(self.columns, self.n_rows, self.layout.dtype, whole, change), scale)

    def relative(self, wanted: bool = False) -> bool:
        """Is one row near their mean taken off all before they are multiplied?"""
        # In double precision a common part costs no digits that anybody misses.
        return (wanted or self.around is not None) and self.layout.dtype.itemsize < 8

    @property
    def paired(self) -> list[Group]:
        """What enters the kernel in Hadamard form."""
        return [g for leaf in self.leaves if leaf.separate for g in leaf.groups if self._pairs(g)]

    @property
    def columns(self) -> list[Columns]:
        """What enters the kernel as whole gradients."""
        return [part for leaf in self.leaves for part in self._columns(leaf)]

    def gram(
        self, scale: Float[Array, " N"] | None = None, shift: Float[Array, "m p"] | None = None
    ) -> Float[Array, "p p"]:
        return outer(weigh_rows(shifted(self.dense(), shift), scale).T)

    def dense(self) -> Float[Array, "N p"]:
        return side_by_side([rows(leaf, *self._rows, self.layout.dtype) for leaf in self._seen()])

    def _seen(self) -> Sequence[Leaf]:
        """The leaves with the factors of their rows as they are seen."""
        if self.around is None:
            return self.leaves
        pairs = zip(self.leaves, self.around, strict=True)
        return [eqx.tree_at(lambda x: x.groups, leaf, tuple(f.whole() for f in each)) for leaf, each in pairs]

    def _pushes(self) -> list[list[Callable[[Array], Array]]]:
        """For every leaf, what takes its direction to the samples."""
        if self.around is not None:
            return [[f.forward for f in each] for each in self.around]
        return [[partial(forward, group) for group in leaf.groups] for leaf in self.leaves]

    def _pulls(self) -> list[list[Callable[[Array], Array]]]:
        """For every leaf, what takes numbers at the samples back."""
        if self.around is not None:
            return [[f.backward for f in each] for each in self.around]
        return [[partial(backward, group) for group in leaf.groups] for leaf in self.leaves]

    @property
    def _rows(self) -> tuple[int, int]:
        return self.shape[0], math.prod(self.shape[1:])

    def _columns(self, leaf: Leaf) -> list[Columns]:
        """The part of a leaf that enters the kernel as whole gradients."""
        if not leaf.separate:
            return [Columns(math.prod(leaf.shape), lambda: rows(leaf, *self._rows, self.layout.dtype))]
        return [columns_of(g, self.n_rows) for g in leaf.groups if not self._pairs(g)]

    def _pairs(self, group: Group) -> bool:
        return self.small or hadamard_wins(group)

    def _less_mean(self, part: Float[Array, "N width"]) -> Float[Array, "N width"]:
        return shifted(part, jnp.mean(part.reshape(*self._rows, -1), axis=0))

    @property
    def sampled(self) -> tuple[Any, ...]:
        around = self.around or ()
        return (self.leaves, *((f.group, f.a, f.g) for each in around for f in each))

    def near(self) -> "Factored":
        if self.layout.dtype.itemsize >= 8 or self.around is not None:
            return self
        return replace(self, around=tuple(tuple(map(Fluctuation.of, leaf.groups)) for leaf in self.leaves))

    def wide(self) -> "Factored":
        layout = wide_layout(self.layout)
        leaves = in_precision(self.leaves, layout.dtype)
        return Factored(leaves=leaves, layout=layout, shape=self.shape, small=True)


def paired_kernel(
    groups: list[Group], n: int, m: int, relative: bool, dtype: Any, worker: Any = 0, workers: int = 1
) -> Float[Array, "N N"]:
    """Sum of Hadamard forms, over blocks of samples small enough for the cache; or what one of several workers adds."""
    size = min(n, max(8, BLOCK // (m * max(g.a.shape[3] for g in groups))))
    pairs = [Relative.of(g) if relative else Plain.of(g) for g in groups]

    def tile(i: Array, j: Array) -> Float[Array, "N N"]:
        return reduce(jnp.add, (taken(p, i, size).against(taken(p, j, size)) for p in pairs))

    return tiled(n, size, m, tile, dtype, worker, workers)
