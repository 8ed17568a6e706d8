"""Solvers around solvers.

`ProjectedMomentum` takes from the previous direction whatever the samples do not determine,

    argmin ½ dᵀGd − vᵀd + ½λ ‖d − η d_prev‖²,     λ → 0:  d = O⁺b + η (I − O⁺O) d_prev,

and `WithFallback` asks a second solver where the first one fails.
"""

from typing import Any

import equinox as eqx
import jax
from jax import lax
from jaxtyping import Array, Float, PyTree

from angd.flow.schedules import is_concrete
from angd.method.jacobian import AbstractJacobian
from angd.method.solvers.base import AbstractSolver, Prepared, Solution
from angd.method.system import AbstractSystem
from angd.tree import scale


class ProjectedMomentum(AbstractSolver):
    """argmin ½ dᵀGd − vᵀd + ½λ‖d − η d_prev‖²: keeps of the last direction what the samples do not determine.

    It *replaces* the origin of the solver that it wraps. With μ = 0 on Fisher–Rao this is SPRING
    (Goldshlager, Abrahamsen and Lin 2024).

    **Arguments:**

    - `eta`: η in [0, 1); 0.99 is SPRING's.
    - `inner`: any solver.

    **Example:** `angd.ProjectedMomentum(0.99, angd.Kernel(4e-3))`
    """

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

    @property
    def approximate(self) -> bool:
        return self.inner.approximate

    def origin(self, c: PyTree, d_prev: PyTree) -> PyTree:
        return scale(self.eta, d_prev)

    def prepare(
        self, system: AbstractSystem, state: PyTree, damping: Any, many: bool = False
    ) -> tuple[Prepared, PyTree]:
        return self.inner.prepare(system, state, damping, many)

    def solve(self, prepared: Prepared, damping: Any, system: AbstractSystem, c: PyTree) -> Solution:
        return self.inner.solve(prepared, damping, system, c)

    def smallest(self, prepared: Prepared) -> Float[Array, ""]:
        return self.inner.smallest(prepared)


class WithFallback(AbstractSolver):
    """One solver, and where it fails (not finite, or not converged), another one with its own damping.

    **Arguments:**

    - `first`: any solver.
    - `second`: one without a state of its own (not KFAC).

    **Example:** `angd.WithFallback(angd.Normal(1e-12), angd.Normal(1e-4))`
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
            raise ValueError("WithFallback: the second solver must not keep a state of its own (KFAC can be first).")
        return self.first.init(system)

    @property
    def approximate(self) -> bool:
        return self.first.approximate

    def origin(self, c: PyTree, d_prev: PyTree) -> PyTree:
        return self.first.origin(c, d_prev)

    def prepare(
        self, system: AbstractSystem, state: PyTree, damping: Any, many: bool = False
    ) -> tuple[Prepared, PyTree]:
        return self.first.prepare(system, state, damping, many)

    def solve(self, prepared: Prepared, damping: Any, system: AbstractSystem, c: PyTree) -> Solution:
        solution = self.first.solve(prepared, damping, system, c)
        arrays, static = eqx.partition((system, c), eqx.is_array)

        def again(arrays: PyTree) -> Solution:
            system, c = eqx.combine(arrays, static)
            prepared, _ = self.second.prepare(system, None, self.second.damping)
            return self.second.solve(prepared, self.second.damping, system, c)

        return lax.cond(solution.ok & solution.converged, lambda _: solution, again, arrays)

    def smallest(self, prepared: Prepared) -> Float[Array, ""]:
        return self.first.smallest(prepared)
