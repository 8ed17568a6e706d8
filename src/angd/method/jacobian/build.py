"""Choose how O is held: by shapes and a memory limit, never by a flag the user must know."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from angd.method.jacobian.base import AbstractJacobian
from angd.method.jacobian.check import check
from angd.method.jacobian.chunked import ROWS, Chunked
from angd.method.jacobian.dense import Dense
from angd.method.jacobian.factored import Factored
from angd.method.jacobian.leaves import hadamard_wins, pair_cost
from angd.method.jacobian.matrix_free import MatrixFree
from angd.method.jacobian.taps import Leaf, taps
from angd.tree import count

GIB = 2**30
# Smallest chunk for which recomputing rows costs less than multiplying them.
FEWEST = 16
# Factors must save so much of a kernel's cost before they replace a matrix whose other products are cheaper.
GAIN = 0.8


def jacobian(
    f: Callable[..., Any],
    params: PyTree,
    xs: PyTree,
    *,
    form: type[AbstractJacobian] | None = None,
    memory: float = 2 * GIB,
) -> AbstractJacobian:
    """The Jacobian O of f over a batch: row i·m + c is ∂_θ f_c(θ, x_i).

    **Arguments:**

    - `f`: `f(params, x)` at one sample returns a scalar or a vector of m components.
    - `params`: where to differentiate, a pytree of arrays.
    - `xs`: the samples, along the leading axis of every leaf.
    - `form`: a class to use, `Dense`, `Factored`, `Chunked` or `MatrixFree`; by default shapes decide.
    - `memory`: bytes that the form should stay below.

    **Returns:** an `AbstractJacobian`.
    """
    n, m = check(f, params, xs)
    params = jax.tree.map(jnp.asarray, params)
    if form is None and n == 1 and count(params) < m and m * _row_bytes(params) <= memory:
        return Dense.forward(f, params, xs)
    form = form or choose(f, params, xs, n, m, memory)
    if form is Chunked:
        return Chunked.of(f, params, xs, chunk_rows(params, m, memory))
    return form.of(f, params, xs)


def choose(f: Callable[..., Any], params: PyTree, xs: PyTree, n: int, m: int, memory: float) -> type[AbstractJacobian]:
    """The cheapest form that fits."""
    leaves = jax.eval_shape(lambda xs: jax.vmap(partial(taps, f, params))(xs).leaves, xs)
    row = m * _row_bytes(params)
    fits = _factor_bytes(leaves) <= memory
    if fits and (n * row > memory or kernel_cost(leaves) < GAIN * sum(math.prod(leaf.shape) for leaf in leaves)):
        return Factored
    if n * row <= memory:
        return Dense
    return Chunked if FEWEST * row <= memory else MatrixFree


def chunk_rows(params: PyTree, m: int, memory: float) -> int:
    """Samples per chunk: two chunks of rows, and as much again to compute them, within the limit."""
    return max(1, min(ROWS, int(memory / 4 / (m * _row_bytes(params)))))


def _row_bytes(params: PyTree) -> int:
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(params))


def _factor_bytes(leaves: tuple[Leaf, ...]) -> int:
    return sum(x.size * x.dtype.itemsize for leaf in leaves for g in leaf.groups for x in (g.a, g.g))


def kernel_cost(leaves: tuple[Leaf, ...]) -> float:
    """Multiply-adds per entry of the kernel when each leaf takes its cheaper form."""
    paired = [g for leaf in leaves if leaf.separate for g in leaf.groups if hadamard_wins(g)]
    whole = [g for leaf in leaves if leaf.separate for g in leaf.groups if not hadamard_wins(g)]
    rest = sum(math.prod(leaf.shape) for leaf in leaves if not leaf.separate)
    return sum(map(pair_cost, paired)) + sum(g.a.shape[2] * g.a.shape[4] * g.g.shape[4] for g in whole) + rest
