"""The gradient flow ρ̇ = −γ grad L against closed forms, through the same `solve_flow`."""

import jax.numpy as jnp
import numpy as np
import pytest

import angd


class Fading:
    """γ = 1/(1 + t), whose integral is log(1 + t)."""

    def __call__(self, k, t):
        return 1 / (1 + t)


GAINS = pytest.mark.parametrize(("gamma", "passed"), [(1.0, 0.8), (Fading(), np.log(1.8))], ids=["constant", "fading"])


def end(manifold, functional, rho0, gamma, **kwargs):
    """ρ(0.8) from t = 0; what has passed of the plain flow by then is ∫γ."""
    run = angd.solve_flow(manifold, functional, angd.GradientFlow(gamma), rho0, t1=0.8, rtol=1e-11, save=3, **kwargs)
    assert run.result == angd.RESULTS.successful
    return run


@GAINS
def test_wasserstein_gradient_flow_of_the_entropy_is_the_heat_equation(gamma, passed):
    manifold = angd.WassersteinManifold(41)
    (x,) = manifold.grid()
    rho0 = jnp.asarray(1 + 0.3 * np.cos(x - 0.2) + 0.2 * np.sin(2 * x))
    run = end(manifold, angd.RelativeEntropy(manifold, jnp.ones(41)), rho0, gamma, minimiser=jnp.ones(41))
    heat = 1 + 0.3 * np.exp(-passed) * np.cos(x - 0.2) + 0.2 * np.exp(-4 * passed) * np.sin(2 * x)
    assert np.abs(run.rho[-1] - heat).max() < 1e-9
    assert run.certificate is None


def test_heat_on_the_torus_loses_each_mode_at_its_rate():
    manifold = angd.WassersteinManifold((17, 17))
    x, y = manifold.grid()
    rho0 = jnp.asarray(1 + 0.2 * np.cos(x + y) + 0.1 * np.sin(2 * y))
    run = end(manifold, angd.RelativeEntropy(manifold, jnp.ones((17, 17))), rho0, 1.0)
    heat = 1 + 0.2 * np.exp(-1.6) * np.cos(x + y) + 0.1 * np.exp(-3.2) * np.sin(2 * y)
    assert np.abs(run.rho[-1] - heat).max() < 1e-8


def half_square(u):
    return jnp.mean(u**2) / 2


@GAINS
@pytest.mark.parametrize(("s", "metric"), [(1, 6.0), (2, 31.0), (-1, 1 / 6)])
def test_sobolev_modes_decay_with_the_inverse_of_the_metric(s, metric, gamma, passed):
    """On the mode ξ = (1, 2), |ξ|² = 5: the rate is 1/6, 1/31 and 6."""
    manifold = angd.SobolevManifold(s, (5, 7))
    x, y = manifold.grid()
    mode = jnp.asarray(np.cos(x + 2 * y))
    run = end(manifold, half_square, mode, gamma)
    assert np.allclose(run.rho[-1], np.exp(-passed / metric) * mode, atol=1e-10)
    assert np.allclose(run.rho_dot[0], -mode / metric, atol=1e-10)


@GAINS
def test_fisher_rao_gradient_flow_of_a_linear_energy_is_the_replicator_equation(gamma, passed):
    """ρ ∝ ρ₀ exp(−V ∫γ)."""
    manifold = angd.FisherRaoManifold(jnp.array([0.5, 1.0, 0.7, 0.8]))
    V, rho0 = jnp.array([0.3, -1.0, 2.0, 0.5]), manifold.normalise(jnp.array([1.0, 0.2, 0.8, 0.4]))
    run = end(manifold, angd.MeanEnergy(manifold, V), rho0, gamma)
    assert np.allclose(run.rho[-1], manifold.normalise(rho0 * jnp.exp(-passed * V)), atol=1e-10)
    assert np.all(np.diff(run.L) < 0)


def test_gaussians_relax_to_their_target_like_an_ornstein_uhlenbeck_process():
    """KL to N(0, σ²) in Wasserstein-2: the mean decays like exp(−t/σ²), the variance twice as fast."""
    target = angd.Gaussian(jnp.zeros(1), jnp.full((1, 1), 2.0))
    rho0 = angd.Gaussian(jnp.array([1.5]), jnp.full((1, 1), 0.3))
    run = end(angd.GaussianManifold(), angd.GaussianRelativeEntropy(target), rho0, 1.0, minimiser=target)
    assert np.isclose(run.rho.mean[-1, 0], 1.5 * np.exp(-0.4), atol=1e-10)
    assert np.isclose(run.rho.cov[-1, 0, 0], 2 + (0.3 - 2) * np.exp(-0.8), atol=1e-10)
    assert "theorem" not in run.verdict()


def test_much_friction_makes_the_accelerated_flow_the_gradient_flow():
    """`ARGFlow.gradient(rate)` follows it within O(rate)."""
    manifold, mode = angd.SobolevManifold(0, 3), jnp.array([1.0, -0.5, 0.2])
    plain = end(manifold, half_square, mode, 1.0).rho[-1]
    errors = [
        np.abs(
            angd.solve_flow(manifold, half_square, angd.ARGFlow.gradient(r), mode, 0.0, 0.8, save=2).rho[-1] - plain
        ).max()
        for r in (0.02, 0.01)
    ]
    assert np.isclose(errors[0] / errors[1], 2.0, rtol=0.1)
