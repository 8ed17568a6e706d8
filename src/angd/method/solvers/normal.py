"""Normal equations: the p × p matrix when p ≤ N, otherwise the N × N kernel."""

from typing import Any

from jaxtyping import PyTree

from angd.method.solvers.base import AbstractInverse, AbstractPrepared, AbstractSolver, Solution, check_damping
from angd.method.solvers.kernel import PreparedKernel
from angd.method.solvers.positive import Cholesky, Matrix, Shifted, Spectrum, positive
from angd.method.system import AbstractSystem
from angd.tree import combine


class Normal(AbstractSolver):
    """(G + λI)⁻¹ in the smaller of its two forms; `damping` λ is usually between 1e-8 and 1e-2."""

    damping: Any = 1e-6

    def __check_init__(self):
        check_damping(self.damping, "Normal")

    def prepare(self, system: AbstractSystem, memory: PyTree, many: bool = False) -> tuple[AbstractPrepared, PyTree]:
        if system.O.n_params <= system.O.n_rows:
            return PreparedGram(positive(system.gram(), many)), memory
        return PreparedKernel.of(system, many), memory


class PreparedGram(AbstractPrepared):
    """G as a p × p matrix."""

    gram: Matrix | Spectrum

    def at(self, damping: Any) -> "GramInverse":
        return GramInverse(self.gram.at(damping))


class GramInverse(AbstractInverse):
    """Directions from the p × p factor."""

    factor: Cholesky | Shifted

    def direction(self, system: AbstractSystem, c: PyTree) -> Solution:
        layout = system.O.layout
        r = layout.ravel(combine((1.0, system.right_side()), (-1.0, system.apply(c))))
        delta = layout.unravel(self.factor.solve(r))
        return Solution.of(c, delta)
