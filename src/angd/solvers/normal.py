"""Normal equations: the p × p matrix when p ≤ N, otherwise the N × N kernel through Woodbury's identity."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import PyTree

from angd.flow.tree import combine
from angd.solvers.base import AbstractSolver, Solution, check_damping, solve_positive
from angd.solvers.kernel import kernel_with_null, solve_kernel, unweigh
from angd.system import AbstractSystem, Rows


class Normal(AbstractSolver):
    """(G + λI)⁻¹ in the smaller of its two forms; `damping` λ is usually between 1e-8 and 1e-2."""

    damping: float = eqx.field(default=1e-6)

    def __check_init__(self):
        check_damping(self.damping, "Normal")

    def centre(self, c: PyTree, d_prev: PyTree) -> PyTree:
        return c

    def solve(self, system: AbstractSystem, c: PyTree) -> Solution:
        if system.O.n_params <= system.O.n_rows:
            return self._parameters(system, c)
        if isinstance(system, Rows):
            return solve_kernel(system, c, self.damping)
        if self.damping == 0:
            raise ValueError("Normal: with more parameters than rows the matrix is singular; give damping > 0.")
        return self._woodbury(system, c)

    def _parameters(self, system: AbstractSystem, c: PyTree) -> Solution:
        layout = system.O.layout
        residual = layout.ravel(combine((1.0, system.right_side()), (-1.0, system.apply(c))))
        delta, ok = solve_positive(system.gram(), self.damping, residual)
        return Solution(combine((1.0, c), (1.0, layout.unravel(delta))), ok)

    def _woodbury(self, system: AbstractSystem, c: PyTree) -> Solution:
        """δ = (r − ÔᵀK⁻¹Ô r)/λ with K = ÔÔᵀ + λI."""
        layout = system.O.layout
        r = combine((1.0, system.right_side()), (-1.0, system.apply(c)))
        y, ok = solve_positive(kernel_with_null(system), self.damping, system.root * system.push(r))
        inside = system.pull(unweigh(y, system.root))
        delta = (layout.ravel(r) - layout.ravel(inside)) / self.damping
        return Solution(combine((1.0, c), (1.0, layout.unravel(delta))), ok & jnp.all(jnp.isfinite(delta)))
