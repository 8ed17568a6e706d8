"""O as two linear maps: one forward and one reverse pass, over as many samples at once as memory allows."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, PyTree

from angd.method.jacobian.base import AbstractJacobian, Layout, as_pytree, batch_shape
from angd.method.jacobian.symmetric import weigh
from angd.method.passes import pulled, pushed

COLUMNS = 32


class MatrixFree(AbstractJacobian):
    """O by `jvp` and `vjp` over the whole batch; matrices are built column by column, `COLUMNS` at a time.

    **Attributes:**

    - `f`: the function that is differentiated.
    - `params`: where.
    - `xs`: the samples.
    - `layout`: how parameters lie in a row.
    - `shape`: of the rows.
    """

    f: Callable[..., Any]
    params: PyTree
    xs: PyTree
    layout: Layout = eqx.field(static=True)
    shape: tuple[int, ...] = eqx.field(static=True)

    @classmethod
    def of(cls, f: Callable[..., Any], params: PyTree, xs: PyTree) -> "MatrixFree":
        shape = batch_shape(f, params, xs)
        return cls(f=as_pytree(f), params=params, xs=xs, layout=Layout.of(params), shape=shape)

    def matvec(self, d: PyTree) -> Float[Array, "n *m"]:
        return pushed(self.f, self.params, self.layout.cast(d), self.xs).astype(self.layout.dtype)

    def rmatvec(self, y: Float[Array, "n *m"]) -> PyTree:
        return pulled(self.f, self.params, y, self.xs)

    def kernel(self, scale: Float[Array, " N"] | None = None, relative: bool = False) -> Float[Array, "N N"]:
        return weigh(kernel_by_products(self, relative), scale)

    def gram(
        self, scale: Float[Array, " N"] | None = None, shift: Float[Array, "m p"] | None = None
    ) -> Float[Array, "p p"]:
        squares = jnp.ones(self.n_rows, self.layout.dtype) if scale is None else scale**2

        def column(e: Float[Array, " p"]) -> Float[Array, " p"]:
            pushed = self.matvec(self.layout.unravel(e)).reshape(-1, self.components)
            if shift is not None:
                pushed = pushed - (shift @ e)[None, :]
            y = squares.reshape(pushed.shape) * pushed
            pulled = self.layout.ravel(self.rmatvec(y.reshape(self.shape)))
            return pulled if shift is None else pulled - y.sum(axis=0) @ shift

        return _map(column, self.n_params, self.layout.dtype)

    def squares(self, weights: Float[Array, " N"], shift: Float[Array, "m p"] | None = None) -> Float[Array, " p"]:
        def add(k: Array, total: Array) -> Array:
            unit = (jnp.arange(self.n_rows) == k).astype(self.layout.dtype)
            row = self.layout.ravel(self.rmatvec(unit.reshape(self.shape)))
            row = row if shift is None else row - shift[k % self.components]
            return total + weights[k] * row**2

        return lax.fori_loop(0, self.n_rows, add, jnp.zeros(self.n_params, self.layout.dtype))

    def dense(self) -> Float[Array, "N p"]:

        def row(e: Float[Array, " N"]) -> Float[Array, " p"]:
            return self.layout.ravel(self.rmatvec(e.reshape(self.shape)))

        return _map(row, self.n_rows, self.layout.dtype)

    @property
    def sampled(self) -> tuple[Any, ...]:
        return (self.xs,)


def kernel_by_products(O: AbstractJacobian, relative: bool) -> Float[Array, "N N"]:
    """O Oᵀ, column by column, from `O d` and `Oᵀ y`; `relative` as in `kernel`."""
    shift = O.mean_rows(jnp.ones(O.n_rows, O.layout.dtype)) if relative else None

    def column(e: Float[Array, " N"]) -> Float[Array, " N"]:
        row = O.layout.ravel(O.rmatvec(e.reshape(O.shape)))
        if shift is None:
            return O.matvec(O.layout.unravel(row)).reshape(-1)
        row = row - e.reshape(-1, O.components).sum(axis=0) @ shift
        pushed = O.matvec(O.layout.unravel(row)).reshape(-1, O.components)
        return (pushed - (shift @ row)[None, :]).reshape(-1)

    return _map(column, O.n_rows, O.layout.dtype)


def _map(f: Callable[[Array], Array], count: int, dtype: Any) -> Float[Array, "count width"]:
    """Rows f(e_k), k < count, of unit vectors."""

    def unit(k: Array) -> Array:
        return f((jnp.arange(count) == k).astype(dtype))

    return lax.map(unit, jnp.arange(count), batch_size=min(COLUMNS, count))
