"""O a few rows at a time: nothing of size n × p is ever held, rows are computed again when they are needed."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, PyTree

from angd.method.jacobian.base import AbstractJacobian, Layout, as_pytree, batch_shape, pull_back, shifted
from angd.method.jacobian.factored import Factored
from angd.method.jacobian.symmetric import mirror, outer, weigh, weigh_rows

ROWS = 256


class Chunked(AbstractJacobian):
    """O as a function of the samples, `size` of them at a time; `shift` is taken off the rows of each component.

    **Attributes:**

    - `f`: the function that is differentiated.
    - `params`: where.
    - `xs`: the samples.
    - `layout`: how parameters lie in a row.
    - `shape`: of the rows.
    - `size`: samples at a time.
    - `shift`: taken off the rows of each component, None for nothing.
    """

    f: Callable[..., Any]
    params: PyTree
    xs: PyTree
    layout: Layout = eqx.field(static=True)
    shape: tuple[int, ...] = eqx.field(static=True)
    size: int = eqx.field(static=True, default=ROWS)
    shift: Float[Array, "m p"] | None = None

    @classmethod
    def of(cls, f: Callable[..., Any], params: PyTree, xs: PyTree, size: int = ROWS) -> "Chunked":
        shape = batch_shape(f, params, xs)
        layout, size = Layout.of(params), min(size, shape[0])
        return cls(f=as_pytree(f), params=params, xs=xs, layout=layout, shape=shape, size=size)

    def matvec(self, d: PyTree) -> Float[Array, "n *m"]:
        if self.shift is not None:
            return (
                self._from_rows(lambda rows: rows @ self.layout.ravel(d)).reshape(-1)[: self.n_rows].reshape(self.shape)
            )
        direction = self.layout.cast(d)

        def push(x: PyTree) -> Array:
            return jax.jvp(lambda params: self.f(params, x), (self.params,), (direction,))[1]

        return lax.map(push, self.xs, batch_size=self.size).astype(self.layout.dtype)

    def rmatvec(self, y: Float[Array, "n *m"]) -> PyTree:
        def pull(total: PyTree, chunk: tuple[PyTree, Array]) -> tuple[PyTree, None]:
            xs, y = chunk
            if self.shift is None:
                part = pull_back(lambda params: jax.vmap(self.f, (None, 0))(params, xs), self.params, y)
            else:
                part = self.layout.unravel(y.reshape(-1).astype(self.layout.dtype) @ self._rows(xs))
            return jax.tree.map(jnp.add, total, part), None

        chunks = (self._cut(self.xs), self._cut(y, fill=0.0))
        return lax.scan(pull, jax.tree.map(jnp.zeros_like, self.params), chunks)[0]

    def kernel(self, scale: Float[Array, " N"] | None = None, relative: bool = False) -> Float[Array, "N N"]:
        shift = self.mean_rows(jnp.ones(self.n_rows, self.layout.dtype)) if relative else None
        return weigh(self.part_of_kernel(shift), scale)

    def part_of_kernel(
        self, shift: Float[Array, "m p"] | None, worker: Any = 0, workers: int = 1
    ) -> Float[Array, "N N"]:
        """What one of several workers adds to the kernel: some strips of its lower triangle, mirrored. A worker with a
        long strip next has a short one."""
        xs, side = self._cut(self.xs), self.size * self.components

        def rows(i: Array) -> Array:
            return shifted(self._rows(jax.tree.map(lambda x: x[i], xs)), shift)

        def strip(turn: Array, lower: Array) -> Array:
            i = turn * workers + jnp.where(turn % 2 == 0, worker, workers - 1 - worker)
            mine = rows(jnp.minimum(i, self._count - 1))

            def put(j: Array, lower: Array) -> Array:
                pair = mine @ rows(j).T
                return lax.dynamic_update_slice(lower, pair, (i * side, j * side))

            return lax.fori_loop(0, jnp.where(i < self._count, i + 1, 0), put, lower)

        total = self._count * side
        lower = jnp.zeros((total, total), self.layout.dtype)
        lower = lax.fori_loop(0, -(-self._count // workers), strip, lower)
        return mirror(lower[: self.n_rows, : self.n_rows])

    def gram(
        self, scale: Float[Array, " N"] | None = None, shift: Float[Array, "m p"] | None = None
    ) -> Float[Array, "p p"]:
        weights = jnp.ones(self.n_rows, self.layout.dtype) if scale is None else scale

        def add(total: Array, chunk: tuple[PyTree, Array]) -> tuple[Array, None]:
            xs, weights = chunk
            return total + outer(weigh_rows(shifted(self._rows(xs), shift), weights.reshape(-1)).T), None

        chunks = (self._cut(self.xs), self._cut(weights.reshape(-1, self.components), fill=0.0))
        return lax.scan(add, jnp.zeros((self.n_params,) * 2, self.layout.dtype), chunks)[0]

    def squares(self, weights: Float[Array, " N"], shift: Float[Array, "m p"] | None = None) -> Float[Array, " p"]:
        def add(total: Array, chunk: tuple[PyTree, Array]) -> tuple[Array, None]:
            xs, weights = chunk
            return total + weights.reshape(-1) @ shifted(self._rows(xs), shift) ** 2, None

        chunks = (self._cut(self.xs), self._cut(weights.reshape(-1, self.components), fill=0.0))
        return lax.scan(add, jnp.zeros(self.n_params, self.layout.dtype), chunks)[0]

    def dense(self) -> Float[Array, "N p"]:
        return self._from_rows(lambda rows: rows).reshape(-1, self.n_params)[: self.n_rows]

    @property
    def sampled(self) -> tuple[Any, ...]:
        return (self.xs,)

    def near(self) -> "Chunked":
        if self.layout.dtype.itemsize >= 8 or self.shift is not None:
            return self
        return replace(self, shift=self.mean_rows(jnp.ones(self.n_rows, self.layout.dtype)))

    def _from_rows(self, f: Callable[[Array], Array]) -> Float[Array, "chunks ..."]:
        """f of the rows of every chunk."""
        return lax.map(lambda xs: f(self._rows(xs)), self._cut(self.xs))

    @property
    def _count(self) -> int:
        return -(-self.shape[0] // self.size)

    def _rows(self, xs: PyTree) -> Float[Array, "rows p"]:
        return shifted(Factored.of(self.f, self.params, xs).dense(), self.shift)

    def _cut(self, xs: PyTree, fill: float | None = None) -> PyTree:
        """Chunks of samples; the last one is filled up with copies of the last sample, or with `fill`."""
        missing = self._count * self.size - self.shape[0]

        def cut(x: Array) -> Array:
            extra = x[-1:] if fill is None else jnp.full_like(x[-1:], fill)
            whole = jnp.concatenate([x, jnp.repeat(extra, missing, axis=0)])
            return whole.reshape(self._count, self.size, *x.shape[1:])

        return jax.tree.map(cut, xs)
