"""Wasserstein-2 flows of Gaussians (Bures), weighted particles and quantile functions against independent ODEs."""

from functools import cache

import jax.numpy as jnp
import numpy as np
import pytest
from reference import gaussian_line
from schedules import Decaying

import angd

SIGMA, M0, S0, SPAN = 1.5, 2.0, 0.6, (1.0, 5.0)
BETAS = {
    "0": (Decaying(0.0), (0.28837605, 1.64340088)),
    "0.3": (Decaying(0.3), (0.40108004, 1.55956328)),
    "0.3/(1+t/2)": (Decaying(0.3, 0.5), (0.33417321, 1.61049292)),
}
every_beta = pytest.mark.parametrize("beta", ["0", pytest.param("0.3", marks=pytest.mark.slow), "0.3/(1+t/2)"])


def flow_of(beta):
    return angd.ARGFlow(alpha=angd.OverTime(3.0), beta=BETAS[beta][0])


def judge(beta):
    """(m, s)(5), from scipy; it must also be the figure that was known beforehand."""
    schedule, listed = BETAS[beta]
    found = gaussian_line(*SPAN, M0, S0, SIGMA, lambda t: float(schedule(0, t)))
    assert np.allclose(found, listed, atol=2e-8)
    return found


@every_beta
@pytest.mark.parametrize("form", ["cotangent", "covariant"])
def test_gaussian_on_the_line_follows_the_equations_of_mean_and_width(beta, form):
    L = angd.GaussianRelativeEntropy(angd.Gaussian(jnp.zeros(1), jnp.full((1, 1), SIGMA**2)))
    rho0 = angd.Gaussian(jnp.array([M0]), jnp.array([[S0**2]]))
    end = angd.solve_flow(angd.GaussianManifold(), L, flow_of(beta), rho0, *SPAN, rtol=1e-11, save=3, form=form).rho
    assert np.allclose([end.mean[-1, 0], np.sqrt(end.cov[-1, 0, 0])], judge(beta), atol=1e-9)


def moment_entropy(omega):
    """KL to N(0, σ²) of the Gaussian with the particles' first two moments."""

    def functional(x):
        mean = jnp.sum(omega * x)
        variance = jnp.sum(omega * (x - mean) ** 2)
        return 0.5 * ((mean**2 + variance) / SIGMA**2 - 1 - jnp.log(variance / SIGMA**2))

    return functional


