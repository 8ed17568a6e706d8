"""How close the parts of a step come to what this machine can do: one core, double and single precision.

    python benchmarks/roofline.py [--quick | --record]

The peak is that of XLA's own matrix product, the bandwidth that of numpy's sum of two long arrays, both the fastest of
the same run. Every part has the flops that it must do and the bytes that it must move at least; the roof over it is the
smaller of the peak and bandwidth × flops / bytes. A symmetric product must do half of a full one; the kernel from
factors does what its cheapest form takes, and its last column says how fast a full product of rows would have to be to
keep up. CPU seconds, medians of interleaved repetitions with the fastest and slowest.
"""

import sys
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from statistics import median
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy.linalg import get_blas_funcs

from angd.method.jacobian import Dense, Factored, jacobian
from angd.train.plan import DERIVATIVE, Size
from step import PAPER, Burgers, network
from timing import cpu_times, one_core, record

WIDE = (2, 64, 64, 64, 64, 1)
SIDE, LONG = 2048, 2**24
REPEATS = 5


class Part(NamedTuple):
    """A job, the flops and bytes that it cannot do without, and the flops of the full product that it replaces."""

    job: Callable[[], Any]
    flops: float
    bytes: float
    instead: float


def machine(dtype: Any) -> dict[str, Part]:
    """What the roof is made of."""
    square = jax.random.normal(jax.random.key(0), (SIDE, SIDE), dtype)
    left, right, out = (np.ones(LONG, dtype) for _ in range(3))
    return {
        "peak": Part(partial(jax.jit(jnp.matmul), square, square), 2 * SIDE**3, 0, 0),
        "bandwidth": Part(partial(np.add, left, right, out=out), 0, 3 * out.nbytes, 0),
    }


def kernels(n: int, dtype: Any) -> dict[str, Part]:
    """The kernel of n rows of the paper's network, and what it is made from and for."""
    params = jax.tree.map(lambda x: x.astype(dtype), network(PAPER))
    xs = jax.random.uniform(jax.random.key(1), (n, 2), dtype)
    f, each = Burgers().residual, np.dtype(dtype).itemsize
    build = {form: eqx.filter_jit(partial(jacobian, f, form=form)) for form in (Dense, Factored)}
    rows = {form: make(params, xs) for form, make in build.items()}
    O = rows[Dense].dense()
    size, p = Size.of(f, params, xs), O.shape[1]
    columns = np.asfortranarray(np.asarray(O).T)
    syrk: Any = get_blas_funcs("syrk", [columns])
    kernel = eqx.filter_jit(lambda rows: rows.kernel())
    y = jnp.ones(n, dtype)
    half, dense = n * n * p, each * (n * p + n * n)
    d = jax.tree.map(jnp.ones_like, params)
    both = eqx.filter_jit(lambda rows, d, y: (rows.matvec(d), rows.rmatvec(y)))
    return {
        "full product": Part(partial(jax.jit(lambda m: m @ m.T), O), 2 * half, dense, 2 * half),
        "kernel, blocked half": Part(partial(kernel, rows[Dense]), half, dense, 2 * half),
        "kernel, BLAS syrk": Part(partial(syrk, 1.0, columns, trans=1), half, dense, 2 * half),
        "kernel, factors": Part(
            partial(kernel, rows[Factored]),
            n * n * (size.paired + size.whole),
            n * size.factors + each * n * n,
            2 * half,
        ),
        "rows, factors": Part(
            lambda: jax.tree.leaves(build[Factored](params, xs)), DERIVATIVE * n * size.value, n * size.factors, 0
        ),
        "rows, dense": Part(
            lambda: jax.tree.leaves(build[Dense](params, xs)), DERIVATIVE * n * size.value, each * n * p, 0
        ),
        "O d and Oᵀ y, dense": Part(lambda: jax.tree.leaves(both(rows[Dense], d, y)), 4 * n * p, 2 * each * n * p, 0),
    } | pairs(n, dtype)


