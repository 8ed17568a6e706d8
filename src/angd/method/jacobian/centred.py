"""O with the mean row of every component taken off: the rows of normalised densities, O ↦ O − 1 ωᵀO / Σω.

Rows are centred before they are multiplied: (a + δ)(a + δ′) less a² would lose the digits of δδ′ that a² takes.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, PyTree

from angd.method.jacobian.base import AbstractJacobian, Layout, less_mean, shifted, weight_shares
from angd.method.jacobian.dense import Dense
from angd.method.jacobian.split import Split
from angd.method.jacobian.symmetric import by_rows, weigh


def centre(O: AbstractJacobian, omega: Float[Array, " N"]) -> AbstractJacobian:
    """The rows of O less the ω-mean row of their component; nothing happens where that has been done."""
    if O.centred:
        return O
    inner = O.inner if isinstance(O, Split) else O
    return O.centre(omega) if isinstance(O, Dense | Split) and isinstance(inner, Dense) else Centred(O, omega)


class Centred(AbstractJacobian):
    """Rows of `inner` less their ω-mean, one mean for each component; `near_rows` are less one row near that mean.

    `centre(O, omega)` makes it.
    """

    inner: AbstractJacobian
    near_rows: AbstractJacobian
    omega: Float[Array, " N"]
    layout: Layout = eqx.field(static=True)
    shape: tuple[int, ...] = eqx.field(static=True)

    def __init__(self, inner: AbstractJacobian, omega: Float[Array, " N"]):
        self.inner, self.near_rows, self.omega = inner, inner.near(), omega
        self.layout, self.shape = inner.layout, inner.shape

    @classmethod
    def of(cls, f: Callable[..., Any], params: PyTree, xs: PyTree) -> "Centred":
        raise ValueError("Centred is made of a Jacobian and weights: use centre(O, omega).")

    @property
    def centred(self) -> bool:
        return True

    def matvec(self, d: PyTree) -> Float[Array, "n *m"]:
        pushed = self.near_rows.matvec(d).reshape(-1)
        return less_mean(pushed, self.omega, self.components).reshape(self.shape)

    def rmatvec(self, y: Float[Array, "n *m"]) -> PyTree:
        total = y.reshape(-1, self.components).sum(axis=0, keepdims=True)
        share = weight_shares(self.omega, self.components).reshape(-1, self.components)
        return self.near_rows.rmatvec((y.reshape(share.shape) - share * total).reshape(self.shape))

    def kernel(self, scale: Float[Array, " N"] | None = None, relative: bool = False) -> Float[Array, "N N"]:
        kernel, offset = self.products()
        if self.layout.dtype.itemsize < 8:
            far = offset > jnp.mean(jnp.diagonal(kernel))
            kernel = lax.cond(far, lambda: self._centred(self.inner.kernel(relative=True))[0], lambda: kernel)
        return weigh(kernel, scale)

    def products(self) -> tuple[Float[Array, "N N"], Float[Array, ""]]:
        return self._centred(self.inner.kernel())

    def _centred(self, kernel: Float[Array, "N N"]) -> tuple[Float[Array, "N N"], Float[Array, ""]]:
        return centred_kernel(kernel, self.omega, self.components)

    def gram(
        self, scale: Float[Array, " N"] | None = None, shift: Float[Array, "m p"] | None = None
    ) -> Float[Array, "p p"]:
        near = self.near_rows
        return near.gram(scale, self._shift(near, shift))

    def squares(self, weights: Float[Array, " N"], shift: Float[Array, "m p"] | None = None) -> Float[Array, " p"]:
        near = self.near_rows
        return near.squares(weights, self._shift(near, shift))

    def dense(self) -> Float[Array, "N p"]:
        near = self.near_rows
        return shifted(near.dense(), self._shift(near, None))

    def wide(self) -> AbstractJacobian | None:
        inner = self.inner.wide()
        return None if inner is None else Centred(inner, self.omega.astype(inner.layout.dtype))

    def _shift(self, near: AbstractJacobian, shift: Float[Array, "m p"] | None) -> Float[Array, "m p"]:
        mean = near.mean_rows(self.omega)
        return mean if shift is None else mean + shift


def centred_kernel(
    kernel: Float[Array, "N N"], omega: Float[Array, " N"], m: int
) -> tuple[Float[Array, "N N"], Float[Array, ""]]:
    """(I − 1ωᵀ) K (I − ω1ᵀ) of a symmetric K, component by component, symmetric to the last bit; and what ωᵀKω was."""
    n = kernel.shape[0] // m
    share = weight_shares(omega, m).reshape(n, m)
    means = jnp.einsum("nm,nmk->mk", share, kernel.reshape(n, m, -1))  # the mean row of each component
    grand = jnp.einsum("anm,nm->am", means.reshape(m, n, m), share)
    component = jnp.arange(n * m) % m

    def less_means(part: Array, rows: Callable[[Array], Array]) -> Array:
        if m == 1:
            return part - (means + rows(means.T)) + grand
        return part - (means[rows(component)] + rows(means.T)[:, component]) + grand[rows(component)][:, component]

    return by_rows(kernel, less_means), jnp.trace(grand)
