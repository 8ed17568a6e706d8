"""O with its columns multiplied: the Jacobian in other units of the parameters."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import equinox as eqx
from jaxtyping import Array, Float, PyTree

from angd.method.jacobian.base import AbstractJacobian, Layout
from angd.method.jacobian.centred import Centred
from angd.method.jacobian.split import Split
from angd.method.jacobian.stacked import Stacked
from angd.method.jacobian.symmetric import outer, weigh


def rescaled(O: AbstractJacobian, s: Float[Array, " p"]) -> AbstractJacobian:
    """O diag(s); on a mesh every device multiplies its own rows."""
    if _is_split(O):
        if isinstance(O, Centred):
            return Centred(rescaled(O.inner, s), O.omega)
        if isinstance(O, Stacked):
            return replace(O, parts=tuple(rescaled(part, s) for part in O.parts))
        if isinstance(O, Split):
            return replace(O, inner=Rescaled(O.inner, s))
    return Rescaled(O, s)


def _is_split(O: AbstractJacobian) -> bool:
    if isinstance(O, Stacked):
        return all(map(_is_split, O.parts))
    return _is_split(O.inner) if isinstance(O, Centred) else isinstance(O, Split)


class Rescaled(AbstractJacobian):
    """O diag(s)."""

    inner: AbstractJacobian
    s: Float[Array, " p"]
    layout: Layout = eqx.field(static=True)
    shape: tuple[int, ...] = eqx.field(static=True)

    def __init__(self, inner: AbstractJacobian, s: Float[Array, " p"]):
        self.inner, self.s, self.layout, self.shape = inner, s, inner.layout, inner.shape

    @classmethod
    def of(cls, f: Callable[..., Any], params: PyTree, xs: PyTree) -> "Rescaled":
        raise ValueError("Rescaled is made of a Jacobian and a vector: use Rescaled(O, s).")

    def matvec(self, d: PyTree) -> Float[Array, "n *m"]:
        return self.inner.matvec(self.layout.unravel(self.s * self.layout.ravel(d)))

    def rmatvec(self, y: Float[Array, "n *m"]) -> PyTree:
        return self.layout.unravel(self.s * self.layout.ravel(self.inner.rmatvec(y)))

    def kernel(self, scale: Float[Array, " N"] | None = None, relative: bool = False) -> Float[Array, "N N"]:
        return weigh(outer(self.dense()), scale)

    def gram(
        self, scale: Float[Array, " N"] | None = None, shift: Float[Array, "m p"] | None = None
    ) -> Float[Array, "p p"]:
        inner = None if shift is None else shift / self.s[None, :]
        return weigh(self.inner.gram(scale, inner), self.s)

    @property
    def sampled(self) -> tuple[Any, ...]:
        return self.inner.sampled

    @property
    def centred(self) -> bool:
        return self.inner.centred

    def wide(self) -> "Rescaled | None":
        inner = self.inner.wide()
        return None if inner is None else Rescaled(inner, self.s.astype(inner.layout.dtype))

    def dense(self) -> Float[Array, "N p"]:
        return self.inner.dense() * self.s[None, :]
