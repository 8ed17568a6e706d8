"""Damping in the units of each parameter: (G + λ D) δ = v − G c with D = diag(G)^power.

It is the ordinary problem for the parameters D^½ θ: columns of O are divided by D^½ before, the direction after.
Power 1 is Marquardt's scaling, 0 is λI; ½ lies between.
"""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from angd.method.jacobian import rescaled
from angd.method.solvers.base import AbstractSolver, Solution
from angd.method.system import AbstractSystem, Gram, Rows


class Scaled(AbstractSolver):
    """Damping in the units of each parameter, (G + λ diag(G)^power) δ = v − G c (Marquardt 1963).

    **Arguments:**

    - `inner`: `Normal` or `Kernel`, whose λ then multiplies diag(G)^power.
    - `power`: 1 is Marquardt's scaling, 0 is λI; ½ lies between. As an array it is no reason to compile again.
    - `floor`: entries of diag(G) count as at least this times the largest, so that all are damped.

    **Example:** `angd.Scaled(angd.Normal(1e-3))`
    """

    inner: AbstractSolver
    power: Any
    floor: float

    def __init__(self, inner: AbstractSolver, power: Any = 0.5, floor: float = 1e-10):
        if not 0 <= power <= 1 or not floor > 0:
            raise ValueError(f"Scaled: it takes 0 ≤ power ≤ 1 and floor > 0, got {power} and {floor}.")
        if inner.form is not None:
            raise ValueError(
                f"Scaled: {type(inner).__name__} holds the Jacobian in a form of its own; wrap Normal or Kernel."
            )
        self.inner, self.power, self.floor = inner, power, floor

    @property
    def damping(self) -> Any:
        return self.inner.damping

    @property
    def needs_rows(self) -> bool:
        return self.inner.needs_rows

    def init(self, system: AbstractSystem) -> PyTree:
        return self.inner.init(system)

    def origin(self, c: PyTree, d_prev: PyTree) -> PyTree:
        return self.inner.origin(c, d_prev)

    def prepare(
        self, system: AbstractSystem, state: PyTree, damping: Any, many: bool = False
    ) -> tuple[tuple[Any, Float[Array, "p"]], PyTree]:
        diagonal = system.diagonal()
        s = (diagonal + self.floor * jnp.max(diagonal)) ** (-self.power / 2)
        prepared, state = self.inner.prepare(_rescaled(system, s), state, damping, many)
        return (prepared, s), state

    def solve(
        self, prepared: tuple[Any, Float[Array, "p"]], damping: Any, system: AbstractSystem, c: PyTree
    ) -> Solution:
        inner, s = prepared
        solution = self.inner.solve(inner, damping, _rescaled(system, s), _times(system, 1 / s, c))
        return eqx.tree_at(lambda x: x.d, solution, _times(system, s, solution.d))

    def smallest(self, prepared: tuple[Any, Float[Array, "p"]]) -> Float[Array, ""]:
        return self.inner.smallest(prepared[0])


def _rescaled(system: AbstractSystem, s: Float[Array, "p"]) -> AbstractSystem:
    O = rescaled(system.O, s)
    if isinstance(system, Rows):
        return Rows(O=O, b=system.b, omega=system.omega, centred=system.centred)
    return Gram(O=O, v=_times(system, s, system.right_side()), omega=system.omega, centred=system.centred)


def _times(system: AbstractSystem, s: Float[Array, "p"], d: PyTree) -> PyTree:
    layout = system.O.layout
    return layout.unravel(s * layout.ravel(d))
