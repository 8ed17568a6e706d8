"""Conjugate gradients on `O d` and `Oᵀ y` only, for systems of which no matrix fits in memory.

A preconditioner of rank ℓ (randomised Nyström: G ≈ UΛUᵀ from ℓ products with G) makes the large eigenvalues of G equal,

    P⁻¹ = (λ_ℓ + λ) U (Λ + λI)⁻¹ Uᵀ + (I − UUᵀ),

so that the number of iterations depends on the small ones only.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import lineax
from jax import lax
from jaxtyping import Array, Float, PyTree

from angd.method.jacobian import AbstractJacobian, MatrixFree
from angd.method.solvers.base import AbstractSolver, Solution, check_damping
from angd.method.system import AbstractSystem
from angd.tree import add, combine

SEED = 0  # the sketch is the same in every step and every run


class Iterative(AbstractSolver):
    """(G + λI)⁻¹ by lineax's conjugate gradients on products `O d` and `Oᵀ y`: no matrix is ever formed.

    A direction that missed the tolerance is taken, and reported as `RESULTS.not_converged`.

    **Arguments:**

    - `damping`: λ; the number of iterations grows like √(‖G‖/λ).
    - `rtol`: tolerance > 0 of every entry of the residual, relative to that entry of the right-hand side and to their
      root mean square.
    - `max_steps`: iterations at most.
    - `rank`: > 0 adds a randomised Nyström preconditioner (Frangella, Tropp and Udell 2023), at the price of as many
      further products with G per step.
    """

    damping: Any = 1e-6
    rtol: float = 1e-6
    max_steps: int = eqx.field(static=True, default=200)
    rank: int = eqx.field(static=True, default=0)

    def __check_init__(self):
        check_damping(self.damping, "Iterative")
        if not self.rtol > 0 or self.max_steps < 1:
            raise ValueError(f"Iterative: rtol and max_steps must be positive, got {self.rtol} and {self.max_steps}.")
        if self.rank < 0:
            raise ValueError(f"Iterative: rank must be ≥ 0, got {self.rank}.")

    @property
    def form(self) -> type[AbstractJacobian] | None:
        return MatrixFree

    def prepare(
        self, system: AbstractSystem, state: PyTree, damping: Any, many: bool = False
    ) -> tuple["Nystrom | None", PyTree]:
        rank = min(self.rank, system.O.n_params)
        return nystrom(system, rank) if rank else None, state

    def solve(self, prepared: "Nystrom | None", damping: Any, system: AbstractSystem, c: PyTree) -> Solution:
        layout = system.O.layout
        r = layout.ravel(combine((1.0, system.right_side()), (-1.0, system.apply(c))))

        def damped(d: Float[Array, "p"]) -> Float[Array, "p"]:
            return layout.ravel(system.apply(layout.unravel(d))) + damping * d

        # Entry by entry and relative alone, a tolerance is 0/0 where no row depends on a parameter: lineax would stop.
        size = jnp.sqrt(jnp.mean(r**2))
        size = jnp.where(size > 0, size, 1)
        cg = lineax.CG(rtol=self.rtol, atol=self.rtol, max_steps=self.max_steps)
        options = {} if prepared is None else {"preconditioner": _preconditioner(prepared, damping, r)}
        answer = lineax.linear_solve(_operator(damped, r), r / size, cg, options=options, throw=False)
        converged = answer.result == lineax.RESULTS.successful
        return Solution.of(add(c, layout.unravel(size * answer.value)), converged)


class Nystrom(eqx.Module):
    """G ≈ U diag(values) Uᵀ."""

    U: Float[Array, "p rank"]
    values: Float[Array, "rank"]

    def precondition(self, r: Float[Array, "p"], damping: Any) -> Float[Array, "p"]:
        inside = self.U.T @ r
        return r + self.U @ (((self.values[-1] + damping) / (self.values + damping) - 1) * inside)


def nystrom(system: AbstractSystem, rank: int) -> Nystrom:
    """The approximation from products with `rank` orthonormal random vectors, shifted against rounding."""
    layout = system.O.layout
    random = jax.random.normal(jax.random.key(SEED), (layout.size, rank), layout.dtype)
    sketch = jnp.linalg.qr(random)[0]
    columns = lax.map(lambda e: layout.ravel(system.apply(layout.unravel(e))), sketch.T, batch_size=min(rank, 16)).T
    shift = jnp.finfo(layout.dtype).eps * jnp.linalg.norm(columns) * layout.size**0.5
    columns = columns + shift * sketch
    root = jnp.linalg.cholesky(_symmetric(sketch.T @ columns))
    half = jax.scipy.linalg.solve_triangular(root, columns.T, lower=True).T
    U, singular, _ = jnp.linalg.svd(half, full_matrices=False)
    return Nystrom(U, jnp.maximum(singular**2 - shift, 0))


def _symmetric(A: Float[Array, "k k"]) -> Float[Array, "k k"]:
    return (A + A.T) / 2


def _preconditioner(approximation: Nystrom, damping: Any, r: Float[Array, "p"]) -> lineax.FunctionLinearOperator:
    return _operator(lambda y: approximation.precondition(y, damping), r)


def _operator(f: Any, r: Float[Array, "p"]) -> lineax.FunctionLinearOperator:
    return lineax.FunctionLinearOperator(f, jax.eval_shape(lambda: r), lineax.positive_semidefinite_tag)
