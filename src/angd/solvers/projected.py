"""Projected momentum: whatever the samples do not determine is taken from the previous direction.

argmin ½ dᵀGd − vᵀd + ½λ ‖d − η d_prev‖²,     λ → 0:  d = O⁺b + η (I − O⁺O) d_prev.
"""

import jax
from jaxtyping import PyTree

from angd.solvers.base import AbstractSolver, Solution
from angd.system import AbstractSystem


class ProjectedMomentum(AbstractSolver):
    """Wraps any solver and *replaces* its centre by η d_prev. With μ = 0 on Fisher–Rao this is SPRING."""

    eta: float
    inner: AbstractSolver

    def __check_init__(self):
        if not 0 <= self.eta < 1:
            raise ValueError(f"ProjectedMomentum: eta must lie in [0, 1), got {self.eta}.")

    def centre(self, c: PyTree, d_prev: PyTree) -> PyTree:
        return jax.tree.map(lambda leaf: self.eta * leaf, d_prev)

    def solve(self, system: AbstractSystem, c: PyTree) -> Solution:
        return self.inner.solve(system, c)
