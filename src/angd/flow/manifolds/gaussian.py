"""Wasserstein-2 on Gaussians N(m, S) in d dimensions: the Bures metric, totally geodesic in the space of densities.

A cotangent vector is (b, P) with Φ(x) = bᵀ(x − m) + (x − m)ᵀ P (x − m); its velocity field is b + 2P(x − m), hence

    G⁻¹(b, P) = (b, 2(PS + SP)),      R = 2P² + β(PQ + QP) + (β/2) K,      2(KS + SK) = 4([Q, P]S − S[Q, P])

for f = (·, Q). K, the bracket of the corrected Proposition 1, is the curl part of ∇²f ∇Φ: zero when P and Q commute.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from angd.flow.manifolds.base import AbstractGeodesicManifold

Matrix = Float[Array, "d d"]


class Gaussian(NamedTuple):
    """A Gaussian, or a (co)tangent vector with the same two parts.

    **Arguments:**

    - `mean`: shape (d,).
    - `cov`: covariance, symmetric (and positive definite at a point), shape (d, d).
    """

    mean: Array
    cov: Array


class GaussianManifold(AbstractGeodesicManifold):
    """Gaussians on ℝ^d with the Wasserstein-2 metric (Bures; Takatsu 2011); points are `Gaussian`s.

    **Example:** `angd.solve_flow(angd.GaussianManifold(), angd.GaussianRelativeEntropy(target), flow, rho0)`
    """

    def pairing(self, Phi: Gaussian, sigma: Gaussian) -> Float[Array, ""]:
        return jnp.vdot(Phi.mean, sigma.mean) + jnp.vdot(Phi.cov, sigma.cov)

    def cotangent(self, partials: Gaussian) -> Gaussian:
        return Gaussian(partials.mean, _symmetric(partials.cov))

    def G(self, rho: Gaussian, sigma: Gaussian) -> Gaussian:
        return Gaussian(sigma.mean, _lyapunov(rho.cov, sigma.cov / 2))

    def G_inv(self, rho: Gaussian, Phi: Gaussian) -> Gaussian:
        return Gaussian(Phi.mean, 2 * _anticommutator(Phi.cov, rho.cov))

    def R(self, rho: Gaussian, Phi: Gaussian, f: Gaussian, beta: Any) -> Gaussian:
        P, Q, S = Phi.cov, f.cov, rho.cov
        C = Q @ P - P @ Q
        K = _lyapunov(S, 2 * (C @ S - S @ C))
        return Gaussian(jnp.zeros_like(rho.mean), 2 * P @ P + beta * _anticommutator(P, Q) + beta / 2 * K)

    def christoffel(self, rho: Gaussian, a: Gaussian, b: Gaussian) -> Gaussian:
        P, Q = self.G(rho, a).cov, self.G(rho, b).cov
        stretch = _anticommutator(_anticommutator(P, Q), rho.cov)
        return Gaussian(jnp.zeros_like(rho.mean), 2 * stretch - _anticommutator(Q, a.cov) - _anticommutator(P, b.cov))

    def time_to_boundary(self, rho: Gaussian, rho_dot: Gaussian) -> Float[Array, ""]:
        """Particles move by I + tA with A = 2P, which is singular first at t = −1/λ_min(A)."""
        least = jnp.linalg.eigvalsh(2 * self.G(rho, rho_dot).cov)[0]
        return jnp.where(least < 0, -1 / jnp.where(least < 0, least, -1.0), jnp.inf)

    def check(self, rho: Gaussian, name: str) -> None:
        d = jnp.shape(rho.mean)[0] if jnp.ndim(rho.mean) == 1 else -1
        if jnp.shape(rho.cov) != (d, d):
            raise ValueError(
                f"{name} must have a mean of shape (d,) and a covariance of shape (d, d), "
                f"got {jnp.shape(rho.mean)} and {jnp.shape(rho.cov)}."
            )
        if not bool(jnp.allclose(rho.cov, rho.cov.T)) or not bool(jnp.linalg.eigvalsh(rho.cov)[0] > 0):
            raise ValueError(f"The covariance of {name} must be symmetric and positive definite.")

    def distance(self, rho: Gaussian, target: Gaussian) -> Float[Array, ""]:
        T = self.transport(rho, target) - jnp.eye(rho.cov.shape[0])
        return jnp.sqrt(jnp.sum((target.mean - rho.mean) ** 2) + jnp.vdot(T, T @ rho.cov))

    def log(self, rho: Gaussian, target: Gaussian) -> Gaussian:
        T = self.transport(rho, target) - jnp.eye(rho.cov.shape[0])
        return Gaussian(target.mean - rho.mean, _anticommutator(T, rho.cov))

    def kappa(self, rho: Gaussian, target: Gaussian) -> Float[Array, ""]:
        """Largest stretching of the optimal map; 0 in one dimension, where every map is a gradient."""
        if rho.cov.shape[0] == 1:
            return jnp.zeros(())
        return jnp.linalg.eigvalsh(self.transport(rho, target))[-1]

    def transport(self, rho: Gaussian, target: Gaussian) -> Matrix:
        """The matrix T of the optimal map x ↦ m* + T(x − m)."""
        root, inverse_root = _roots(rho.cov)
        middle, _ = _roots(_symmetric(root @ target.cov @ root))
        return _symmetric(inverse_root @ middle @ inverse_root)


def _symmetric(A: Array) -> Matrix:
    return (A + A.T) / 2


def _anticommutator(A: Array, B: Array) -> Matrix:
    return A @ B + B @ A


def _lyapunov(S: Array, C: Array) -> Matrix:
    """X with XS + SX = C (dense; differentiable also where eigenvalues of S coincide)."""
    eye = jnp.eye(S.shape[0], dtype=S.dtype)
    return jnp.linalg.solve(jnp.kron(S, eye) + jnp.kron(eye, S), C.reshape(-1)).reshape(S.shape)


def _roots(S: Array) -> tuple[Matrix, Matrix]:
    """S^{1/2} and S^{-1/2}."""
    values, vectors = jnp.linalg.eigh(S)
    root = jnp.sqrt(values)[None, :]
    return (vectors * root) @ vectors.T, (vectors / root) @ vectors.T
