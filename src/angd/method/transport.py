"""How momentum crosses from step k − 1 to step k: the essential choice of the discretisation.

JVP          Jacobian of the *old* parameters times d   →  the ARG flow, at first order in h
CurrentJVP   Jacobian of the *new* parameters times d   →  heavy ball in coordinates: misses the connection
Printed      the covector v of the step before          →  a wrong equation, unless the model is linear in θ
"""

import abc
from collections.abc import Callable
from typing import Any

import equinox as eqx
from jaxtyping import Array, Float, PyTree

from angd.method.passes import pushed


class AbstractTransport(eqx.Module):
    """How momentum crosses from step to step: a subclass evaluates ⟨∂_θ f, c⟩ of the last step at new points."""

    @abc.abstractmethod
    def push(
        self, f: Callable[..., Any], params: PyTree, params_prev: PyTree, xs: PyTree, c: PyTree
    ) -> Float[Array, "n *m"]:
        """⟨∂_θ f(x), c⟩ at every point of `xs`."""


class JVP(AbstractTransport):
    """Jacobian–vector product at the old parameters and the new points: the default.

    It is what makes the method follow the flow, at first order in h.
    """

    def push(
        self, f: Callable[..., Any], params: PyTree, params_prev: PyTree, xs: PyTree, c: PyTree
    ) -> Float[Array, "n *m"]:
        return pushed(f, params_prev, c, xs)


class CurrentJVP(AbstractTransport):
    """Jacobian–vector product at the new parameters: cheaper and robust, the heavy ball in coordinates.

    Its limit for small h misses the connection term of the flow.
    """

    def push(
        self, f: Callable[..., Any], params: PyTree, params_prev: PyTree, xs: PyTree, c: PyTree
    ) -> Float[Array, "n *m"]:
        return pushed(f, params, c, xs)


class Printed(AbstractTransport):
    """The recursion as the paper prints it, for comparison: the covector v is carried, nothing re-centres damping.

    For `L2` and `Hs` with s ≥ 0 only. Without λ-consistent momentum and with a covector that belongs to another
    tangent space it stalls or diverges for dampings below 0.1, unless the model is linear in its parameters.
    """

    def push(
        self, f: Callable[..., Any], params: PyTree, params_prev: PyTree, xs: PyTree, c: PyTree
    ) -> Float[Array, "n *m"]:
        raise ValueError("The Printed recursion exists only for L2 and Hs with s ≥ 0: use JVP() with this metric.")
