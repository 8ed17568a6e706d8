"""O on several devices: its rows lie where their samples do, and no device ever holds them all.

Every device holds its own rows, in any of the forms, and does with them what one device would do alone:

    O d          stays where it is
    Oᵀ y, OᵀWO   products of a device's own rows, summed over the devices: p and p × p numbers travel
    O Oᵀ         rows are exchanged for columns (all rows, some columns, on every device), multiplied, and summed
                 (N p and N × N numbers); of layer factors only these travel, of chunks only the samples, and each
                 device does its share of the blocks

Vectors over the rows have the order that they have on one device.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AbstractMesh
from jaxtyping import Array, Float, PyTree

from angd.method.jacobian.base import AbstractJacobian, Layout, as_pytree, batch_shape, shifted
from angd.method.jacobian.chunked import Chunked
from angd.method.jacobian.dense import Dense
from angd.method.jacobian.factored import Factored, paired_kernel
from angd.method.jacobian.leaves import side_by_side
from angd.method.jacobian.matrix_free import MatrixFree, kernel_by_products
from angd.method.jacobian.symmetric import outer, weigh
from angd.method.parallel import AXIS, COPIED, SPLIT, filled, on_each

Build = Callable[[Callable[..., Any], PyTree, PyTree], AbstractJacobian]


class Split(AbstractJacobian):
    """O with a share of the rows on every device; `split` makes it.

    **Attributes:**

    - `inner`: the share of one device, its arrays those of all.
    - `layout`: how parameters lie in a row.
    - `shape`: of the rows, of all devices together.
    - `lengths`: rows of each part; there are several where the terms of a loss are `joined`.
    - `shares`: of those, rows on one device; where the devices do not divide them, some are there twice.
    - `mesh`: the devices.
    """

    inner: AbstractJacobian
    layout: Layout = eqx.field(static=True)
    shape: tuple[int, ...] = eqx.field(static=True)
    lengths: tuple[int, ...] = eqx.field(static=True)
    shares: tuple[int, ...] = eqx.field(static=True)
    mesh: AbstractMesh = eqx.field(static=True)

    @classmethod
    def of(cls, f: Callable[..., Any], params: PyTree, xs: PyTree) -> "Split":
        raise ValueError("Split is made where samples are on a mesh: use jacobian(f, params, xs).")

    def matvec(self, d: PyTree) -> Float[Array, "n *m"]:
        pushed = self.each(lambda O, d: self._parted(O.matvec(d).reshape(-1)), (COPIED,), SPLIT)(d)
        return self._joined(pushed).reshape(self.shape)

    def rmatvec(self, y: Float[Array, "n *m"]) -> PyTree:
        def pull(O: AbstractJacobian, y: list[Array]) -> PyTree:
            return lax.psum(O.rmatvec(jnp.concatenate(y).reshape(O.shape)), AXIS)

        return self.each(pull, (SPLIT,), COPIED)(self._cut(y))

    def kernel(self, scale: Float[Array, " N"] | None = None, relative: bool = False) -> Float[Array, "N N"]:
        if isinstance(self.inner, MatrixFree):
            return weigh(kernel_by_products(self, relative), scale)
        if isinstance(self.inner, Chunked):
            return weigh(self._kernel_of_chunks(relative), scale)
        of = self._of_factors if isinstance(self.inner, Factored) else self._of_rows
        # Weighed on every device: the compiler would split that work, and gather the matrix afterwards.
        whole = self.each(lambda O, scale: weigh(lax.psum(of(O, relative), AXIS), scale), (COPIED,), COPIED)
        return whole(scale)

    def gram(
        self, scale: Float[Array, " N"] | None = None, shift: Float[Array, "m p"] | None = None
    ) -> Float[Array, "p p"]:
        def add(O: AbstractJacobian, scale: list[Array], shift: Array | None) -> Array:
            return lax.psum(O.gram(jnp.concatenate(scale), shift), AXIS)

        scale = jnp.ones(self.n_rows, self.layout.dtype) if scale is None else scale
        return self.each(add, (SPLIT, COPIED), COPIED)(self._cut(scale), shift)

    def squares(self, weights: Float[Array, " N"], shift: Float[Array, "m p"] | None = None) -> Float[Array, " p"]:
        def add(O: AbstractJacobian, weights: list[Array], shift: Array | None) -> Array:
            return lax.psum(O.squares(jnp.concatenate(weights), shift), AXIS)

        return self.each(add, (SPLIT, COPIED), COPIED)(self._cut(weights), shift)

    def dense(self) -> Float[Array, "N p"]:
        return self._joined(self.each(lambda O: self._parted(O.dense()), (), SPLIT)())

    @property
    def centred(self) -> bool:
        return self.inner.centred

    def centre(self, omega: Float[Array, " N"]) -> "Split":
        """The mean row of all devices is taken off a dense share."""
        assert isinstance(self.inner, Dense)
        mean = self.mean_rows(omega)
        return replace(self, inner=replace(self.inner, matrix=shifted(self.inner.matrix, mean), less_mean=True))

    def near(self) -> "Split":
        if isinstance(self.inner, Chunked) and self.layout.dtype.itemsize < 8 and self.inner.shift is None:
            shift = self.mean_rows(jnp.ones(self.n_rows, self.layout.dtype))
            return replace(self, inner=replace(self.inner, shift=shift))
        return self if isinstance(self.inner, Chunked) else replace(self, inner=self.inner.near())

    def wide(self) -> "Split | None":
        inner = self.inner.wide()
        return None if inner is None else replace(self, inner=inner, layout=inner.layout)

    @property
    def whole(self) -> AbstractJacobian:
        """The same rows as one device would hold them, for sums over samples that the compiler splits by itself."""
        leaves, structure = jax.tree.flatten(self.inner)
        pairs = zip(leaves, self._is_sampled(leaves), strict=True)
        cut = [leaf[: self.shape[0]] if sampled else leaf for leaf, sampled in pairs]
        return replace(jax.tree.unflatten(structure, cut), shape=self.shape)

    def _is_sampled(self, leaves: list[Any]) -> list[bool]:
        known = set(map(id, jax.tree.leaves(self.inner.sampled)))
        return [id(leaf) in known for leaf in leaves]

    def _parted(self, y: Float[Array, "rows ..."]) -> list[Array]:
        """A device's rows, part by part."""
        return jnp.split(y, np.cumsum(self.shares)[:-1])

    def _cut(self, y: Float[Array, "n *m"]) -> list[Array]:
        """A vector over the rows, part by part; rows that are there twice get zeros."""
        parts = jnp.split(y.reshape(-1), np.cumsum(self.lengths)[:-1])
        missing = [self.mesh.size * share - len(part) for share, part in zip(self.shares, parts, strict=True)]
        return [jnp.pad(part, (0, more)) if more else part for part, more in zip(parts, missing, strict=True)]

    def _joined(self, parts: list[Array]) -> Float[Array, "N ..."]:
        """What all devices have for each part, one part below the other."""
        return jnp.concatenate([part[:length] for part, length in zip(parts, self.lengths, strict=True)])

    def each(self, f: Callable[..., Any], takes: tuple[Any, ...], gives: Any) -> Callable[..., Any]:
        """f(share of O, ...) on every device."""
        arrays, rest = eqx.partition(self.inner, eqx.is_array)
        leaves, structure = jax.tree.flatten(arrays)
        places = [SPLIT if sampled else COPIED for sampled in self._is_sampled(leaves)]

        def share(leaves: list[Array], *arguments: Any) -> Any:
            return f(eqx.combine(jax.tree.unflatten(structure, leaves), rest), *arguments)

        mapped = on_each(share, self.mesh, (places, *takes), gives)
        return lambda *arguments: mapped(leaves, *arguments)

    def _of_rows(self, O: AbstractJacobian, relative: bool) -> Float[Array, "N N"]:
        return outer(self._exchanged(O.dense()))

    def _of_factors(self, O: Factored, relative: bool) -> Float[Array, "N N"]:
        """A device's part of the kernel: some columns of the leaves that enter whole, some blocks of the others."""
        relative, total = O.relative(relative), jnp.zeros((self.n_rows,) * 2, self.layout.dtype)
        if O.columns:
            rows = self._exchanged(side_by_side([part.make() for part in O.columns]))
            mean = jnp.mean(rows.reshape(-1, self.components, rows.shape[1]), axis=0)
            total += outer(shifted(rows, mean) if relative else rows)
        if O.paired:
            groups = jax.tree.map(lambda x: lax.all_gather(x, AXIS, tiled=True)[: self.shape[0]], O.paired)
            worker = lax.axis_index(AXIS)
            n, m, dtype = self.shape[0], self.components, self.layout.dtype
            total += paired_kernel(groups, n, m, relative, dtype, worker, self.mesh.size)
        return total

    def _kernel_of_chunks(self, relative: bool) -> Float[Array, "N N"]:
        """Every device computes the rows of its strips again, from all samples."""
        assert isinstance(self.inner, Chunked)
        shift = self.mean_rows(jnp.ones(self.n_rows, self.layout.dtype)) if relative else None

        def strips(O: Chunked, shift: Array | None) -> Array:
            xs = jax.tree.map(lambda x: lax.all_gather(x, AXIS, tiled=True)[: self.shape[0]], O.xs)
            everything = replace(O, xs=xs, shape=self.shape)
            return lax.psum(everything.part_of_kernel(shift, lax.axis_index(AXIS), self.mesh.size), AXIS)

        return self.each(strips, (COPIED,), COPIED)(shift)

    def _exchanged(self, rows: Float[Array, "share width"]) -> Float[Array, "N columns"]:
        """From some rows with all columns to all rows with some columns."""
        missing = -rows.shape[1] % self.mesh.size
        padded = jnp.pad(rows, ((0, 0), (0, missing))) if missing else rows
        return self._joined([lax.all_to_all(part, AXIS, 1, 0, tiled=True) for part in self._parted(padded)])


