"""The ARG flow as a vector field, twice: in cotangent variables (ρ, Ψ) and in covariant variables (x, ẋ).

The gradient flow, of first order already, needs ρ alone.
"""

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from angd.flow.charts import AbstractChart, chart_of
from angd.flow.coefficients import ARGFlow, GradientFlow
from angd.flow.manifolds.base import AbstractManifold, Functional, Point, Tangent
from angd.tree import combine, zeros_like


class AbstractForm(eqx.Module):
    """A first-order system whose solution is the flow."""

    manifold: eqx.AbstractVar[AbstractManifold]
    functional: eqx.AbstractVar[Functional]
    flow: eqx.AbstractVar[Any]  # an ARGFlow, or a GradientFlow

    @abc.abstractmethod
    def start(self, t0: Any, rho0: Point) -> Any:
        """The state at rest in ρ₀."""

    @abc.abstractmethod
    def field(self, t: Any, y: Any) -> Any:
        """dy/dt."""

    @abc.abstractmethod
    def read(self, t: Any, y: Any) -> tuple[Point, Tangent]:
        """(ρ, ρ̇) of a state."""

    @abc.abstractmethod
    def time_to_boundary(self, t: Any, y: Any) -> Array:
        """How long until the integration must stop because the state becomes singular (∞ if never)."""

    @abc.abstractmethod
    def margin(self, y: Any) -> Array:
        """Numbers that are all positive while the state lies on the manifold proper."""


class CotangentForm(AbstractForm):
    """ρ̇ = G⁻¹Φ, Φ = Ψ − βf, Ψ̇ = −αΨ − R − (γ − β̇ − αβ) f, from Ψ = βf."""

    manifold: AbstractManifold
    functional: Functional
    flow: ARGFlow

    def start(self, t0: Any, rho0: Point) -> Any:
        return rho0, combine((self.flow.at(t0).beta, self.manifold.variation(self.functional, rho0)))

    def field(self, t: Any, y: Any) -> Any:
        (rho, Psi), now = y, self.flow.at(t)
        f = self.manifold.variation(self.functional, rho)
        Phi = combine((1.0, Psi), (-now.beta, f))
        R = self.manifold.R(rho, Phi, f, now.beta)
        gain = now.gamma - now.beta_dot - now.alpha * now.beta
        return self.manifold.G_inv(rho, Phi), combine((-now.alpha, Psi), (-1.0, R), (-gain, f))

    def read(self, t: Any, y: Any) -> tuple[Point, Tangent]:
        rho, Psi = y
        f = self.manifold.variation(self.functional, rho)
        return rho, self.manifold.G_inv(rho, combine((1.0, Psi), (-self.flow.at(t).beta, f)))

    def time_to_boundary(self, t: Any, y: Any) -> Array:
        return self.manifold.time_to_boundary(*self.read(t, y))

    def margin(self, y: Any) -> Array:
        return jnp.full((1,), jnp.inf)


class CovariantForm(AbstractForm):
    """ẍ = −Γ(ẋ, ẋ + βw) − αẋ − β Dw·ẋ − γw, w = grad L, in the coordinates of a chart."""

    manifold: AbstractManifold
    functional: Functional
    flow: ARGFlow

    @property
    def chart(self) -> AbstractChart:
        return chart_of(self.manifold)

    def start(self, t0: Any, rho0: Point) -> Any:
        x = self.chart.to(rho0)
        return x, zeros_like(x)

    def field(self, t: Any, y: Any) -> Any:
        (x, x_dot), now = y, self.flow.at(t)
        w, w_dot = jax.jvp(lambda z: self.chart.gradient(self.functional, z), (x,), (x_dot,))
        bend = self.chart.christoffel(x, x_dot, combine((1.0, x_dot), (now.beta, w)))
        return x_dot, combine((-1.0, bend), (-now.alpha, x_dot), (-now.beta, w_dot), (-now.gamma, w))

    def read(self, t: Any, y: Any) -> tuple[Point, Tangent]:
        x, x_dot = y
        return self.chart.back(x), self.chart.back_velocity(x, x_dot)

    def time_to_boundary(self, t: Any, y: Any) -> Array:
        return self.chart.time_to_boundary(*y)

    def margin(self, y: Any) -> Array:
        return self.chart.margin(y[0])


class GradientForm(AbstractForm):
    """ρ̇ = −γ grad L."""

    manifold: AbstractManifold
    functional: Functional
    flow: GradientFlow

    def start(self, t0: Any, rho0: Point) -> Any:
        return rho0

    def field(self, t: Any, y: Any) -> Any:
        return combine((-self.flow.gamma(jnp.nan, t), self.manifold.gradient(self.functional, y)))

    def read(self, t: Any, y: Any) -> tuple[Point, Tangent]:
        return y, self.field(t, y)

    def time_to_boundary(self, t: Any, y: Any) -> Array:
        return self.manifold.time_to_boundary(*self.read(t, y))

    def margin(self, y: Any) -> Array:
        return jnp.full((1,), jnp.inf)
