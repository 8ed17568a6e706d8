"""Several Jacobians of the same parameters, one below the other: the terms of a loss."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, PyTree

from angd.method.jacobian.base import AbstractJacobian, Layout
from angd.method.jacobian.dense import Dense
from angd.method.jacobian.factored import Factored
from angd.method.jacobian.split import Split, joined
from angd.method.jacobian.symmetric import weigh
from angd.method.memory import share
from angd.tree import add

ROWS = 32


class Stacked(AbstractJacobian):
    """O = [O₁; O₂; …], each part in its own form; rows keep the order of the parts.

    **Attributes:**

    - `parts`: Jacobians of the same parameters.
    - `layout`: how parameters lie in a row.
    - `shape`: of the rows, of all parts together.
    """

    parts: tuple[AbstractJacobian, ...]
    layout: Layout = eqx.field(static=True)
    shape: tuple[int, ...] = eqx.field(static=True)

    @classmethod
    def of(cls, f: Callable[..., Any], params: PyTree, xs: PyTree) -> "Stacked":
        raise ValueError("Stacked is made of Jacobians: use stack([...]).")

    def matvec(self, d: PyTree) -> Float[Array, "N"]:
        return jnp.concatenate([part.matvec(d).reshape(-1) for part in self.parts])

    def rmatvec(self, y: Float[Array, "N"]) -> PyTree:
        pulled = [part.rmatvec(z.reshape(part.shape)) for part, z in zip(self.parts, self._cut(y), strict=True)]
        total = pulled[0]
        for other in pulled[1:]:
            total = add(total, other)
        return total

    def kernel(self, scale: Float[Array, " N"] | None = None, relative: bool = False) -> Float[Array, "N N"]:
        rows = [[self._block(i, j) for j in range(i + 1)] for i in range(len(self.parts))]
        whole = [
            jnp.concatenate([rows[i][j] if j <= i else rows[j][i].T for j in range(len(rows))], axis=1)
            for i in range(len(rows))
        ]
        return weigh(jnp.concatenate(whole), scale)

    def gram(
        self, scale: Float[Array, " N"] | None = None, shift: Float[Array, "m p"] | None = None
    ) -> Float[Array, "p p"]:
        scales = self._cut(jnp.ones(self.n_rows, self.layout.dtype) if scale is None else scale)
        grams = [part.gram(s, _repeated(shift, part)) for part, s in zip(self.parts, scales, strict=True)]
        return sum(grams[1:], grams[0])

    def squares(self, weights: Float[Array, " N"], shift: Float[Array, "m p"] | None = None) -> Float[Array, " p"]:
        cut = zip(self.parts, self._cut(weights), strict=True)
        parts = [part.squares(w, _repeated(shift, part)) for part, w in cut]
        return sum(parts[1:], parts[0])

    def dense(self) -> Float[Array, "N p"]:
        return jnp.concatenate([part.dense() for part in self.parts])

    def _cut(self, y: Float[Array, " N"]) -> list[Float[Array, " rows"]]:
        stops = [sum(part.n_rows for part in self.parts[: i + 1]) for i in range(len(self.parts) - 1)]
        return jnp.split(y, stops)

    def _block(self, i: int, j: int) -> Float[Array, "rows columns"]:
        """O_i O_jᵀ: the part's own kernel, or rows pulled back by one and pushed by the other."""
        mine, other = self.parts[i], self.parts[j]
        if i == j:
            return mine.kernel()

        def row(k: Array) -> Array:
            unit = (jnp.arange(mine.n_rows) == k).astype(self.layout.dtype)
            return other.matvec(mine.rmatvec(unit.reshape(mine.shape))).reshape(-1)

        return lax.map(row, jnp.arange(mine.n_rows), batch_size=min(ROWS, mine.n_rows))


def _repeated(shift: Float[Array, "1 p"] | None, part: AbstractJacobian) -> Float[Array, "m p"] | None:
    """The one row of a stack (it has no components of its own) for every component of a part."""
    return None if shift is None else jnp.broadcast_to(shift, (part.components, shift.shape[1]))


def stack(parts: Sequence[AbstractJacobian], keep: bool = False) -> AbstractJacobian:
    """One Jacobian from several: a single matrix if all are dense.

    Factors pair up within a part only, so parts become matrices as well where these fit, unless they `keep` their form.

    **Arguments:**

    - `parts`: Jacobians of the same parameters.
    - `keep`: leave each part in its own form.

    **Returns:** an `AbstractJacobian`.
    """
    if len(parts) == 1:
        return parts[0]
    layout, shape = parts[0].layout, (sum(math.prod(part.shape) for part in parts),)
    spread = [part for part in parts if isinstance(part, Split)]
    devices = spread[0].mesh.size if spread else 1
    fits = shape[0] * layout.size * layout.dtype.itemsize <= devices * share() and not keep
    held = [part.inner if isinstance(part, Split) else part for part in parts]
    if len(spread) == len(parts) and all(isinstance(O, Dense) or (fits and isinstance(O, Factored)) for O in held):
        return joined(spread)
    if all(isinstance(part, Dense) or (fits and isinstance(part, Factored)) for part in parts):
        return Dense(matrix=jnp.concatenate([part.dense() for part in parts]), layout=layout, shape=shape)
    return Stacked(parts=tuple(parts), layout=layout, shape=shape)