def pairs(n: int, dtype: Any) -> dict[str, Part]:
    """The kernel of a network all of whose layers are cheaper as pairs of factors than as gradients."""
    params = jax.tree.map(lambda x: x.astype(dtype), network(WIDE))
    xs, f = jax.random.uniform(jax.random.key(1), (n, 2), dtype), Burgers().residual
    size, rows = Size.of(f, params, xs), eqx.filter_jit(partial(jacobian, f, form=Factored))(params, xs)
    kernel = partial(eqx.filter_jit(lambda rows: rows.kernel()), rows)
    moved = n * size.factors + np.dtype(dtype).itemsize * n * n
    return {"kernel, pairs": Part(kernel, n * n * (size.paired + size.whole), moved, 2 * n * n * size.parameters)}


def grams(n: int, p: int, dtype: Any) -> dict[str, Part]:
    """The Gram matrix of a small network, and least squares on its rows without one."""
    O, each = jax.random.normal(jax.random.key(3), (n, p), dtype), np.dtype(dtype).itemsize
    m = 2 * p
    square = jax.random.normal(jax.random.key(4), (m, m), dtype)
    G = jax.block_until_ready(square @ square.T + m * jnp.eye(m, dtype=dtype))
    columns = np.asfortranarray(np.asarray(O).T)
    syrk: Any = get_blas_funcs("syrk", [columns])
    gram = eqx.filter_jit(lambda O: _dense(O).gram())
    half, moved = n * p * p, each * (n * p + p * p)
    return {
        "Gram, blocked half": Part(partial(gram, O), half, moved, 2 * half),
        "Gram, BLAS syrk": Part(partial(syrk, 1.0, columns), half, moved, 2 * half),
        "QR": Part(partial(jax.jit(lambda O: jnp.linalg.qr(O, mode="r")), O), 2 * half - 2 * p**3 / 3, 2 * moved, 0),
        "Cholesky": Part(partial(jax.jit(jnp.linalg.cholesky), G), m**3 / 3, 2 * each * m * m, 0),
    }


def _dense(O: Any) -> Any:
    """A Jacobian with these rows: of the linear model."""
    return jacobian(lambda theta, row: row @ theta, jnp.zeros(O.shape[1], O.dtype), O, form=Dense)


def report(n: int, gram: tuple[int, int], dtype: Any, repeats: int) -> dict[str, Any]:
    """All parts in one precision."""
    parts = machine(dtype) | kernels(n, dtype) | grams(*gram, dtype)
    times = cpu_times({name: part.job for name, part in parts.items()}, repeats)
    middle = {name: median(each) for name, each in times.items()}
    peak = max(parts[name].flops / min(times[name]) for name in ("peak", "full product"))
    bandwidth = parts["bandwidth"].bytes / min(times["bandwidth"])
    print(f"\n{np.dtype(dtype).name}: peak {peak / 1e9:.1f} Gflop/s, bandwidth {bandwidth / 1e9:.1f} GB/s")
    found: dict[str, Any] = {"peak": peak, "bandwidth": bandwidth, "n": n, "gram": list(gram), "parts": {}}
    for name, part in list(parts.items())[2:]:
        roof = min(peak, bandwidth * part.flops / part.bytes)
        rate = part.flops / middle[name]
        found["parts"][name] = {
            "ms": float(f"{1e3 * middle[name]:.4g}"),
            "spread": [float(f"{1e3 * t:.4g}") for t in (min(times[name]), max(times[name]))],
            "intensity": float(f"{part.flops / part.bytes:.4g}"),
            "rate": float(f"{rate:.4g}"),
            "fastest": float(f"{part.flops / min(times[name]):.4g}"),
            "of_roof": round(rate / roof, 3),
            "of_peak": round(rate / peak, 3),
            "instead": round(part.instead / middle[name] / peak, 3) or None,
        }
        row = found["parts"][name]
        print(f"  {name:<24}{row['ms']:10.1f} ms{rate / 1e9:8.1f} Gflop/s{row['of_roof']:8.2f} of its roof", flush=True)
    return found


def main() -> None:
    one_core()
    jax.config.update("jax_enable_x64", True)
    quick = "--quick" in sys.argv
    p = sum(i * o + o for i, o in pairwise(PAPER))
    for dtype in (jnp.float64, jnp.float32):
        n, gram = (200, (400, 200)) if quick else (1000, (4000, 1321))
        found = report(n, gram, dtype, 1 if quick else REPEATS)
        if "--record" in sys.argv:
            record("roofline", np.dtype(dtype).name, found | {"p": p}, "roofline")


if __name__ == "__main__":
    main()
