"""Conjugate gradients on `O d` and `Oᵀ y` only, for systems of which no matrix fits in memory."""

import equinox as eqx
import jax
import jax.numpy as jnp
import lineax
from jaxtyping import PyTree

from angd.flow.tree import combine
from angd.solvers.base import AbstractSolver, Solution, check_damping
from angd.system import AbstractSystem


class Iterative(AbstractSolver):
    """(G + λI)⁻¹ by lineax's conjugate gradients, to relative tolerance `rtol` or `max_steps` iterations."""

    damping: float = eqx.field(default=1e-6)
    rtol: float = 1e-6
    max_steps: int = eqx.field(static=True, default=200)

    def __check_init__(self):
        check_damping(self.damping, "Iterative")
        if not self.rtol > 0 or self.max_steps < 1:
            raise ValueError(f"Iterative: rtol and max_steps must be positive, got {self.rtol} and {self.max_steps}.")

    def centre(self, c: PyTree, d_prev: PyTree) -> PyTree:
        return c

    def solve(self, system: AbstractSystem, c: PyTree) -> Solution:
        residual = combine((1.0, system.right_side()), (-1.0, system.apply(c)))

        def damped(d):
            return jax.tree.map(lambda Gd, leaf: Gd + self.damping * leaf, system.apply(d), d)

        shape = jax.eval_shape(lambda: residual)
        operator = lineax.FunctionLinearOperator(damped, shape, lineax.positive_semidefinite_tag)
        cg = lineax.CG(rtol=self.rtol, atol=0.0, max_steps=self.max_steps)
        answer = lineax.linear_solve(operator, residual, cg, throw=False)
        finite = jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(answer.value)]))
        return Solution(combine((1.0, c), (1.0, answer.value)), finite)
