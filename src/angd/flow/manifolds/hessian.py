"""The Hessian metric of a convex function φ on ℝⁿ: G = ∇²φ, with third derivative T₃.

    R = −½ T₃(ρ̇, G⁻¹(Φ + βf)),      Γ(a, b) = ½ G⁻¹ T₃(a, b).

φ = Σ x log x gives Fisher–Rao on the positive orthant; a log-partition function gives an exponential family.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from angd.flow.manifolds.base import AbstractManifold
from angd.flow.manifolds.matrix import Vector, check_inside, time_inside


class HessianManifold(AbstractManifold):
    """ℝⁿ, or a part of it, with the Hessian metric G = ∇²φ.

    **Arguments:**

    - `phi`: φ, a strictly convex JAX function of x of shape (n,) to a scalar.
    - `inside`: a function of x whose values are all positive in the domain; None is all of ℝⁿ.
    """

    phi: Callable[[Vector], Any]
    inside: Callable[[Vector], Array] | None = None

    def pairing(self, Phi: Vector, sigma: Vector) -> Float[Array, ""]:
        return jnp.vdot(Phi, sigma)

    def cotangent(self, partials: Vector) -> Vector:
        return partials

    def G(self, rho: Vector, sigma: Vector) -> Vector:
        return jax.jvp(jax.grad(self.phi), (rho,), (sigma,))[1]

    def G_inv(self, rho: Vector, Phi: Vector) -> Vector:
        return jnp.linalg.solve(jax.hessian(self.phi)(rho), Phi)

    def T3(self, rho: Vector, a: Vector, b: Vector) -> Vector:
        """∇³φ(a, b, ·): how G b changes along a."""
        return jax.jvp(lambda x: self.G(x, b), (rho,), (a,))[1]

    def R(self, rho: Vector, Phi: Vector, f: Vector, beta: Any) -> Vector:
        return -0.5 * self.T3(rho, self.G_inv(rho, Phi), self.G_inv(rho, Phi + beta * f))

    def christoffel(self, rho: Vector, a: Vector, b: Vector) -> Vector:
        return 0.5 * self.G_inv(rho, self.T3(rho, a, b))

    def time_to_boundary(self, rho: Vector, rho_dot: Vector) -> Float[Array, ""]:
        return time_inside(self.inside, rho, rho_dot)

    def check(self, rho: Vector, name: str) -> None:
        check_inside(self.inside, rho, name)
        least = float(jnp.linalg.eigvalsh(jax.hessian(self.phi)(rho))[0])
        if not least > 0:
            raise ValueError(f"phi is not strictly convex at {name}: the least eigenvalue of its Hessian is {least:g}.")
