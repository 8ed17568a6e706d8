"""The formulas as printed, kept only to show that they fail."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import angd
from angd.tree import combine


def printed_R(manifold, rho, Phi, f, beta):
    """The correction as printed: it keeps only the first of the three terms that β brings."""

    def delta(Xi):
        return manifold.cotangent(jax.grad(lambda r: manifold.pairing(Phi, manifold.G_inv(r, Xi)))(rho))

    moved = jax.jvp(lambda r: manifold.G_inv(r, f), (rho,), (manifold.G_inv(rho, Phi),))[1]
    return combine((0.5, delta(Phi)), (beta / 2, manifold.G(rho, moved)))


class PrintedMetric(angd.AbstractManifold):
    """A manifold with the printed correction in place of the right one."""

    inner: angd.MatrixManifold

    def pairing(self, Phi: Any, sigma: Any) -> Any:
        return self.inner.pairing(Phi, sigma)

    def cotangent(self, partials: Any) -> Any:
        return partials

    def G(self, rho: Any, sigma: Any) -> Any:
        return self.inner.G(rho, sigma)

    def G_inv(self, rho: Any, Phi: Any) -> Any:
        return self.inner.G_inv(rho, Phi)

    def R(self, rho: Any, Phi: Any, f: Any, beta: Any) -> Any:
        return printed_R(self.inner, rho, Phi, f, beta)

    def christoffel(self, rho: Any, a: Any, b: Any) -> Any:
        return self.inner.christoffel(rho, a, b)

    def time_to_boundary(self, rho: Any, rho_dot: Any) -> Any:
        return self.inner.time_to_boundary(rho, rho_dot)

    def check(self, rho: Any, name: str) -> None:
        self.inner.check(rho, name)


def random_metric(seed):
    """x ↦ A(x)A(x)ᵀ + I with a random trigonometric A, and a random smooth functional."""
    rng = np.random.default_rng(seed)
    shift, wave, c = (jnp.asarray(rng.normal(size=size)) for size in ((3, 3), (3, 3, 3), (3,)))

    def metric(x):
        A = jnp.sin(shift + wave @ x)
        return A @ A.T + jnp.eye(3)

    return angd.MatrixManifold(metric), lambda x: jnp.sum(jnp.cos(x + c)) + 0.5 * jnp.sum(x**2), rng.normal(size=3)


def printed_lyapunov(manifold, L, alpha, solution, minimiser):
    """E as printed, for β = 0 and γ = 1: δ = t², v with 2t, and (α − 1)/2 |log|²."""

    def value(t, rho, rho_dot):
        T = manifold.log(rho, minimiser)
        v = combine((1.0 - alpha, T), (2 * t, rho_dot))
        half = manifold.square_norm(rho, v) + (alpha - 1) * manifold.square_norm(rho, T)
        return t**2 * (L(rho) - L(minimiser)) + half / 2

    return jax.vmap(value)(solution.ts, solution.rho, solution.rho_dot)
