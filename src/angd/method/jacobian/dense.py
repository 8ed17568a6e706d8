"""O as one matrix: the right form when it fits and nothing is gained by its factors."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
from jaxtyping import Array, Float, PyTree

from angd.method.jacobian.base import AbstractJacobian, Layout, shifted, wide_layout
from angd.method.jacobian.factored import Factored
from angd.method.jacobian.symmetric import outer, weigh, weigh_rows


class Dense(AbstractJacobian):
    """O held as `matrix`, assembled from the layers' factors; `less_mean` says that its mean rows are off.

    **Attributes:**

    - `matrix`: O, shape (N, p).
    - `layout`: how parameters lie in a row.
    - `shape`: of the rows: samples, and components where there are several.
    - `less_mean`: its mean rows are off.
    """

    matrix: Float[Array, "N p"]
    layout: Layout = eqx.field(static=True)
    shape: tuple[int, ...] = eqx.field(static=True)
    less_mean: bool = eqx.field(static=True, default=False)

    @classmethod
    def of(cls, f: Callable[..., Any], params: PyTree, xs: PyTree) -> "Dense":
        factored = Factored.of(f, params, xs)
        return cls(matrix=factored.dense(), layout=factored.layout, shape=factored.shape)

    @classmethod
    def forward(cls, f: Callable[..., Any], params: PyTree, xs: PyTree) -> "Dense":
        """Column by column: the cheaper way where one sample has more components than there are parameters."""
        layout = Layout.of(params)

        def over(v: Float[Array, " p"]) -> Float[Array, "n *m"]:
            return jax.vmap(f, (None, 0))(layout.unravel(v), xs)

        columns = jax.jacfwd(over)(layout.ravel(params))
        return cls(matrix=columns.reshape(-1, layout.size), layout=layout, shape=columns.shape[:-1])

    def matvec(self, d: PyTree) -> Float[Array, "n *m"]:
        return (self.matrix @ self.layout.ravel(d)).reshape(self.shape)

    def rmatvec(self, y: Float[Array, "n *m"]) -> PyTree:
        return self.layout.unravel(y.reshape(-1) @ self.matrix)

    def kernel(self, scale: Float[Array, " N"] | None = None, relative: bool = False) -> Float[Array, "N N"]:
        return weigh(outer(self.matrix), scale)

    def gram(
        self, scale: Float[Array, " N"] | None = None, shift: Float[Array, "m p"] | None = None
    ) -> Float[Array, "p p"]:
        return outer(weigh_rows(shifted(self.matrix, shift), scale).T)

    def dense(self) -> Float[Array, "N p"]:
        return self.matrix

    @property
    def sampled(self) -> tuple[Any, ...]:
        return (self.matrix,)

    @property
    def centred(self) -> bool:
        return self.less_mean

    def centre(self, omega: Float[Array, " N"]) -> "Dense":
        """The mean is taken off the matrix itself, so that every product sees small rows."""
        return replace(self, matrix=shifted(self.matrix, self.mean_rows(omega)), less_mean=True)

    def wide(self) -> "Dense":
        layout = wide_layout(self.layout)
        matrix = self.matrix.astype(layout.dtype)
        return Dense(matrix=matrix, layout=layout, shape=self.shape, less_mean=self.less_mean)
