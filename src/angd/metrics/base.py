"""What a metric does: with π the momentum in its own representation and f the force,

    π_k = μ_k T π_{k−1} − h_k R_k − β_{k−1} (f_k − T f_{k−1}) − h_k γ_k f_k,      π_0 = −h_0 γ_0 f_0,

T being the transport. The metric returns this as a sampled system; a solver finds the direction d from it.
"""

import abc
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, PyTree

from angd.flow.coefficients import Coefficients
from angd.samples import Samples
from angd.system import AbstractSystem
from angd.transport import AbstractTransport

Inverse = Callable[[AbstractSystem], PyTree]
Keepsakes = tuple[PyTree, PyTree, PyTree]


class Memory(eqx.Module):
    """What one step leaves to the next.

    θ and d of the step before; `covector` and `gradient` for the Covector transport; `natural`, the natural gradient
    M⁻¹∂L, for Hessian damping in L² and H^s. `started` is false before the first step.
    """

    params: PyTree
    d: PyTree
    natural: PyTree
    covector: PyTree
    gradient: PyTree
    started: Bool[Array, ""]

    @classmethod
    def fresh(cls, params: PyTree) -> "Memory":
        """At rest in `params`."""
        zero = jax.tree.map(jnp.zeros_like, params)
        return cls(params, zero, zero, zero, zero, jnp.zeros((), bool))


class Setting(eqx.Module):
    """Everything a metric may look at in one step. `hessian` says, before compilation, whether β may be non-zero."""

    problem: Any
    params: PyTree
    samples: Samples
    c: Coefficients
    memory: Memory
    transport: AbstractTransport
    hessian: bool = eqx.field(static=True)

    @property
    def beta_prev(self) -> Array:
        """β_{k−1}, or 0 at the first step, where f_{k−1} counts as f_k."""
        return jnp.where(self.memory.started, self.c.beta_prev, 0.0)


class AbstractMetric(eqx.Module):
    """A row of the table of metrics."""

    @abc.abstractmethod
    def system(self, setting: Setting) -> AbstractSystem:
        """The sampled system of this step."""

    @abc.abstractmethod
    def centre(self, setting: Setting) -> PyTree:
        """What the direction is pulled towards by the damping, so that momentum survives it."""

    @abc.abstractmethod
    def remember(self, setting: Setting, system: AbstractSystem, invert: Inverse) -> Keepsakes:
        """(natural gradient, covector, gradient) for the next step, as far as this metric needs them.

        `invert` solves another system with the solver of this step.
        """


def scaled(factor: Any, tree: PyTree) -> PyTree:
    """factor · tree, in the tree's types."""
    return jax.tree.map(lambda leaf: (factor * leaf).astype(leaf.dtype), tree)


def nothing(setting: Setting) -> Keepsakes:
    """A memory that holds zeros."""
    return setting.memory.natural, setting.memory.covector, setting.memory.gradient