@cache
def moment_problem():
    """Gauss–Hermite nodes and weights, the entropy of their moments, and the same for particles."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(12)
    omega = jnp.asarray(weights / weights.sum())
    L = moment_entropy(omega)
    return nodes, omega, L, lambda x: L(x[:, 0])


@every_beta
def test_weighted_particles_and_quantiles_carry_the_gaussian_exactly(beta):
    nodes, omega, L, L_of_particles = moment_problem()
    X0 = jnp.asarray(M0 + S0 * nodes)
    quantiles = angd.solve_flow(angd.QuantileManifold(omega), L, flow_of(beta), X0, *SPAN, rtol=1e-11, save=3)
    particles = angd.solve_flow(
        angd.ParticleManifold(omega), L_of_particles, flow_of(beta), X0[:, None], *SPAN, rtol=1e-11, save=3
    )
    expected = judge(beta)[0] + judge(beta)[1] * nodes
    assert np.allclose(quantiles.rho[-1], expected, atol=1e-8)
    assert np.allclose(particles.rho[-1, :, 0], expected, atol=1e-8)


Q = jnp.array([[2.0, 0.6], [0.6, 0.7]])
S_START = jnp.array([[0.5, -0.3], [-0.3, 1.6]])
S_END = {0.0: (0.67244599, -0.59247626, 2.00771189), 0.4: (0.67696641, -0.58443809, 1.93587318)}


def vech(S):
    return jnp.array([S[0, 0], S[0, 1], S[1, 1]])


def unvech(x):
    return jnp.array([[x[0], x[1]], [x[1], x[2]]])


def bures_matrix(x):
    """The Bures metric on (S₁₁, S₁₂, S₂₂) from its definition: g(Eᵢ, Eⱼ) = ½ tr(Aᵢ Eⱼ) with AᵢS + SAᵢ = Eᵢ."""
    S = unvech(x)
    operator = jnp.kron(S, jnp.eye(2)) + jnp.kron(jnp.eye(2), S)
    basis = jnp.stack([unvech(e) for e in jnp.eye(3)])
    A = jnp.stack([jnp.linalg.solve(operator, E.reshape(-1)).reshape(2, 2) for E in basis])
    return 0.5 * jnp.einsum("iab,jab->ij", A, basis)


BURES_TARGET = angd.Gaussian(jnp.zeros(2), jnp.linalg.inv(Q))
BURES_MATRIX = angd.MatrixManifold(bures_matrix)


def bures_loss(x):
    return angd.GaussianRelativeEntropy(BURES_TARGET)(angd.Gaussian(jnp.zeros(2), unvech(x)))


@pytest.mark.parametrize("beta", [pytest.param(0.0, marks=pytest.mark.slow), 0.4])
def test_bures_flow_in_two_dimensions_equals_brute_force_christoffel_symbols(beta):
    flow = angd.ARGFlow(alpha=angd.OverTime(3.0), beta=beta)
    L, rho0 = angd.GaussianRelativeEntropy(BURES_TARGET), angd.Gaussian(jnp.zeros(2), S_START)
    bures = angd.solve_flow(angd.GaussianManifold(), L, flow, rho0, *SPAN, rtol=1e-11, save=3)
    brute = angd.solve_flow(BURES_MATRIX, bures_loss, flow, vech(S_START), *SPAN, rtol=1e-11, save=3, form="covariant")
    assert np.allclose(vech(bures.rho.cov[-1]), S_END[beta], atol=1e-8)
    assert np.allclose(vech(bures.rho.cov[-1]), brute.rho[-1], atol=1e-10)


def test_quantiles_of_a_free_energy_relax_to_the_gibbs_density():
    """Potential x²/2 minus entropy: the minimiser is N(0, 1), and the discrete minimum is found by the flow."""
    n = 60
    X0 = jnp.asarray(np.linspace(-0.5, 0.7, n))
    L = angd.FreeEnergy(lambda x: x**2 / 2)
    end = angd.solve_flow(
        angd.QuantileManifold.midpoints(n), L, angd.ARGFlow(alpha=2.0), X0, 0.0, 30.0, save=3, rtol=1e-8
    )
    assert end.result == angd.RESULTS.successful
    assert abs(float(jnp.mean(end.rho[-1]))) < 1e-6
    assert np.isclose(np.std(end.rho[-1]), 1.0, atol=0.03)


def test_particles_that_attract_in_a_well_gather_where_the_forces_balance():
    """V = |x|²/2 and W = |x|²/2: the mean decays with frequency 1, deviations from it with frequency √2."""
    rng = np.random.default_rng(3)
    omega = rng.uniform(0.5, 1.5, 5)
    omega = omega / omega.sum()
    x0 = jnp.asarray(rng.normal(size=(5, 2)))

    def half_square(z):
        return jnp.sum(z**2, axis=-1) / 2

    L = angd.InteractionEnergy(jnp.asarray(omega), half_square, half_square)
    end = angd.solve_flow(angd.ParticleManifold(omega), L, angd.ARGFlow(), x0, 0.0, 1.0, rtol=1e-11, save=2).rho[-1]
    mean = np.sum(omega[:, None] * np.asarray(x0), axis=0, keepdims=True)
    assert np.allclose(end, mean * np.cos(1.0) + (np.asarray(x0) - mean) * np.cos(np.sqrt(2.0)), atol=1e-9)
