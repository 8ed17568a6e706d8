"""The sampled system: a metric builds it, a solver inverts it.

With W = diag ω, damping λ and an origin c, every exact solver finds d = c + δ with

    (G + λI) δ = v − G c,       G = OᵀWO,    v = OᵀWb  (`Rows`)  or given  (`Gram`),

that is argmin ½ dᵀGd − vᵀd + ½λ‖d − c‖². `Rows` knows the right-hand side b at the samples, `Gram` only its pull-back
v; what is known is a type, because the kernel trick needs b. For normalised densities rows are centred, O ↦ O − 1ωᵀO,
each component by itself.
"""

import abc

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from angd.method.jacobian import AbstractJacobian, centre
from angd.method.jacobian.base import less_mean
from angd.method.jacobian.symmetric import weigh
from angd.method.parallel import copied


class AbstractSystem(eqx.Module):
    """G as an operator, a p × p matrix or an N × N kernel.

    **Attributes:**

    - `O`: the Jacobian, its rows centred where `centred`.
    - `omega`: one weight ω per row (sample and component), shape (N,).
    - `centred`: has the mean row of each component been taken off?
    """

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
        """√ω."""
        return jnp.sqrt(self.omega)

    def push(self, d: PyTree) -> Float[Array, "N"]:
        """O d at the samples."""
        return self.O.matvec(d).reshape(-1)

    def pull(self, y: Float[Array, "N"]) -> PyTree:
        """OᵀW y."""
        return self.O.rmatvec((self.omega * y).reshape(self.O.shape))

    def apply(self, d: PyTree) -> PyTree:
        """G d, exactly: one forward and one reverse pass."""
        return self.pull(self.push(d))

    def square_length(self, d: PyTree) -> Float[Array, ""]:
        """dᵀGd = Σ ω (O d)², the squared length of d in the metric: one forward pass."""
        return jnp.vdot(self.omega, self.push(d) ** 2)

    def centre(self, y: Float[Array, "N"]) -> Float[Array, "N"]:
        """y − Σωy, component by component, if the rows are centred."""
        return less_mean(y, self.omega, self.O.components) if self.centred else y

    def kernel(self) -> Float[Array, "N N"]:
        """W^½ O Oᵀ W^½, symmetric to the last bit."""
        return self.O.kernel(self.root)

    def products(self) -> tuple[Float[Array, "N N"], Float[Array, ""]]:
        """The kernel as it comes at its least cost, and Σω times the squared length of the mean row taken off it."""
        kernel, offset = self.O.products()
        return weigh(kernel, self.root), offset * jnp.sum(self.omega)

    def gram(self) -> Float[Array, "p p"]:
        """G as a matrix, in the order of `O.layout`."""
        return self.O.gram(self.root)

    def diagonal(self) -> Float[Array, "p"]:
        """The diagonal of G."""
        return self.O.squares(self.omega)

    def null_vectors(self) -> Float[Array, "N m"]:
        """What a centred kernel takes to zero: √ω on the rows of one component, at unit length."""
        m = self.O.components
        columns = jnp.where(jnp.arange(m)[None, :] == (jnp.arange(self.O.n_rows) % m)[:, None], self.root[:, None], 0)
        lengths = jnp.linalg.norm(columns, axis=0, keepdims=True)
        return columns / jnp.where(lengths > 0, lengths, 1)


class Rows(AbstractSystem):
    """O d = b at the samples, in the least-squares sense with weights ω.

    **Arguments:**

    - `O`: an `AbstractJacobian` with N rows.
    - `b`: the right-hand side at the samples, shape (N,).
    - `omega`: one weight per row, shape (N,), see `row_weights`.
    - `centred`: take the mean row off, for normalised densities, defined up to a constant.
    """

    O: AbstractJacobian
    b: Float[Array, "N"]
    omega: Float[Array, "N"]
    centred: bool = eqx.field(static=True)

    def __init__(self, O: AbstractJacobian, b: Float[Array, "N"], omega: Float[Array, "N"], centred: bool = False):
        self.O, self.b, self.omega, self.centred = centre(O, omega) if centred else O, b, omega, centred

    @property
    def given(self) -> PyTree:
        return self.b

    def right_side(self) -> PyTree:
        return self.pull(self.centre(self.b))


class Gram(AbstractSystem):
    """G d = v, with G = OᵀWO and only the parameter-space vector v known.

    **Arguments:**

    - `O`: an `AbstractJacobian` with N rows.
    - `v`: the right-hand side, in the structure of the parameters.
    - `omega`: one weight per row, shape (N,), see `row_weights`.
    - `centred`: take the mean row off, for normalised densities, defined up to a constant.
    """

    O: AbstractJacobian
    v: PyTree
    omega: Float[Array, "N"]
    centred: bool = eqx.field(static=True)

    def __init__(self, O: AbstractJacobian, v: PyTree, omega: Float[Array, "N"], centred: bool = False):
        self.O, self.v, self.omega, self.centred = centre(O, omega) if centred else O, v, omega, centred

    @property
    def given(self) -> PyTree:
        return self.v

    def right_side(self) -> PyTree:
        return self.v


def with_jacobian(system: AbstractSystem, O: AbstractJacobian) -> AbstractSystem:
    """The same system, its rows held in another form."""
    return eqx.tree_at(lambda s: s.O, system, O)


def gram_like(system: AbstractSystem, v: PyTree) -> Gram:
    """The same G with another right-hand side."""
    return Gram(O=system.O, v=v, omega=system.omega, centred=system.centred)


def row_weights(omega: Float[Array, "n"], O: AbstractJacobian) -> Float[Array, "N"]:
    """One weight per row from one per sample: every component of a sample weighs the same.

    **Arguments:**

    - `omega`: weights of the samples, shape (n,).
    - `O`: the Jacobian, whose N rows are n samples times m components.

    **Returns:** weights of shape (N,), in the Jacobian's type; on a mesh every device has all of them.
    """
    return copied(jnp.repeat(omega, O.n_rows // O.shape[0]).astype(O.layout.dtype))