def split(
    form: type[AbstractJacobian], build: Build, mesh: AbstractMesh, f: Callable[..., Any], params: PyTree, xs: PyTree
) -> Split:
    """The Jacobian of f over samples on a mesh.

    **Arguments:**

    - `form`: in which every device holds its share.
    - `build`: what one device does, from (f, params, its share of the samples).
    - `mesh`: the devices.
    - `f`, `params`, `xs`: as of `jacobian`.

    **Returns:** a `Split`.
    """
    shape, xs = batch_shape(f, params, xs), filled(xs, mesh.size)
    if issubclass(form, Chunked | MatrixFree):  # nothing is computed yet
        like = eqx.filter_eval_shape(build, f, params, share_of(xs, mesh))
        inner = replace(like, f=as_pytree(f), params=params, xs=xs)
    else:
        inner = on_each(lambda params, xs: build(f, params, xs), mesh, (COPIED, SPLIT), SPLIT)(params, xs)
    rows, layout = math.prod(shape), Layout.of(params)
    return Split(inner=inner, layout=layout, shape=shape, lengths=(rows,), shares=(inner.n_rows,), mesh=mesh)


def share_of(xs: PyTree, mesh: AbstractMesh | None) -> PyTree:
    """The shapes of one device's samples."""
    devices = 1 if mesh is None else mesh.size
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct((-(-x.shape[0] // devices), *x.shape[1:]), x.dtype), xs)


def joined(parts: Sequence[Split]) -> Split:
    """Terms of a loss as one dense matrix on every device."""
    first, lengths = parts[0], tuple(part.n_rows for part in parts)
    shares = tuple(part.inner.n_rows for part in parts)
    rows = [part.each(lambda O: O.dense(), (), SPLIT)() for part in parts]
    matrix = on_each(lambda *rows: jnp.concatenate(rows), first.mesh, SPLIT, SPLIT)(*rows)
    inner = Dense(matrix=matrix, layout=first.layout, shape=(sum(shares),))
    shape, mesh = (sum(lengths),), first.mesh
    return Split(inner=inner, layout=first.layout, shape=shape, lengths=lengths, shares=shares, mesh=mesh)
