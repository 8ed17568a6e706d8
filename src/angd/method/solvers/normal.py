"""Normal equations: the p × p matrix when p ≤ N, otherwise the N × N kernel."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from angd.method.solvers.base import AbstractSolver, Solution, check_damping
from angd.method.solvers.kernel import filled_kernel, kernel_solution
from angd.method.solvers.positive import Positive, positive
from angd.method.system import AbstractSystem
from angd.tree import add, combine


class Normal(AbstractSolver):
    """(G + λI)⁻¹ in the smaller of its two forms, p × p or N × N.

    **Arguments:**

    - `damping`: λ, usually between 1e-8 and 1e-2.

    **Example:** `angd.ANGD(flow, angd.L2(), angd.Normal(1e-3))`
    """

    damping: Any = 1e-6

    def __check_init__(self):
        check_damping(self.damping, "Normal")

    def prepare(
        self, system: AbstractSystem, state: PyTree, damping: Any, many: bool = False
    ) -> tuple[Positive, PyTree]:
        build, k = (_gram, system.O.n_params) if _is_tall(system) else (filled_kernel, system.O.n_rows)
        return positive(build, system, damping, many, k), state

    def solve(self, prepared: Positive, damping: Any, system: AbstractSystem, c: PyTree) -> Solution:
        if not _is_tall(system):
            return kernel_solution(prepared, damping, system, c)
        layout = system.O.layout
        r = layout.ravel(combine((1.0, system.right_side()), (-1.0, system.apply(c))))
        return Solution.of(add(c, layout.unravel(prepared.solve(damping, r))))

    def smallest(self, prepared: Positive) -> Float[Array, ""]:
        return prepared.smallest


def _gram(system: AbstractSystem, again: bool) -> tuple[Float[Array, "p p"], Float[Array, ""]]:
    """G; its rows are centred before they are multiplied."""
    return system.gram(), jnp.zeros(())


def _is_tall(system: AbstractSystem) -> bool:
    return system.O.n_params <= system.O.n_rows
