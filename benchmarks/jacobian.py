"""Kernels `O Oᵀ` of a PINN-sized network, against the peak of the machine and against what one would write instead.

    python benchmarks/jacobian.py [samples]

All times come from one run, interleaved, the best of several repetitions; read the ratios. Useful work is n² p: half of
a full product, because the kernel is symmetric.
"""

import sys
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.linalg import get_blas_funcs

from angd.method.jacobian import Dense, Factored, jacobian
from timing import best_times

WIDTHS = (2, 20, 50, 80, 80, 50, 20, 1)
SIDE = 2048
REPEATS = 5


def network(key: jax.Array) -> list[tuple[jax.Array, jax.Array]]:
    keys = jax.random.split(key, len(WIDTHS) - 1)
    shapes = zip(keys, WIDTHS[:-1], WIDTHS[1:], strict=True)
    return [(jax.random.normal(k, (i, o)) / np.sqrt(i), jnp.zeros(o)) for k, i, o in shapes]


def value(params: Any, x: jax.Array) -> jax.Array:
    for w, b in params[:-1]:
        x = jnp.tanh(x @ w + b)
    w, b = params[-1]
    return (x @ w + b)[0]


def residual(params: Any, x: jax.Array) -> jax.Array:
    """Burgers: u_t + u u_x − ν u_xx by nested gradients."""

    def u(t: jax.Array, x: jax.Array) -> jax.Array:
        return value(params, jnp.stack([t, x]))

    u_x = jax.grad(u, 1)
    return jax.grad(u, 0)(*x) + u(*x) * u_x(*x) - 0.01 / np.pi * jax.grad(u_x, 1)(*x)


def reverse_kernel(f: Callable[..., jax.Array], params: Any, xs: jax.Array) -> jax.Array:
    """What one would write instead: per-sample reverse mode and one full product."""
    rows = [leaf.reshape(len(xs), -1) for leaf in jax.tree.leaves(jax.vmap(jax.grad(f), (None, 0))(params, xs))]
    matrix = jnp.concatenate(rows, axis=1)
    return matrix @ matrix.T


def held(form: Any, f: Callable[..., jax.Array], params: Any, xs: jax.Array) -> jax.Array:
    return jacobian(f, params, xs, form=form).kernel()


def jobs(n: int) -> dict[str, Callable[[], Any]]:
    params, xs = network(jax.random.key(0)), jax.random.uniform(jax.random.key(1), (n, 2))
    square = jax.random.normal(jax.random.key(2), (SIDE, SIDE))
    dense = jax.jit(partial(jacobian, residual, form=Dense))(params, xs)
    columns = np.asfortranarray(np.asarray(dense.dense()).T)
    syrk: Any = get_blas_funcs("syrk", [columns])
    found = {
        "peak": partial(jax.jit(jnp.matmul), square, square),
        "full product": partial(jax.jit(lambda m: m @ m.T), dense.dense()),
        "Dense.kernel": partial(jax.jit(lambda jac: jac.kernel()), dense),
        "BLAS dsyrk": partial(syrk, 1.0, columns, trans=1),
    }
    for f in (residual, value):
        found[f"{f.__name__}: reverse mode"] = partial(jax.jit(partial(reverse_kernel, f)), params, xs)
        found[f"{f.__name__}: Dense"] = partial(jax.jit(partial(held, Dense, f)), params, xs)
        found[f"{f.__name__}: Factored"] = partial(jax.jit(partial(held, Factored, f)), params, xs)
    return found


def main(n: int = 1000) -> None:
    jax.config.update("jax_enable_x64", True)
    times = best_times(jobs(n), REPEATS)
    p = sum(i * o + o for i, o in pairwise(WIDTHS))
    peak = 2 * SIDE**3 / times.pop("peak")
    print(f"n = {n}, p = {p}, float64; matrix product of side {SIDE}: {peak / 1e9:.1f} GF/s\n")
    print(f"{'kernel O Oᵀ':<26}{'ms':>8}{'n²p per second / peak':>24}{'speed-up':>12}")
    for name, seconds in times.items():
        start = times["full product"] if ":" not in name else times[f"{name.split(':')[0]}: reverse mode"]
        print(f"{name:<26}{1e3 * seconds:8.1f}{n * n * p / seconds / peak:24.2f}{start / seconds:12.2f}")
    print("\nThe first three rows multiply a matrix that is ready; the others start from parameters and samples.")
    print("Speed-up: against the full product, and against reverse mode followed by it.")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
