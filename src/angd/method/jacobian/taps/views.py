"""A parameter on its way to its use: the leaf, and the chain of views it went through.

A view (transpose, reshape, slice, broadcast, ...) only moves entries, so the whole chain is one `Arrangement`: a
hashable linear map from the leaf's shape to the view's shape, with its transpose. Applied to the integers it says which
entry of the leaf sits where; two uses of a leaf can be paired exactly when these integers agree.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

Op = tuple[Callable[..., Any], tuple[Any, ...]]


@dataclass(frozen=True)
class Arrangement:
    """Linear map from a leaf of shape `source` to one of its views: `ops` applied in order."""

    source: tuple[int, ...]
    ops: tuple[Op, ...] = ()

    def then(self, op: Callable[..., Any], *args: Any) -> "Arrangement":
        return replace(self, ops=(*self.ops, (op, args)))

    def __call__(self, leaf: Array) -> Array:
        for op, args in self.ops:
            leaf = op(leaf, *args)
        return leaf

    def transpose(self, view: Float[Array, "..."]) -> Float[Array, "..."]:
        """Pull a cotangent of the view back to the leaf."""
        (leaf,) = jax.linear_transpose(self, jax.ShapeDtypeStruct(self.source, view.dtype))(view)
        return leaf


@lru_cache(maxsize=64)
def index(arrangement: Arrangement) -> np.ndarray:
    """Which entry of the leaf sits where: the arrangement of 0, 1, 2, ...

    It is computed by numpy: JAX would compile every move of every shape, seconds for a network of many layers.
    """
    entries = np.arange(int(np.prod(arrangement.source)), dtype=np.int32).reshape(arrangement.source)
    for op, args in arrangement.ops:
        entries = MOVED[op](entries, *args)
    return entries


def _spread(x: np.ndarray, shape: Sequence[int], axes: Sequence[Any]) -> np.ndarray:
    """`lax.broadcast_in_dim`."""
    aligned = [x.shape[axes.index(axis)] if axis in axes else 1 for axis in range(len(shape))]
    return np.broadcast_to(x.reshape(aligned), tuple(shape))


def _cut(
    x: np.ndarray, starts: Sequence[int], stops: Sequence[int], strides: Sequence[int] | None = None
) -> np.ndarray:
    """`lax.slice`."""
    return x[tuple(slice(*each) for each in zip(starts, stops, strides or (1,) * x.ndim, strict=True))]


# What moves entries, and the same in numpy.
MOVED: dict[Callable[..., Any], Callable[..., np.ndarray]] = {
    lax.transpose: np.transpose,
    lax.reshape: np.reshape,
    lax.squeeze: np.squeeze,
    lax.rev: np.flip,
    lax.broadcast_in_dim: _spread,
    lax.slice: _cut,
}


def transposed(one: Arrangement, other: Arrangement) -> bool | None:
    """Does `other` hold the transpose of the matrices (B, in, out) of `one`? None if they hold different ones."""
    mine, entries = index(one), index(other)
    if np.array_equal(mine, entries):
        return False
    return True if np.array_equal(mine, entries.swapaxes(1, 2)) else None


def disjoint(arrangements: Sequence[Arrangement]) -> bool:
    """Does no entry of the leaf occur twice?"""
    entries = np.concatenate([index(each).ravel() for each in arrangements]) if arrangements else np.zeros(0, int)
    return len(np.unique(entries)) == len(entries)


def by_stride(arrangement: Arrangement, axes: tuple[int, ...]) -> tuple[int, ...]:
    """Order axes of the view as they lie in the leaf, so that W and its transpose meet in one normal form."""
    entries = index(arrangement)

    def stride(axis: int) -> int:
        return int(entries.take(1, axis).flat[0] - entries.flat[0]) if entries.shape[axis] > 1 else 0

    return tuple(sorted(axes, key=lambda axis: -abs(stride(axis))))


@dataclass(frozen=True, eq=False)
class View:
    """A parameter leaf as it reaches an equation.

    **Attributes:** `leaf`, its number; `arrangement`, how it was moved; `factor`, the scalar it was multiplied by;
    `value`, the array; `probe`, the same array computed from the perturbed leaf, for uses that have no factors.
    """

    leaf: int
    arrangement: Arrangement
    factor: Array | np.ndarray | float
    value: Array
    probe: Array

    def move(self, op: Callable[..., Any], *args: Any) -> "View":
        """The view after an operation that only moves entries."""
        arrangement = self.arrangement.then(op, *args)
        return replace(self, arrangement=arrangement, value=op(self.value, *args), probe=op(self.probe, *args))

    def apply(self, op: Callable[[Array], Array], factor: Array | np.ndarray | float) -> "View":
        """The view after an operation that leaves entries in place and multiplies them by `factor`."""
        return replace(self, factor=self.factor * factor, value=op(self.value), probe=op(self.probe))


def _broadcast(view: View, params: dict[str, Any]) -> View:
    return view.move(lax.broadcast_in_dim, params["shape"], params["broadcast_dimensions"])


def _slice(view: View, params: dict[str, Any]) -> View:
    return view.move(lax.slice, params["start_indices"], params["limit_indices"], params["strides"])


def _cast(view: View, params: dict[str, Any]) -> View | None:
    dtype = params["new_dtype"]
    return view.apply(lambda w: w.astype(dtype), 1.0) if jnp.issubdtype(dtype, jnp.floating) else None


def _reshape(view: View, params: dict[str, Any]) -> View | None:
    return view.move(lax.reshape, params["new_sizes"]) if params.get("dimensions") is None else None


MOVES: dict[str, Callable[[View, dict[str, Any]], View | None]] = {
    "transpose": lambda view, params: view.move(lax.transpose, params["permutation"]),
    "reshape": _reshape,
    "squeeze": lambda view, params: view.move(lax.squeeze, params["dimensions"]),
    "broadcast_in_dim": _broadcast,
    "slice": _slice,
    "rev": lambda view, params: view.move(lax.rev, params["dimensions"]),
    "convert_element_type": _cast,
    "neg": lambda view, params: view.apply(lax.neg, -1.0),
    "copy": lambda view, params: view,
    "copy_p": lambda view, params: view,
    "name": lambda view, params: view,
}


def rescale(name: str, inputs: list[Any]) -> View | None:
    """`c W`, `W c` and `W / c` with a scalar c are still W, up to a factor."""
    views = [v for v in inputs if isinstance(v, View)]
    if name not in ("mul", "div") or len(inputs) != 2 or len(views) != 1 or views[0].value.ndim < 2:
        return None
    (view,), c = views, inputs[1] if isinstance(inputs[0], View) else inputs[0]
    if np.ndim(c) > 0 or (name == "div" and inputs[1] is view):
        return None
    if name == "div":
        return view.apply(lambda w: w / c, 1 / c)
    return view.apply(lambda w: w * c, c)
