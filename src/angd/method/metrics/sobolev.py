"""L² and H^s with s ≥ 0: the metric ∫ 𝓑(σ)·𝓑(σ), where only the gradient ∂_θ L of the loss is known.

With c = μ d_{k−1} + β_{k−1} n_{k−1}, n = M⁻¹∂L, and the rows ∂_θ 𝓑(u)(x_i) of the current step,

    v_k = Σ_i ω_i (∂_θ 𝓑(u_k)(x_i))ᵀ ⟨∂_θ 𝓑(u_{k−1})(x_i), c⟩ − (β_{k−1} + h_k γ_k) ∂_θ L.
"""

import abc
from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from angd.method.metrics.base import AbstractMetric, Draft, Invert, Setting, Taken, gram_like, one_measure, require
from angd.method.metrics.pointwise import derivatives
from angd.method.samples import Samples
from angd.method.system import Gram, row_weights
from angd.method.transport import Covector
from angd.tree import combine, scale, where, zeros_like


class Kept(eqx.Module):
    """`natural` is M⁻¹∂L, for Hessian damping; `covector` (v) and `gradient` serve the Covector transport."""

    natural: PyTree
    covector: PyTree
    gradient: PyTree


class AbstractSobolev(AbstractMetric):
    """A metric of Sobolev type: a subclass says what 𝓑(u)(x) is, at one point.

    The problem has `field(params, x)` and `loss(params, samples)`. Where `samples` is a dictionary (each term of the
    loss has its own), those called `on` carry the metric.
    """

    on: eqx.AbstractVar[str]
    rows: ClassVar[bool] = False
    covectors: ClassVar[bool] = True

    @abc.abstractmethod
    def features(self, u: Callable[[Any], Array], x: Any) -> Float[Array, "m"]:
        """The vector 𝓑(u)(x) whose squared length the metric integrates."""

    def pointwise(self, problem: Any) -> Callable[..., Array]:
        """(θ, x) ↦ 𝓑(u_θ)(x)."""
        return lambda params, x: self.features(lambda y: problem.field(params, y), x)

    def start(self, problem: Any, params: PyTree, samples: Any) -> Kept:
        zero = zeros_like(params)
        return Kept(zero, zero, zero)

    def centre(self, setting: Setting) -> PyTree:
        move = scale(setting.c.mu, setting.memory.d)
        if not setting.hessian:
            return move
        return combine((1.0, move), (setting.beta_prev, setting.memory.kept.natural))

    def draft(self, setting: Setting) -> Draft:
        require(setting.problem, self, "field", "loss")
        samples = one_measure(setting.samples, self.on, self)
        O = setting.jacobian(self.pointwise(setting.problem), samples.x)
        omega = row_weights(samples.omega, O)
        loss, gradient = jax.value_and_grad(setting.problem.loss)(setting.params, setting.samples)
        carried = self._carried(setting, samples, O, omega)
        gain = setting.beta_prev + setting.kick
        system = Gram(O=O, v=combine((1.0, carried), (-gain, gradient)), omega=omega)
        return Draft(system, gram_like(system, scale(-setting.kick, gradient)), gradient, loss)

    def _carried(self, setting: Setting, samples: Samples, O: Any, omega: Array) -> PyTree:
        """The momentum of the step before, as a covector of this one."""
        kept: Kept = setting.memory.kept
        if isinstance(setting.transport, Covector):
            return combine((setting.c.mu, kept.covector), (setting.beta_prev, kept.gradient))
        old = setting.carried(self.pointwise(setting.problem), samples.x, self.centre(setting))
        return O.rmatvec((omega * old.reshape(-1)).reshape(O.shape))

    def remember(self, setting: Setting, draft: Draft, taken: Taken, invert: Invert) -> Kept:
        kept: Kept = setting.memory.kept
        natural = invert(gram_like(draft.system, draft.gradient)) if setting.hessian else kept.natural
        if not isinstance(setting.transport, Covector):
            return Kept(natural, kept.covector, kept.gradient)
        covector = where(taken.restarted, draft.at_rest.right_side(), draft.system.right_side())
        return Kept(natural, covector, draft.gradient)


class L2(AbstractSobolev):
    """∫ σ²: 𝓑 is the field itself. `L2Pointwise` is for problems that know the variation at a point."""

    on: str = eqx.field(static=True, default="interior")

    def features(self, u: Callable[[Any], Array], x: Any) -> Float[Array, "m"]:
        return jnp.ravel(u(x))


class PositiveHs(AbstractSobolev):
    """Σ_{i ≤ s} ∫ |∇ⁱσ|², with all ordered derivatives of each order (mixed ones counted with multiplicity)."""

    s: int = eqx.field(static=True)
    on: str = eqx.field(static=True, default="interior")

    def features(self, u: Callable[[Any], Array], x: Any) -> Float[Array, "m"]:
        return derivatives(u, x, self.s)
