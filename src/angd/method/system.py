"""The sampled system: a metric builds it, a solver inverts it.

With W = diag ω, damping λ and a centre c, every solver finds d = c + δ with

    (G + λI) δ = v − G c,       G = OᵀWO,    v = OᵀWb  (`Rows`)  or given  (`Gram`),

that is argmin ½ dᵀGd − vᵀd + ½λ‖d − c‖². `Rows` knows the right-hand side b at the samples, `Gram` only its pull-back
v; what is known is a type, because the kernel trick needs b. For normalised densities rows are centred, O ↦ O − 1ωᵀO.
"""

import abc

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from angd.method.jacobian import AbstractJacobian


class AbstractSystem(eqx.Module):
    """G as an operator, a p × p matrix or an N × N kernel; `omega` has one weight per row (sample and component)."""

    O: eqx.AbstractVar[AbstractJacobian]
    omega: eqx.AbstractVar[Float[Array, "N"]]
    centred: eqx.AbstractVar[bool]

    @property
    @abc.abstractmethod
    def given(self) -> PyTree:
        """The right-hand side as it is known: b or v."""

    @abc.abstractmethod
    def right_side(self) -> PyTree:
        """v."""

    @property
    def root(self) -> Float[Array, "N"]:
        """√ω, which is also the null vector of a centred kernel."""
        return jnp.sqrt(self.omega)

    def push(self, d: PyTree) -> Float[Array, "N"]:
        """O d at the samples, centred if the rows are."""
        return self.centre(self.O.matvec(d).reshape(-1))

    def pull(self, y: Float[Array, "N"]) -> PyTree:
        """OᵀW y."""
        return self.O.rmatvec((self.omega * self.centre(y)).reshape(self.O.shape))

    def apply(self, d: PyTree) -> PyTree:
        """G d, exactly: one forward and one reverse pass."""
        return self.pull(self.push(d))

    def centre(self, y: Float[Array, "N"]) -> Float[Array, "N"]:
        """y − Σωy if the rows are centred."""
        return y - jnp.vdot(self.omega, y) / jnp.sum(self.omega) if self.centred else y

    def kernel(self) -> Float[Array, "N N"]:
        """W^½ O Oᵀ W^½, symmetric to the last bit."""
        if not self.centred:
            return self.O.kernel(self.root)
        raw = self.O.kernel()
        mean = raw @ self.omega / jnp.sum(self.omega)
        middle = raw - mean[:, None] - mean[None, :] + jnp.vdot(self.omega, mean) / jnp.sum(self.omega)
        scaled = self.root[:, None] * middle * self.root[None, :]
        return (scaled + scaled.T) / 2

    def gram(self) -> Float[Array, "p p"]:
        """G as a matrix, in the order of `O.layout`."""
        matrix = self.O.gram(self.root)
        if not self.centred:
            return matrix
        mean = self._mean_row()
        return matrix - mean[:, None] * mean[None, :] / jnp.sum(self.omega)

    def diagonal(self) -> Float[Array, "p"]:
        """The diagonal of G."""
        squares = self.O.squares(self.omega)
        return jnp.maximum(squares - self._mean_row() ** 2 / jnp.sum(self.omega), 0) if self.centred else squares

    def _mean_row(self) -> Float[Array, "p"]:
        """Σᵢ ωᵢ oᵢ."""
        return self.O.layout.ravel(self.O.rmatvec(self.omega.reshape(self.O.shape)))


class Rows(AbstractSystem):
    """O d = b, with b known at the samples."""

    O: AbstractJacobian
    b: Float[Array, "N"]
    omega: Float[Array, "N"]
    centred: bool = eqx.field(static=True, default=False)

    @property
    def given(self) -> PyTree:
        return self.b

    def right_side(self) -> PyTree:
        return self.pull(self.b)


class Gram(AbstractSystem):
    """G d = v, with G = OᵀWO and only the parameter-space vector v known."""

    O: AbstractJacobian
    v: PyTree
    omega: Float[Array, "N"]
    centred: bool = eqx.field(static=True, default=False)

    @property
    def given(self) -> PyTree:
        return self.v

    def right_side(self) -> PyTree:
        return self.v


def row_weights(omega: Float[Array, "n"], O: AbstractJacobian) -> Float[Array, "N"]:
    """One weight per row from one per sample: every component of a sample weighs the same."""
    return jnp.repeat(omega, O.n_rows // O.shape[0]).astype(O.layout.dtype)
