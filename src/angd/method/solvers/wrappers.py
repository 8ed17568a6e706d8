"""Solvers around solvers.

`ProjectedMomentum` takes from the previous direction whatever the samples do not determine,

    argmin ½ dᵀGd − vᵀd + ½λ ‖d − η d_prev‖²,     λ → 0:  d = O⁺b + η (I − O⁺O) d_prev,

and `WithFallback` asks a second solver where the first one fails.
"""

from typing import Any

import equinox as eqx
import jax
from jax import lax
from jaxtyping import PyTree

from angd.flow.schedules import is_concrete
from angd.method.jacobian import AbstractJacobian
from angd.method.solvers.base import AbstractInverse, AbstractPrepared, AbstractSolver, Solution
from angd.method.system import AbstractSystem
from angd.tree import scale


class ProjectedMomentum(AbstractSolver):
    """Wraps any solver and *replaces* its centre by η d_prev. With μ = 0 on Fisher–Rao this is SPRING."""

    eta: Any
    inner: AbstractSolver

    def __init__(self, eta: Any, inner: AbstractSolver):
        if is_concrete(eta) and not 0 <= eta < 1:
            raise ValueError(f"ProjectedMomentum: eta must lie in [0, 1), got {eta}.")
        self.eta, self.inner = eta, inner

    @property
    def damping(self) -> Any:
        return self.inner.damping

    @property
    def form(self) -> type[AbstractJacobian] | None:
        return self.inner.form

    @property
    def needs_rows(self) -> bool:
        return self.inner.needs_rows

    def init(self, system: AbstractSystem) -> PyTree:
        return self.inner.init(system)

    def centre(self, c: PyTree, d_prev: PyTree) -> PyTree:
        return scale(self.eta, d_prev)

    def prepare(self, system: AbstractSystem, memory: PyTree, many: bool = False) -> tuple[AbstractPrepared, PyTree]:
        return self.inner.prepare(system, memory, many)


class WithFallback(AbstractSolver):
    """`first`, and where it fails (not finite, or not converged), `second` with its own damping.

    Example: `WithFallback(Normal(1e-12), Normal(1e-4))`.
    """

    first: AbstractSolver
    second: AbstractSolver

    def __init__(self, first: AbstractSolver, second: AbstractSolver):
        self.first, self.second = first, second

    @property
    def damping(self) -> Any:
        return self.first.damping

    @property
    def form(self) -> type[AbstractJacobian] | None:
        return self.first.form or self.second.form

    @property
    def needs_rows(self) -> bool:
        return self.first.needs_rows or self.second.needs_rows

    def init(self, system: AbstractSystem) -> PyTree:
        if jax.tree.leaves(self.second.init(system)):
            raise ValueError("WithFallback: the second solver must not keep a memory of its own (KFAC can be first).")
        return self.first.init(system)

    def centre(self, c: PyTree, d_prev: PyTree) -> PyTree:
        return self.first.centre(c, d_prev)

    def prepare(self, system: AbstractSystem, memory: PyTree, many: bool = False) -> tuple[AbstractPrepared, PyTree]:
        prepared, memory = self.first.prepare(system, memory, many)
        return _PreparedPair(prepared, self.second), memory


class _PreparedPair(AbstractPrepared):
    first: AbstractPrepared
    second: AbstractSolver

    def at(self, damping: Any) -> "_PairInverse":
        return _PairInverse(self.first.at(damping), self.second)


class _PairInverse(AbstractInverse):
    first: AbstractInverse
    second: AbstractSolver

    def direction(self, system: AbstractSystem, c: PyTree) -> Solution:
        solution = self.first.direction(system, c)
        arrays, static = eqx.partition((system, c), eqx.is_array)

        def again(arrays: PyTree) -> Solution:
            system, c = eqx.combine(arrays, static)
            return self.second.prepare(system, None)[0].at(self.second.damping).direction(system, c)

        return lax.cond(solution.ok & solution.converged, lambda _: solution, again, arrays)
