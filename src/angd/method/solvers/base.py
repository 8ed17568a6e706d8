"""What a solver is, in two stages.

    prepared, state = solver.prepare(system, state, λ)       all that the right-hand side does not change
    solution = solver.solve(prepared, λ, system, c)          d, for any λ, right-hand side and origin c

An exact solver finds d = c + δ with (G + λI) δ = v − G c. A controller that tries several dampings pays for the first
stage once; one that asks again for the same λ, or for a second right-hand side (the natural gradient, the step from
rest), pays for no factorisation.

An *approximate* inverse K ≈ G finds d = (K + λI)⁻¹ (v + λ c) instead: with the exact G c in the right-hand side and
another matrix in front of it, momentum would grow from step to step wherever K is smaller than G.
"""

import abc
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, PyTree

from angd.method.jacobian import AbstractJacobian
from angd.method.system import AbstractSystem
from angd.tree import add, all_finite

Prepared = Any  # whatever a solver's `prepare` returns: a pytree that nobody else looks into


class Solution(eqx.Module):
    """What a solver found.

    **Attributes:**

    - `d`: the direction, in the structure of the parameters.
    - `ok`: it is finite.
    - `converged`: an iteration behind it met its tolerance.
    """

    d: PyTree
    ok: Bool[Array, ""]
    converged: Bool[Array, ""]

    @classmethod
    def of(cls, d: PyTree, converged: Any = True) -> "Solution":
        return cls(d, all_finite(d), jnp.asarray(converged))

    def plus(self, a: PyTree) -> "Solution":
        """The same, moved by a."""
        return eqx.tree_at(lambda s: s.d, self, add(a, self.d))


class AbstractSolver(eqx.Module):
    """How the sampled system is solved: a subclass defines `prepare` and `solve`.

    **Attributes:**

    - `damping`: λ. A solver with a state of its own (running averages) overrides `init`.
    """

    damping: eqx.AbstractVar[Any]

    @property
    def form(self) -> type[AbstractJacobian] | None:
        """The Jacobian that the solver needs; None leaves it to the cost model."""
        return None

    @property
    def needs_rows(self) -> bool:
        """Must the right-hand side be known at the samples?"""
        return False

    @property
    def approximate(self) -> bool:
        """Is its inverse that of another matrix than G? Then momentum stays in coordinates, outside the system."""
        return False

    def init(self, system: AbstractSystem) -> PyTree:
        """The state before the first step: nothing, unless a solver says otherwise."""
        return None

    def origin(self, c: PyTree, d_prev: PyTree) -> PyTree:
        """What damping pulls towards, given the metric's origin c and the previous direction."""
        return c

    @abc.abstractmethod
    def prepare(
        self, system: AbstractSystem, state: PyTree, damping: Any, many: bool = False
    ) -> tuple[Prepared, PyTree]:
        """Matrix and factor for the damping of this step, and the state after it.

        **Arguments:** `many` says that many dampings will be asked for, so that an eigen-decomposition pays.
        """

    @abc.abstractmethod
    def solve(self, prepared: Prepared, damping: Any, system: AbstractSystem, c: PyTree) -> Solution:
        """The direction; `system` may have another right-hand side than the one prepared, never another G."""

    def smallest(self, prepared: Prepared) -> Float[Array, ""]:
        """The smallest eigenvalue of the matrix that was factorised, NaN where it is not known."""
        return jnp.full((), jnp.nan)


def check_damping(damping: Any, owner: str) -> None:
    """Refuse a negative or infinite λ in a sentence."""
    if isinstance(damping, str | bool | list | dict | tuple):
        raise ValueError(f"{owner}: damping must be a number, got {damping!r}.")
    given = eqx.is_array_like(damping) and not isinstance(damping, Tracer)
    if given and not (0 <= damping < float("inf")):
        raise ValueError(f"{owner}: damping must be finite and ≥ 0, got {damping}.")
