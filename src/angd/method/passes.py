"""A function of one sample over many: values, forward and reverse passes, of all at once or of some at a time.

A reverse pass keeps every number that the forward one computed; a forward pass keeps those of a few layers. How many
bytes there are for one sample is read off the function's jaxpr: those of three samples less those of two, so that what
depends on parameters alone does not count. What exceeds its part of the budget is done in batches.
"""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend.core import ClosedJaxpr, Jaxpr
from jaxtyping import Array, Inexact, PyTree

from angd.method.memory import note, share
from angd.method.parallel import mesh_of

Pointwise = Callable[..., Any]
# Which part of all intermediate numbers a pass holds at one time.
VALUES, FORWARD, REVERSE = 0.25, 0.5, 2.0
KINDS = {VALUES: "plain evaluation", FORWARD: "forward pass", REVERSE: "reverse pass"}
SMALL = 64  # a network has fewer intermediate numbers than so many times its parameters and coordinates


def values(f: Pointwise, params: PyTree, xs: PyTree) -> Inexact[Array, "n *m"]:
    """f at every sample."""
    return _mapped(jax.vmap(lambda x: f(params, x)), xs, batch_size(f, params, xs, VALUES))


def pushed(f: Pointwise, params: PyTree, direction: PyTree, xs: PyTree) -> Inexact[Array, "n *m"]:
    """⟨∂_θ f, direction⟩ at every sample."""

    def push(xs: PyTree) -> Array:
        return jax.jvp(lambda params: jax.vmap(f, (None, 0))(params, xs), (params,), (direction,))[1]

    return _mapped(push, xs, batch_size(f, params, xs, FORWARD))


def pulled(f: Pointwise, params: PyTree, y: Inexact[Array, "n *m"], xs: PyTree) -> PyTree:
    """Σ y ∂_θ f over the samples, whatever the types of f and y."""

    def pull(xs: PyTree, y: Array) -> PyTree:
        output, back = jax.vjp(lambda params: jax.vmap(f, (None, 0))(params, xs), params)
        return back(y.astype(output.dtype))[0]

    size = batch_size(f, params, xs, REVERSE)
    if size == len(y):
        return pull(xs, y)

    def add(total: PyTree, some: tuple[PyTree, Array]) -> tuple[PyTree, None]:
        return jax.tree.map(jnp.add, total, pull(*some)), None

    start = jax.tree.map(jnp.zeros_like, params)
    return lax.scan(add, start, (_cut(xs, size), _cut(y, size, fill=0.0)))[0]


def batch_size(f: Pointwise, params: PyTree, xs: PyTree, part: float) -> int:
    """Samples of one pass, as many as the budget allows; on a mesh every device has its own budget and as many."""
    mesh = mesh_of(xs)
    n, limit, devices = _count(xs), share(), 1 if mesh is None else mesh.size
    if n * part * SMALL * _numbers(params, xs) * 8 <= devices * limit:
        return n
    each = part * sample_bytes(f, params, xs)
    size = n if n * each <= devices * limit else min(n, devices * max(1, int(limit / each)))
    if size < n:
        what = f"intermediate numbers of {n:,} samples in a {KINDS[part]}"
        note(what, n * each, f"{size:,} samples at a time, because all would exceed a quarter of the budget")
    return size


def sample_bytes(f: Pointwise, params: PyTree, xs: PyTree) -> int:
    """Of all intermediate numbers of f at one sample."""

    def of(n: int) -> int:
        batch = jax.tree.map(lambda x: jax.ShapeDtypeStruct((n, *x.shape[1:]), x.dtype), xs)
        return _bytes(jax.make_jaxpr(jax.vmap(f, (None, 0)))(params, batch).jaxpr)

    return of(3) - of(2)


def _count(xs: PyTree) -> int:
    return jax.tree.leaves(xs)[0].shape[0]


def _numbers(params: PyTree, xs: PyTree) -> int:
    """Parameters, and coordinates of a sample."""
    coordinates = sum(math.prod(x.shape[1:]) for x in jax.tree.leaves(xs))
    return coordinates + sum(math.prod(jnp.shape(leaf)) for leaf in jax.tree.leaves(params))


def _bytes(jaxpr: Jaxpr) -> int:
    return sum(_own(equation) for equation in jaxpr.eqns)


def _own(equation: Any) -> int:
    """What an equation computes: inside a call or a loop (each of its steps), or its outputs."""
    inner = [value for value in equation.params.values() if isinstance(value, ClosedJaxpr | Jaxpr)]
    if inner:
        bodies = [each.jaxpr if isinstance(each, ClosedJaxpr) else each for each in inner]
        return equation.params.get("length", 1) * sum(map(_bytes, bodies))
    return sum(v.aval.size * v.aval.dtype.itemsize for v in equation.outvars if hasattr(v.aval, "dtype"))


def _mapped(f: Callable[[PyTree], Array], xs: PyTree, size: int) -> Array:
    """f of all samples, `size` of them at a time."""
    n = _count(xs)
    if size == n:
        return f(xs)
    found = lax.map(f, _cut(xs, size))
    return found.swapaxes(0, 1).reshape(-1, *found.shape[2:])[:n]


def _cut(xs: PyTree, size: int, fill: float | None = None) -> PyTree:
    """Batches of one size, the samples of each taken from all over, some of every device's; what is missing to the
    last one are copies, or `fill`."""

    def cut(x: Array) -> Array:
        count = -(-x.shape[0] // size)
        extra = x[: count * size - x.shape[0]]
        whole = jnp.concatenate([x, extra if fill is None else jnp.full_like(extra, fill)])
        return whole.reshape(size, count, *x.shape[1:]).swapaxes(0, 1)

    return jax.tree.map(cut, xs)
