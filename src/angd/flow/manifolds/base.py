"""What a manifold must tell: its metric G, the correction R, and geodesics where they are known in closed form.

Two routes lead to the same flow. The *cotangent* form needs `G_inv` and `R`,

    ρ̇ = G⁻¹Φ,   Φ = Ψ − βf,   Ψ̇ = −αΨ − R − (γ − β̇ − αβ) f,

the *covariant* form needs the Christoffel map Γ. They are derived independently, so each checks the other.
Points, tangent vectors σ and cotangent vectors Φ are pytrees of one structure; `pairing` is ∫ Φ σ.
"""

import abc
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from angd.tree import combine

Point = Any
Tangent = Any
Cotangent = Any
Functional = Callable[[Point], Any]
Scalar = Float[Array, ""]


class AbstractManifold(eqx.Module):
    """An exact finite model of a Riemannian manifold, for `solve_flow`.

    A subclass defines `pairing`, `cotangent`, `G`, `G_inv`, `R`, `christoffel`, `time_to_boundary` and
    `check`; `proposition_1` gives R for any metric. `MatrixManifold` is a shorter way to one's own.
    """

    @abc.abstractmethod
    def pairing(self, Phi: Cotangent, sigma: Tangent) -> Scalar:
        """∫ Φ σ."""

    @abc.abstractmethod
    def cotangent(self, partials: Any) -> Cotangent:
        """The cotangent vector whose pairing with σ is Σ partialsᵢ σᵢ (divides by quadrature weights)."""

    @abc.abstractmethod
    def G(self, rho: Point, sigma: Tangent) -> Cotangent:
        """Metric tensor: g(σ₁, σ₂) = ∫ σ₁ G σ₂."""

    @abc.abstractmethod
    def G_inv(self, rho: Point, Phi: Cotangent) -> Tangent:
        """Inverse metric tensor, Φ ↦ G⁻¹Φ."""

    @abc.abstractmethod
    def R(self, rho: Point, Phi: Cotangent, f: Cotangent, beta: Any) -> Cotangent:
        """Riemannian correction of the corrected Proposition 1."""

    @abc.abstractmethod
    def christoffel(self, rho: Point, a: Tangent, b: Tangent) -> Tangent:
        """Γ(a, b), so that ∇ₐ b = D b · a + Γ(a, b)."""

    @abc.abstractmethod
    def time_to_boundary(self, rho: Point, rho_dot: Tangent) -> Scalar:
        """How long the present velocity can be kept before the point leaves the manifold (∞ if it never does)."""

    @abc.abstractmethod
    def check(self, rho: Point, name: str) -> None:
        """Refuse, in one sentence, what is not a point of this manifold."""

    def variation(self, functional: Functional, rho: Point) -> Cotangent:
        """f = δL/δρ."""
        return self.cotangent(jax.grad(functional)(rho))

    def gradient(self, functional: Functional, rho: Point) -> Tangent:
        """grad L = G⁻¹f."""
        return self.G_inv(rho, self.variation(functional, rho))

    def square_norm(self, rho: Point, sigma: Tangent) -> Scalar:
        """g(σ, σ)."""
        return self.pairing(self.G(rho, sigma), sigma)


class AbstractGeodesicManifold(AbstractManifold):
    """A manifold whose distance and logarithm have closed forms: the theorem's Lyapunov function can be evaluated."""

    @abc.abstractmethod
    def distance(self, rho: Point, target: Point) -> Scalar:
        """Geodesic distance."""

    @abc.abstractmethod
    def log(self, rho: Point, target: Point) -> Tangent:
        """The initial velocity at ρ of the geodesic that reaches `target` at time 1."""

    @abc.abstractmethod
    def kappa(self, rho: Point, target: Point) -> Scalar:
        """κ ≥ 0 of the theorem's condition (iii): with e = −∇_v log − v, g(v + βw, e) ≤ κβ²‖w‖²/4 for all v, w.

        0 on flat manifolds. Negatively curved ones have no such κ, and should not derive from this class.
        """


def proposition_1(manifold: AbstractManifold, rho: Point, Phi: Cotangent, f: Cotangent, beta: Any) -> Cotangent:
    """The Riemannian correction R for any metric, by automatic differentiation of G⁻¹ alone:

        R = ½ δ∫ΦG⁻¹Φ + (β/2) { G[(∂G⁻¹·G⁻¹Φ) f − (∂G⁻¹·G⁻¹f) Φ] + δ∫ΦG⁻¹f }.

    **Arguments:**

    - `manifold`: with `G`, `G_inv`, `pairing` and `cotangent`.
    - `rho`: a point of it.
    - `Phi`: the cotangent vector Φ, in the structure of the point.
    - `f`: δL/δρ, in the same structure.
    - `beta`: β, a scalar.

    **Returns:** R, a cotangent vector.
    """

    def delta_pairing(Xi):
        return manifold.cotangent(jax.grad(lambda r: manifold.pairing(Phi, manifold.G_inv(r, Xi)))(rho))

    def delta_G_inv(direction, Xi):
        return jax.jvp(lambda r: manifold.G_inv(r, Xi), (rho,), (direction,))[1]

    v, w = manifold.G_inv(rho, Phi), manifold.G_inv(rho, f)
    bracket = manifold.G(rho, combine((1.0, delta_G_inv(v, f)), (-1.0, delta_G_inv(w, Phi))))
    return combine((0.5, delta_pairing(Phi)), (beta / 2, bracket), (beta / 2, delta_pairing(f)))


def time_until_zero(margin: Array, margin_dot: Array) -> Scalar:
    """When the first of several positive margins, changing at constant speed, reaches zero."""
    falling = margin_dot < 0
    return jnp.min(jnp.where(falling, margin / jnp.where(falling, -margin_dot, 1.0), jnp.inf))
