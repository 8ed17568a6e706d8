"""Any Riemannian metric on ℝⁿ, given as a function x ↦ G(x): for tests, for teaching, for a metric of one's own.

R comes from Proposition 1 (derivatives of G⁻¹), Γ from the classical formula (derivatives of G): two routes.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from angd.flow.manifolds.base import AbstractManifold, proposition_1, time_until_zero

Vector = Float[Array, "n"]


class MatrixManifold(AbstractManifold):
    """ℝⁿ, or a part of it, with any Riemannian metric, given as a matrix at every point.

    **Arguments:**

    - `metric`: a JAX function of x of shape (n,) to a positive definite matrix (n, n).
    - `inside`: a function of x whose values are all positive in the domain; None is all of ℝⁿ.

    **Example:** `angd.MatrixManifold(lambda x: jnp.eye(2) / x[1] ** 2, lambda x: x[1:])`, hyperbolic
    """

    metric: Callable[[Vector], Float[Array, "n n"]]
    inside: Callable[[Vector], Array] | None = None

    def pairing(self, Phi: Vector, sigma: Vector) -> Float[Array, ""]:
        return jnp.vdot(Phi, sigma)

    def cotangent(self, partials: Vector) -> Vector:
        return partials

    def G(self, rho: Vector, sigma: Vector) -> Vector:
        return self.metric(rho) @ sigma

    def G_inv(self, rho: Vector, Phi: Vector) -> Vector:
        return jnp.linalg.solve(self.metric(rho), Phi)

    def R(self, rho: Vector, Phi: Vector, f: Vector, beta: Any) -> Vector:
        return proposition_1(self, rho, Phi, f, beta)

    def christoffel(self, rho: Vector, a: Vector, b: Vector) -> Vector:
        dG = jax.jacfwd(self.metric)(rho)  # dG[i, j, k] = ∂ₖ G_ij
        lowered = (
            jnp.einsum("kji,i,j->k", dG, a, b) + jnp.einsum("kij,i,j->k", dG, a, b) - jnp.einsum("ijk,i,j->k", dG, a, b)
        )
        return self.G_inv(rho, 0.5 * lowered)

    def time_to_boundary(self, rho: Vector, rho_dot: Vector) -> Float[Array, ""]:
        return time_inside(self.inside, rho, rho_dot)

    def check(self, rho: Vector, name: str) -> None:
        check_inside(self.inside, rho, name)
        least = float(jnp.linalg.eigvalsh(self.metric(rho))[0])
        if not least > 0:
            raise ValueError(f"The metric is not positive definite at {name}: its least eigenvalue is {least:g}.")


def time_inside(inside: Callable[[Array], Array] | None, rho: Array, rho_dot: Array) -> Float[Array, ""]:
    """Time until the first value of `inside` reaches zero at constant velocity."""
    if inside is None:
        return jnp.full((), jnp.inf)
    margin, margin_dot = jax.jvp(inside, (rho,), (rho_dot,))
    return time_until_zero(margin, margin_dot)


def check_inside(inside: Callable[[Array], Array] | None, rho: Array, name: str) -> None:
    """Refuse a point that is not a vector, or outside the domain."""
    if jnp.ndim(rho) != 1:
        raise ValueError(f"{name} must be a vector, got shape {jnp.shape(rho)}.")
    if inside is not None and not bool(jnp.all(inside(rho) > 0)):
        raise ValueError(f"{name} lies outside the manifold: every value of `inside` must be positive there.")
