"""The interface of O, whose rows are ∂_θ f_c(θ, x_i), and the order of its columns."""

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree


@dataclass(frozen=True)
class Layout:
    """How a pytree of parameters lies in a vector: leaves in order, each raveled (as `ravel_pytree` does)."""

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
    def kernel(self, scale: Float[Array, " N"] | None = None) -> Float[Array, "N N"]:
        """`S O Oᵀ S` with S = diag(scale)."""

    @abstractmethod
    def gram(self, scale: Float[Array, " N"] | None = None) -> Float[Array, "p p"]:
        """`Oᵀ S² O` with S = diag(scale)."""

    @abstractmethod
    def dense(self) -> Float[Array, "N p"]:
        """O itself."""

    def squares(self, weights: Float[Array, " N"]) -> Float[Array, " p"]:
        """`Σᵢ wᵢ Oᵢⱼ²` for every parameter j: the diagonal of `Oᵀ W O`."""
        return weights @ self.dense() ** 2

    @property
    def n_rows(self) -> int:
        return math.prod(self.shape)

    @property
    def n_params(self) -> int:
        return self.layout.size


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
