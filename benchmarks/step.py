"""One whole step of ANGD in the energy metric on a Burgers residual: every Jacobian form and solver, split into parts.

    python benchmarks/step.py [--quick] [--wide] [n…]

All times of one size come from one run, interleaved, the best of the repetitions; read the ratios. "of peak" is the
useful work n² p of a kernel per second, against a matrix product measured in the same run; "of parts" is the step over
the sum of Jacobian, kernel and factorisation measured alone.
"""

import sys
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_factor, cho_solve

import angd
from angd.method.jacobian import Chunked, Dense, Factored, jacobian
from timing import best_times

PAPER, WIDE = (2, 20, 50, 80, 80, 50, 20, 1), (2, 256, 256, 256, 256, 1)
# Dense is left out where it would not fit, Chunked where computing rows again would take minutes.
SIDE, LIMIT, MOST = 2048, 2 * 2**30, 1e11


class Burgers(eqx.Module):
    """u_t + u u_x − ν u_xx with forward derivatives."""

    def residual(self, params: Any, x: jax.Array) -> jax.Array:
        def u(z: jax.Array) -> jax.Array:
            for W, b in params[:-1]:
                z = jnp.tanh(z @ W + b)
            W, b = params[-1]
            return (z @ W + b)[0]

        def along(direction: jax.Array) -> Callable[[jax.Array], tuple[jax.Array, jax.Array]]:
            return lambda z: jax.jvp(u, (z,), (direction,))

        e_t, e_x = jnp.eye(2, dtype=x.dtype)
        (value, u_x), (_, u_xx) = jax.jvp(along(e_x), (x,), (e_x,))
        return along(e_t)(x)[1] + value * u_x - 0.01 / np.pi * u_xx


class KernelOf(angd.Kernel):
    """The kernel solver with a Jacobian of a given form."""

    held: Any = eqx.field(static=True, default=None)

    @property
    def form(self) -> Any:
        return self.held


def network(widths: Sequence[int]) -> Any:
    keys = jax.random.split(jax.random.key(0), len(widths) - 1)
    shapes = zip(keys, widths[:-1], widths[1:], strict=True)
    return [(jax.random.normal(k, (i, o)) / np.sqrt(i), jnp.zeros(o)) for k, i, o in shapes]


def step_of(solver: Any, params: Any, samples: angd.Samples) -> Callable[[], Any]:
    opt, problem = angd.ANGD(angd.ARGFlow.heavy_ball(0.9, 0.1), angd.Energy(), solver), Burgers()
    state = opt.init(problem, params, samples)
    compiled = eqx.filter_jit(opt.step)
    return lambda: jax.tree.leaves(compiled(problem, params, samples, state)[0])


def jobs(n: int, widths: Sequence[int]) -> dict[str, Callable[[], Any]]:
    params, samples = network(widths), angd.Samples(jax.random.uniform(jax.random.key(1), (n, 2)))
    p = sum(i * o + o for i, o in pairwise(widths))
    square = jax.random.normal(jax.random.key(2), (SIDE, SIDE))
    found: dict[str, Callable[[], Any]] = {"peak": partial(jax.jit(jnp.matmul), square, square)}
    forms = [Factored, *([Dense] if n * p * 8 <= LIMIT else []), *([Chunked] if n * n * p <= MOST else [])]
    for form in forms:
        build = eqx.filter_jit(partial(jacobian, Burgers().residual, form=form))
        held = build(params, samples.x)
        name = form.__name__
        found[f"{name}: Jacobian"] = lambda build=build: jax.tree.leaves(build(params, samples.x))
        found[f"{name}: kernel"] = partial(eqx.filter_jit(lambda jac: jac.kernel()), held)
        found[f"{name}: whole step"] = step_of(KernelOf(1e-3, held=form), params, samples)
        if form is Factored:  # before Dense, whose gigabytes slow down whatever follows
            found["chosen: whole step"] = step_of(angd.Kernel(1e-3), params, samples)
    kernel = square[:n, :n] @ square[:n, :n].T
    solve = jax.jit(lambda A, y: cho_solve(cho_factor(A + jnp.eye(len(A))), y))
    found["factorisation"] = partial(solve, kernel, jnp.ones(n))
    found["KFAC: whole step"] = step_of(angd.KFAC(1e-3), params, samples)
    found["Iterative (20 products): whole step"] = step_of(angd.Iterative(1e-3, 1e-16, max_steps=20), params, samples)
    return found


def report(n: int, widths: Sequence[int], repeats: int) -> None:
    p = sum(i * o + o for i, o in pairwise(widths))
    times = best_times(jobs(n, widths), repeats)
    peak = 2 * SIDE**3 / times.pop("peak")
    print(f"\nn = {n}, p = {p}, float64; matrix product of side {SIDE}: {peak / 1e9:.1f} GF/s")
    for name, seconds in times.items():
        form, _, part = name.partition(": ")
        note = f"{n * n * p / seconds / peak:8.2f} of peak" if part == "kernel" else ""
        if part == "whole step" and f"{form}: kernel" in times:
            parts = times[f"{form}: Jacobian"] + times[f"{form}: kernel"] + times["factorisation"]
            note = f"{seconds / parts:8.2f} of parts"
        print(f"  {name:<38}{1e3 * seconds:10.1f} ms{note}")


def main() -> None:
    jax.config.update("jax_enable_x64", True)
    quick, asked = "--quick" in sys.argv, tuple(int(a) for a in sys.argv[1:] if a.isdigit())
    for widths in (WIDE,) if "--wide" in sys.argv else (PAPER, WIDE):
        for n in asked or ((200,) if quick else (500, 1000, 2000)):
            report(n, widths, 1 if quick else 3)


if __name__ == "__main__":
    main()
