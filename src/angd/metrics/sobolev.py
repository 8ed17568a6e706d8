"""L² and H^s with s ≥ 0: the metric ∫ 𝓑(σ)·𝓑(σ), where only the gradient ∂_θ L of the loss is known.

With c = μ d_{k−1} + β_{k−1} n_{k−1}, n = M⁻¹∂L, and the rows ∂_θ 𝓑(u)(x_i) of the current step,

    v_k = Σ_i ω_i (∂_θ 𝓑(u_k)(x_i))ᵀ ⟨∂_θ 𝓑(u_{k−1})(x_i), c⟩ − (β_{k−1} + h_k γ_k) ∂_θ L.
"""

import abc
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from angd.jacobian import jacobian
from angd.metrics.base import AbstractMetric, Inverse, Keepsakes, Setting, nothing, scaled
from angd.system import AbstractSystem, Gram, row_weights
from angd.transport import Covector


class AbstractSobolev(AbstractMetric):
    """A metric of Sobolev type: a subclass says what 𝓑(u)(x) is, at one point."""

    @abc.abstractmethod
    def features(self, u: Callable[[Any], Array], x: Any) -> Float[Array, "m"]:
        """The vector 𝓑(u)(x) whose squared length the metric integrates."""

    def pointwise(self, problem: Any) -> Callable[..., Array]:
        """(θ, x) ↦ 𝓑(u_θ)(x)."""
        return lambda params, x: self.features(lambda y: problem.field(params, y), x)

    def centre(self, setting: Setting) -> PyTree:
        move = scaled(setting.c.mu, setting.memory.d)
        if not setting.hessian:
            return move
        return jax.tree.map(jnp.add, move, scaled(setting.beta_prev, setting.memory.natural))

    def system(self, setting: Setting) -> AbstractSystem:
        O = jacobian(self.pointwise(setting.problem), setting.params, setting.samples.x)
        omega = row_weights(setting.samples.omega, O)
        gain = setting.beta_prev + setting.c.h * setting.c.gamma
        force = scaled(-gain, _gradient(setting))
        carried = self._carried(setting, O, omega)
        return Gram(O=O, v=jax.tree.map(jnp.add, carried, force), omega=omega)

    def _carried(self, setting: Setting, O: Any, omega: Array) -> PyTree:
        """The momentum of the step before, as a covector of this one."""
        memory = setting.memory
        if isinstance(setting.transport, Covector):
            return jax.tree.map(
                jnp.add, scaled(setting.c.mu, memory.covector), scaled(setting.beta_prev, memory.gradient)
            )
        f = self.pointwise(setting.problem)
        old = setting.transport.push(f, setting.params, memory.params, setting.samples.x, self.centre(setting))
        return O.rmatvec((omega * old.reshape(-1)).reshape(O.shape))

    def remember(self, setting: Setting, system: AbstractSystem, invert: Inverse) -> Keepsakes:
        gradient = _gradient(setting)
        natural, covector, _ = nothing(setting)
        if setting.hessian:
            natural = invert(Gram(O=system.O, v=gradient, omega=system.omega))
        if isinstance(setting.transport, Covector):
            covector = system.right_side()
        return natural, covector, gradient


def _gradient(setting: Setting) -> PyTree:
    return jax.grad(setting.problem.loss)(setting.params, setting.samples)


class L2(AbstractSobolev):
    """∫ σ²: 𝓑 is the field itself."""

    def features(self, u: Callable[[Any], Array], x: Any) -> Float[Array, "m"]:
        return jnp.ravel(u(x))


class Hs(AbstractSobolev):
    """Σ_{i ≤ s} ∫ |∇ⁱσ|², with all ordered derivatives of each order (mixed ones counted with multiplicity)."""

    s: int = eqx.field(static=True)

    def __check_init__(self):
        if isinstance(self.s, bool) or not isinstance(self.s, int) or self.s < 0:
            raise ValueError(f"Hs: s must be an integer ≥ 0 here, got {self.s!r}.")

    def features(self, u: Callable[[Any], Array], x: Any) -> Float[Array, "m"]:
        derivative, parts = u, [jnp.ravel(u(x))]
        for _ in range(self.s):
            derivative = jax.jacfwd(derivative)
            parts.append(jnp.ravel(derivative(x)))
        return jnp.concatenate(parts)
