"""One Gauss–Newton step on Burgers, part by part, and its Jacobian against nested reverse mode.

    python benchmarks/pinn.py [--quick | --record]

"nested" is what one writes first: `vmap(grad)` over the parameters of a residual made of `grad` of `grad`. "channels"
is what `angd` does: forward derivatives share their Taylor channels, and the layers' factors ("factors": these alone,
which is all that the kernel of wide layers needs) give the Jacobian. The
smaller of Gram (p × p) and kernel (n × n) is formed and factorised; a probe is one more damping and its loss. Times of
one size come from one run, interleaved; read the ratios.
"""

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jax.scipy.linalg import cho_factor, cho_solve

from angd.method.jacobian import Dense, Factored, jacobian
from angd.problems.pinn import Network, burgers
from timing import best_times, milliseconds, record

NETWORKS = {"1.3k": Network((24, 24, 24), embed=burgers.PERIODIC), "17k": Network((20, 50, 80, 80, 50, 20))}
# Work beyond which one repetition has to do, and beyond which nested reverse mode is left out.
LONG, TOO_LONG = 2e11, 2e12


def nested(problem: Any) -> Callable[..., jax.Array]:
    """Rows ∂_θ r by reverse mode over reverse mode."""

    def residual(params: Any, z: jax.Array) -> jax.Array:
        def u(z: jax.Array) -> jax.Array:
            return problem.field(params, z)

        u_x = jax.grad(u)(z)[1]
        u_xx = jax.grad(lambda y: jax.grad(u)(y)[1])(z)[1]
        return jax.grad(u)(z)[0] + u(z) * u_x - burgers.NU * u_xx

    def row(params: Any, z: jax.Array) -> jax.Array:
        return ravel_pytree(jax.grad(residual)(params, z))[0]

    return jax.jit(jax.vmap(row, (None, 0)))


def jobs(network: Network, n: int) -> tuple[dict[str, Callable[[], Any]], int]:
    problem = burgers.burgers("-sin", network)
    params = problem.init(jax.random.key(0))
    z = problem.domain.place(jax.random.uniform(jax.random.key(1), (n, 2)))
    p = sum(leaf.size for leaf in jax.tree.leaves(params))
    f = problem.residuals["interior"]
    build = eqx.filter_jit(partial(jacobian, f, form=Dense))
    form = eqx.filter_jit(lambda O: O.gram() if p <= n else O.kernel())
    factorise = jax.jit(lambda A: jnp.linalg.cholesky(A + jnp.eye(len(A))))
    diagonalise = jax.jit(jnp.linalg.eigh)
    loss = jax.jit(lambda params: jnp.sum(jax.vmap(f, (None, 0))(params, z) ** 2))
    O = build(params, z)
    A, y = form(O), jnp.ones(min(n, p))
    factors = eqx.filter_jit(partial(jacobian, f, form=Factored))
    found: dict[str, Callable[[], Any]] = {
        "Jacobian, channels": lambda: jax.tree.leaves(build(params, z)),
        "Jacobian, factors": lambda: jax.tree.leaves(factors(params, z)),
    }
    if n * p * p <= TOO_LONG:
        found["Jacobian, nested"] = partial(nested(problem), params, z)
    found["Gram" if p <= n else "kernel"] = partial(form, O)
    found["Cholesky"] = partial(factorise, A)
    if n * p <= LONG / 1e4:
        found["eigenvalues"] = lambda: jax.tree.leaves(diagonalise(A))
    solve = jax.jit(lambda A, y: cho_solve(cho_factor(A + jnp.eye(len(A))), y))
    found["Cholesky and solve"] = partial(solve, A, y)
    found["loss of a probe"] = partial(loss, params)
    return found, p


def report(name: str, n: int, quick: bool) -> None:
    found, p = jobs(NETWORKS[name], n)
    times = best_times(found, 1 if quick or n * min(n, p) * p > LONG else 3)
    print(f"\nn = {n}, p = {p}, float64", flush=True)
    for part, seconds in times.items():
        ratio = seconds / times["Jacobian, channels"]
        print(f"  {part:<22}{1e3 * seconds:10.1f} ms{ratio:8.2f} × the Jacobian")
    if "--record" in sys.argv:
        record("pinn", f"p{p}_n{n}", milliseconds(times) | ratios(times))


def ratios(times: dict[str, float]) -> dict[str, float | None]:
    """How much longer nested reverse mode takes than the dense Jacobian by channels, and than the factors alone."""
    nested = times.get("Jacobian, nested")
    return {
        f"nested_over_{name}": None if nested is None else round(nested / times[f"Jacobian, {name}"], 1)
        for name in ("channels", "factors")
    }


def main() -> None:
    jax.config.update("jax_enable_x64", True)
    quick = "--quick" in sys.argv
    for name in NETWORKS:
        for n in (200,) if quick else (1000, 4000, 16000):
            report(name, n, quick)


if __name__ == "__main__":
    main()
