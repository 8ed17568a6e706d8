"""The corrected Proposition 1 (E1, E2): equal to the covariant equation; the printed correction is not."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array
from printed import PrintedMetric, printed_R, random_metric

import angd


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_first_order_system_equals_the_christoffel_equation_on_a_random_metric(seed):
    manifold, L, x0 = random_metric(seed)
    flow = angd.ARGFlow(alpha=angd.OverTime(3.0), beta=0.6)

    def solve(of, **kwargs):
        return angd.solve_flow(of, L, flow, jnp.asarray(x0), 1.0, 4.0, rtol=1e-12, save=11, **kwargs).rho

    covariant = solve(manifold, form="covariant")
    assert np.abs(solve(manifold) - covariant).max() < 1e-10
    assert np.abs(solve(PrintedMetric(manifold)) - covariant).max() > 1e-3


class CircleWasserstein(angd.AbstractManifold):
    """Densities on the circle with the Wasserstein-2 metric, G⁻¹Φ = −(ρΦ′)′, on a spectral grid."""

    n: int

    @property
    def D(self) -> Any:
        wave = np.fft.fftfreq(self.n, 1 / self.n)
        return np.fft.ifft(1j * wave[:, None] * np.fft.fft(np.eye(self.n), axis=0), axis=0).real

    def matrix(self, rho: Any) -> Any:
        return -self.D @ (rho[:, None] * self.D)

    def pairing(self, Phi: Any, sigma: Any) -> Any:
        return jnp.mean(Phi * sigma)

    def cotangent(self, partials: Any) -> Any:
        return partials * self.n

    def G(self, rho: Any, sigma: Any) -> Any:
        ones = jnp.ones((self.n, self.n)) / self.n
        return jnp.linalg.solve(self.matrix(rho) + ones, sigma - jnp.mean(sigma))

    def G_inv(self, rho: Any, Phi: Any) -> Any:
        return self.matrix(rho) @ Phi

    def R(self, rho: Any, Phi: Any, f: Any, beta: Any) -> Any:
        """½|Φ′|² + βπ with π′ = the projection of f″Φ′ on gradients: on the circle u ↦ u − (∫u / ∫ρ⁻¹)/ρ."""
        slope, u = self.D @ Phi, (self.D @ self.D @ f) * (self.D @ Phi)
        pi_slope = u - jnp.mean(u) / jnp.mean(1 / rho) / rho
        return 0.5 * slope**2 + beta * self.integral(pi_slope)

    def integral(self, u: Array) -> Array:
        """The zero-mean antiderivative."""
        wave = 1j * np.fft.fftfreq(self.n, 1 / self.n)
        inverse = np.divide(1, wave, out=np.zeros_like(wave), where=wave != 0)
        return jnp.real(jnp.fft.ifft(inverse * jnp.fft.fft(u)))

    def christoffel(self, rho: Any, a: Any, b: Any) -> Any:
        raise NotImplementedError

    def time_to_boundary(self, rho: Any, rho_dot: Any) -> Any:
        return jnp.full((), jnp.inf)

    def check(self, rho: Any, name: str) -> None:
        return None


def test_wasserstein_correction_on_the_circle_is_the_projected_hessian_term():
    """E2: ½|∇Φ|² + βπ, ∇π = P(∇²f ∇Φ), is what Proposition 1 gives; the print's single term is not."""
    manifold = CircleWasserstein(65)
    x = 2 * np.pi * np.arange(65) / 65
    rho = jnp.asarray(1 + 0.3 * np.cos(x) + 0.1 * np.sin(2 * x))
    Phi, f = jnp.asarray(np.sin(x) - 0.4 * np.cos(2 * x)), jnp.asarray(0.8 * np.cos(x) + 0.5 * np.sin(2 * x))

    def zero_mean(u):
        return u - jnp.mean(u)

    general = zero_mean(angd.proposition_1(manifold, rho, Phi, f, 1.0))
    assert np.abs(zero_mean(manifold.R(rho, Phi, f, 1.0)) - general).max() < 1e-9
    assert np.abs(zero_mean(printed_R(manifold, rho, Phi, f, 1.0)) - general).max() > 0.2


def test_printed_correction_is_right_where_the_derivative_of_the_metric_is_totally_symmetric():
    """E1 says so for Fisher–Rao and Hessian metrics, and that it is wrong for Gaussians in the Wasserstein metric."""
    rng = np.random.default_rng(5)
    simplex = angd.FisherRaoManifold.simplex(4)
    rho = simplex.normalise(jnp.asarray(rng.uniform(1, 2, 4)))
    Phi, f = jnp.asarray(rng.normal(size=4)), jnp.asarray(rng.normal(size=4))
    difference = printed_R(simplex, rho, Phi, f, 0.7) - simplex.R(rho, Phi, f, 0.7)
    assert np.ptp(difference) < 1e-12

    def symmetric():
        A = rng.normal(size=(2, 2))
        return jnp.asarray(A + A.T)

    bures, point = angd.GaussianManifold(), angd.Gaussian(jnp.zeros(2), jnp.array([[1.0, 0.4], [0.4, 2.0]]))
    P, Q = angd.Gaussian(jnp.zeros(2), symmetric()), angd.Gaussian(jnp.zeros(2), symmetric())
    gap = printed_R(bures, point, P, Q, 0.7).cov - bures.R(point, P, Q, 0.7).cov
    assert np.abs(gap).max() > 0.1
