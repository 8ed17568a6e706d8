"""What a solver is, in three stages: prepare the matrix, fix the damping, find directions.

    solver.prepare(system) ──► prepared.at(λ) ──► inverse.direction(system, c)
    G or its kernel            (G + λI)⁻¹           d = c + δ,   (G + λI) δ = v − G c

A controller that tries several dampings pays for the first stage once, and a second right-hand side (the natural
gradient, the step from rest) for none of them.
"""

import abc
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, PyTree

from angd.method.jacobian import AbstractJacobian
from angd.method.system import AbstractSystem
from angd.tree import add, all_finite


class Solution(eqx.Module):
    """The direction d; whether it is finite (`ok`), and whether an iteration behind it met its tolerance."""

    d: PyTree
    ok: Bool[Array, ""]
    converged: Bool[Array, ""]

    @classmethod
    def of(cls, c: PyTree, delta: PyTree, converged: Any = True) -> "Solution":
        """d = c + δ."""
        return cls(add(c, delta), all_finite(delta), jnp.asarray(converged))


class AbstractInverse(eqx.Module):
    """(G + λI)⁻¹ for one λ."""

    @abc.abstractmethod
    def direction(self, system: AbstractSystem, c: PyTree) -> Solution:
        """d = c + δ; `system` may have another right-hand side than the one prepared, never another G."""


class AbstractPrepared(eqx.Module):
    """G, ready for any damping."""

    @abc.abstractmethod
    def at(self, damping: Any) -> AbstractInverse:
        """The inverse with this damping."""


class AbstractSolver(eqx.Module):
    """How (G + λI) δ = v − G c is solved; `damping` is λ."""

    damping: eqx.AbstractVar[Any]

    @property
    def form(self) -> type[AbstractJacobian] | None:
        """The Jacobian that the solver needs; None leaves it to the cost model."""
        return None

    @property
    def needs_rows(self) -> bool:
        """Must the right-hand side be known at the samples?"""
        return False

    def init(self, system: AbstractSystem) -> PyTree:
        """What the solver carries from step to step: nothing, unless it says otherwise."""
        return None

    def centre(self, c: PyTree, d_prev: PyTree) -> PyTree:
        """The centre to use, given the metric's and the previous direction."""
        return c

    @abc.abstractmethod
    def prepare(self, system: AbstractSystem, memory: PyTree, many: bool = False) -> tuple[AbstractPrepared, PyTree]:
        """Everything that does not depend on the damping; `many` says that many dampings will be asked for."""


def check_damping(damping: Any, owner: str) -> None:
    """Refuse a negative or infinite λ in a sentence."""
    if eqx.is_array_like(damping) and not (0 <= damping < float("inf")):
        raise ValueError(f"{owner}: damping must be finite and ≥ 0, got {damping}.")
