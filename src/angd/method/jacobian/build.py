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
from angd.method.jacobian.panels import BYTES
from angd.method.jacobian.split import share_of, split
from angd.method.jacobian.taps import Leaf, taps
from angd.method.memory import note, refuse, share
from angd.method.parallel import mesh_of
from angd.sizes import written
from angd.tree import count

# Smallest chunk for which recomputing rows costs less than multiplying them.
FEWEST = 16
# Factors must save so much of a kernel's cost before they replace a matrix whose other products are cheaper.
GAIN = 0.8
OTHERS = "leave form= out, so that it is held as layer factors or row by row"


def jacobian(
    f: Callable[..., Any],
    params: PyTree,
    xs: PyTree,
    *,
    form: type[AbstractJacobian] | None = None,
    memory: float | None = None,
) -> AbstractJacobian:
    """The Jacobian O of f over a batch: row i·m + c is ∂_θ f_c(θ, x_i).

    **Arguments:**

    - `f`: `f(params, x)` at one sample returns a scalar or a vector of m components.
    - `params`: where to differentiate, a pytree of arrays.
    - `xs`: the samples, along the leading axis of every leaf.
    - `form`: a class to use, `Dense`, `Factored`, `Chunked` or `MatrixFree`; by default shapes decide.
    - `memory`: bytes that the form should stay below; by default a quarter of the budget in force.

    **Returns:** an `AbstractJacobian`.
    """
    n, m = check(f, params, xs)
    params, memory = jax.tree.map(jnp.asarray, params), share() if memory is None else memory
    if form is None and n == 1 and count(params) < m and m * _row_bytes(params) <= memory:
        return Dense.forward(f, params, xs)
    mesh = mesh_of(xs)
    own = share_of(xs, mesh)
    held = len(jax.tree.leaves(own)[0])  # samples on one device
    form, size, why = _asked(form, params, held * m) if form else choose(f, params, own, held, m, memory)
    note(f"Jacobian of {held * m:,} × {count(params):,} as {form.__name__}", size, why)
    build = partial(Chunked.of, size=chunk_rows(params, m, memory)) if form is Chunked else form.of
    return build(f, params, xs) if mesh is None else split(form, build, mesh, f, params, xs)


Form = tuple[type[AbstractJacobian], float, str]  # the class, what it holds, and why it


def _asked(form: type[AbstractJacobian], params: PyTree, rows: int) -> Form:
    """The form that a solver or a person wants, unless it cannot fit."""
    if form is not Dense:
        return form, 0, "the solver needs it so"
    size = rows * _row_bytes(params)
    refuse(f"A dense Jacobian of {rows:,} × {count(params):,} numbers", size, OTHERS)
    return form, size, "it was asked for"


def choose(f: Callable[..., Any], params: PyTree, xs: PyTree, n: int, m: int, memory: float) -> Form:
    """The cheapest form that fits."""
    leaves = jax.eval_shape(lambda xs: jax.vmap(partial(taps, f, params))(xs).leaves, xs)
    row, factors = m * _row_bytes(params), _factor_bytes(leaves)
    rows, limit = f"its rows would take {written(n * row)}", f"the {written(memory)} that a Jacobian may hold"
    if factors <= memory and n * row > memory:
        return Factored, factors, f"{rows}, more than {limit}; layer factors fit"
    if factors <= memory and _kernel_cost(leaves) < GAIN * sum(math.prod(leaf.shape) for leaf in leaves):
        return Factored, factors, f"its kernel is cheaper from layer factors than from rows of {written(n * row)}"
    if factors <= memory and _panels_win(n * m, n * row, factors, params):
        return (
            Factored,
            factors,
            f"its kernel is formed from some columns at a time, not from rows of {written(n * row)}",
        )
    if n * row <= memory:
        return Dense, n * row, f"its rows stay below {limit}, and layer factors gain nothing"
    if FEWEST * row <= memory:
        return Chunked, chunk_rows(params, m, memory) * row, f"{rows}, layer factors {written(factors)}: above {limit}"
    return MatrixFree, 0, f"{FEWEST} of its rows would take {written(FEWEST * row)}, more than {limit}"


def _panels_win(rows: int, size: float, factors: float, params: PyTree) -> bool:
    """Is the kernel the matrix of the system, and are its rows too many for the cache?

    In single precision rows are centred as a matrix, which loses no digits.
    """
    double = all(leaf.dtype.itemsize >= 8 for leaf in jax.tree.leaves(params))
    return double and rows < count(params) and size > BYTES and factors < GAIN * size


def chunk_rows(params: PyTree, m: int, memory: float) -> int:
    """Samples per chunk: two chunks of rows, and as much again to compute them, within the limit."""
    return max(1, min(ROWS, int(memory / 4 / (m * _row_bytes(params)))))


def _row_bytes(params: PyTree) -> int:
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(params))


def _factor_bytes(leaves: tuple[Leaf, ...]) -> int:
    return sum(x.size * x.dtype.itemsize for leaf in leaves for g in leaf.groups for x in (g.a, g.g))


def _kernel_cost(leaves: tuple[Leaf, ...]) -> float:
    """Multiply-adds per entry of the kernel when each leaf takes its cheaper form."""
    paired = [g for leaf in leaves if leaf.separate for g in leaf.groups if hadamard_wins(g)]
    whole = [g for leaf in leaves if leaf.separate for g in leaf.groups if not hadamard_wins(g)]
    rest = sum(math.prod(leaf.shape) for leaf in leaves if not leaf.separate)
    return sum(map(pair_cost, paired)) + sum(g.a.shape[2] * g.a.shape[4] * g.g.shape[4] for g in whole) + rest
