"""The interface of O, whose rows are ∂_θ f_c(θ, x_i), and the order of its columns."""

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree


@dataclass(frozen=True)
class Layout:
    """How a pytree of parameters lies in a vector: leaves in order, each raveled (as `ravel_pytree` does).

    **Attributes:**

    - `treedef`: structure of the parameters.
    - `shapes`: of the leaves, in order.
    - `dtypes`: of the leaves, in order.
    """

    treedef: Any
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[Any, ...]

    @classmethod
    def of(cls, params: PyTree) -> "Layout":
        leaves, treedef = jax.tree.flatten(params)
        return cls(treedef, tuple(map(jnp.shape, leaves)), tuple(map(jnp.result_type, leaves)))

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(map(math.prod, self.shapes))

    @property
    def size(self) -> int:
        return sum(self.sizes)

    @property
    def dtype(self) -> Any:
        return jnp.result_type(*self.dtypes)

    def ravel(self, tree: PyTree) -> Float[Array, " p"]:
        return jnp.concatenate([jnp.ravel(leaf).astype(self.dtype) for leaf in self.treedef.flatten_up_to(tree)])

    def unravel(self, vector: Float[Array, " p"]) -> PyTree:
        stops = [sum(self.sizes[: i + 1]) for i in range(len(self.sizes))]
        parts = jnp.split(vector, stops[:-1])
        shaped = (v.reshape(s).astype(t) for v, s, t in zip(parts, self.shapes, self.dtypes, strict=True))
        return self.treedef.unflatten(shaped)

    def cast(self, tree: PyTree) -> PyTree:
        """The tree in the parameters' types, as derivatives want a direction to be."""
        leaves = zip(self.treedef.flatten_up_to(tree), self.dtypes, strict=True)
        return self.treedef.unflatten([jnp.asarray(leaf).astype(dtype) for leaf, dtype in leaves])


class AbstractJacobian(eqx.Module):
    """O with rows ∂_θ f_c(θ, x_i), sample-major: row i·m + c.

    **Attributes:** `layout` orders the columns; `shape` is the shape of f over the batch, (n,) or (n, m).
    `scale` in `kernel` and `gram` multiplies the rows of O, one entry per row: √ω for weighted samples.
    """

    layout: eqx.AbstractVar[Layout]
    shape: eqx.AbstractVar[tuple[int, ...]]

    @classmethod
    @abstractmethod
    def of(cls, f: Callable[..., Any], params: PyTree, xs: PyTree) -> "AbstractJacobian":
        """Hold the Jacobian of f over the batch in this form."""

    @abstractmethod
    def matvec(self, d: PyTree) -> Float[Array, "n *m"]:
        """`O d`, in the shape of f over the batch."""

    @abstractmethod
    def rmatvec(self, y: Float[Array, "n *m"]) -> PyTree:
        """`Oᵀ y`, in the structure of the parameters."""

    @abstractmethod
    def kernel(self, scale: Float[Array, " N"] | None = None, relative: bool = False) -> Float[Array, "N N"]:
        """`S O Oᵀ S` with S = diag(scale).

        `relative` takes one row near their mean off all rows of a component before they are multiplied; which one is up
        to the form. Whoever centres the kernel afterwards loses no digits to a common part of the rows.
        """

    @abstractmethod
    def gram(
        self, scale: Float[Array, " N"] | None = None, shift: Float[Array, "m p"] | None = None
    ) -> Float[Array, "p p"]:
        """`Oᵀ S² O` with S = diag(scale); `shift` is taken off the rows of each component first."""

    @abstractmethod
    def dense(self) -> Float[Array, "N p"]:
        """O itself."""

    def squares(self, weights: Float[Array, " N"], shift: Float[Array, "m p"] | None = None) -> Float[Array, " p"]:
        """`Σᵢ wᵢ Oᵢⱼ²` for every parameter j: the diagonal of `Oᵀ W O`; `shift` as in `gram`."""
        return weights @ shifted(self.dense(), shift) ** 2

    def mean_rows(self, omega: Float[Array, " N"]) -> Float[Array, "m p"]:
        """The ω-mean row of every component."""
        m, share = self.components, weight_shares(omega, self.components)
        parts = [jnp.where(jnp.arange(self.n_rows) % m == c, share, 0) for c in range(m)]
        return jnp.stack([self.layout.ravel(self.rmatvec(part.reshape(self.shape))) for part in parts])

    def products(self) -> tuple[Float[Array, "N N"], Float[Array, ""]]:
        """The kernel at its least cost, and the squared length of the mean row that was taken off it afterwards, or 0.

        A long mean row takes digits of the kernel with it: whoever can form it again in double precision looks at that.
        """
        return self.kernel(), jnp.zeros((), self.layout.dtype)

    def wide(self) -> "AbstractJacobian | None":
        """The same rows in double precision; None where they would have to be computed again."""
        return None

    def near(self) -> "AbstractJacobian":
        """The rows less one row near their mean for each component, where single precision gains digits by it.

        Whoever centres products with it afterwards gets those of the centred rows. Itself, where nothing is gained or
        rows never exist as numbers.
        """
        return self

    @property
    def sampled(self) -> tuple[Any, ...]:
        """Of the arrays that it holds, those with the samples along their leading axes."""
        return ()

    @property
    def centred(self) -> bool:
        """Has every component a mean row of zero?"""
        return False

    @property
    def components(self) -> int:
        """m, the number of components at one sample."""
        return math.prod(self.shape[1:])

    @property
    def n_rows(self) -> int:
        return math.prod(self.shape)

    @property
    def n_params(self) -> int:
        return self.layout.size


def shifted(rows: Float[Array, "N p"], shift: Float[Array, "m p"] | None) -> Float[Array, "N p"]:
    """Rows less the one of their component."""
    if shift is None:
        return rows
    m, p = shift.shape
    return (rows.reshape(-1, m, p) - shift[None]).reshape(rows.shape)


def weight_shares(omega: Float[Array, " N"], m: int) -> Float[Array, " N"]:
    """ω / Σω over the samples of each component; zero where a component has no weight."""
    total = jnp.sum(omega.reshape(-1, m), axis=0, keepdims=True)
    return (omega.reshape(-1, m) / jnp.where(total > 0, total, 1)).reshape(-1)


def less_mean(y: Float[Array, " N"], omega: Float[Array, " N"], m: int) -> Float[Array, " N"]:
    """y less its ω-mean over the samples of each component."""
    mean = jnp.sum((weight_shares(omega, m) * y).reshape(-1, m), axis=0, keepdims=True)
    return (y.reshape(-1, m) - mean).reshape(-1)


def wide_layout(layout: Layout) -> Layout:
    """The same columns in double precision."""
    return replace(layout, dtypes=(jnp.dtype(jnp.float64),) * len(layout.dtypes))


def batch_shape(f: Callable[..., Any], params: PyTree, xs: PyTree) -> tuple[int, ...]:
    """Shape of f over the batch: (n,) or (n, m)."""
    return jax.eval_shape(jax.vmap(f, (None, 0)), params, xs).shape


def pull_back(f: Callable[[PyTree], Array], params: PyTree, y: Float[Array, "n *m"]) -> PyTree:
    """`Oᵀ y` by one reverse pass, whatever the types of f and y."""
    output, back = jax.vjp(f, params)
    return back(y.astype(output.dtype))[0]


def as_pytree(f: Any) -> Any:
    """A callable that may be a field: modules are pytrees already, functions become static ones."""
    return f if isinstance(f, eqx.Module | jax.tree_util.Partial) else jax.tree_util.Partial(f)
