"""H^s flows on the circle against a numpy integration, and the two forms against each other."""

import jax.numpy as jnp
import numpy as np
import pytest
from reference import SobolevCircle, integrate
from schedules import Decaying

import angd
from angd.flow.schedules import OnePlusOverTime

EXPECTED = {
    0: (-0.417930, (1.0674563, 1.1054163, 1.0476676)),
    1: (-0.354022, (0.8169992, 1.0264339, 0.9857916)),
    2: (-0.250849, (0.5878026, 0.7943579, 0.8444421)),
    -1: (-0.431270, (1.0060516, 1.0494334, 0.9606967)),
}


def functional(rho):
    slope = jnp.real(jnp.fft.ifft(1j * SobolevCircle.wave * jnp.fft.fft(rho)))
    return jnp.mean(0.025 * slope**2 + rho**4 / 4 - SobolevCircle.F * rho)


@pytest.mark.parametrize("s", [0, pytest.param(1, marks=pytest.mark.slow), 2, -1])
def test_flow_equals_the_independent_integration_and_the_known_figures(s):
    flow = angd.ARGFlow(alpha=angd.OverTime(3.0), beta=Decaying(0.2, 0.3), gamma=OnePlusOverTime(0.2))
    manifold, rho0 = angd.SobolevManifold(s, 15), jnp.asarray(SobolevCircle.rho0)
    first = angd.solve_flow(manifold, functional, flow, rho0, 1.0, 4.0, rtol=1e-12, save=5)
    second = angd.solve_flow(manifold, functional, flow, rho0, 1.0, 4.0, rtol=1e-12, save=5, form="covariant")
    judge = SobolevCircle(s).exact(1.0, 4.0)
    assert np.abs(first.rho - second.rho).max() < 1e-11
    assert np.abs(first.rho[-1] - judge).max() < 1e-9
    loss, head = EXPECTED[s]
    assert np.isclose(first.L[-1], loss, atol=1e-6)
    assert np.allclose(first.rho[-1, :3], head, atol=1e-7)


def test_flow_on_a_two_dimensional_torus_moves_each_mode_by_its_own_oscillator():
    """L = ½‖ρ‖² in H¹ of the plane: the mode (1, 2) has G = 6, so it oscillates with frequency 1/√6."""
    manifold = angd.SobolevManifold(1, (5, 7))
    x, y = manifold.grid()
    mode = jnp.asarray(np.cos(x + 2 * y))
    end = angd.solve_flow(
        manifold, lambda r: jnp.mean(r**2) / 2, angd.ARGFlow(), mode, 0.0, 2.0, rtol=1e-11, save=2
    ).rho[-1]
    assert np.allclose(end, np.cos(2 / np.sqrt(6)) * mode, atol=1e-10)


def test_flow_on_a_three_dimensional_torus_moves_each_mode_by_its_own_oscillator():
    """L = ½‖ρ‖² in H⁻¹ of space: the mode (1, 1, 1) has G = 1/4, so it oscillates with frequency 2."""
    manifold = angd.SobolevManifold(-1, (3, 5, 4))
    x, y, z = manifold.grid()
    mode = jnp.asarray(np.cos(x + y + z))
    end = angd.solve_flow(
        manifold, lambda r: jnp.mean(r**2) / 2, angd.ARGFlow(), mode, 0.0, 1.0, rtol=1e-11, save=2
    ).rho[-1]
    assert np.allclose(end, np.cos(2.0) * mode, atol=1e-10)


@pytest.mark.parametrize("s", [1, -1])
def test_flow_on_an_interval_is_the_flow_of_even_functions_on_a_circle(s):
    """Cosines have no slope at the ends of [0, π]: there natural conditions are those of even periodic functions."""
    wave = np.fft.fftfreq(64, 1 / 64)
    x = 2 * np.pi * np.arange(64) / 64
    inverse = 1 / (1 + wave**2) if s > 0 else 1 + wave**2

    def force(u, x):
        return u + 0.3 * u**3 - np.cos(x) - 0.5 * np.cos(2 * x)

    def field(t, y):
        u, Psi = y[:64], y[64:]
        f = force(u, x)
        u_dot = np.fft.ifft(inverse * np.fft.fft(Psi - 0.2 * f)).real
        return np.concatenate([u_dot, -3 / t * Psi - (1 - 0.6 / t) * f])

    u0 = 0.8 * np.cos(x) + 0.2
    judge = integrate(field, np.concatenate([u0, 0.2 * force(u0, x)]), 1.0, 2.0)[0, :64]
    manifold = angd.SobolevIntervalManifold(s, 32, 0.0, np.pi)
    (nodes,) = manifold.grid()
    omega = jnp.asarray(manifold.omega)

    def functional(u):
        return omega @ (u**2 / 2 + 0.075 * u**4 - (jnp.cos(nodes) + 0.5 * jnp.cos(2 * nodes)) * u)

    flow = angd.ARGFlow(alpha=angd.OverTime(3.0), beta=0.2)
    rho0 = jnp.asarray(0.8 * np.cos(nodes) + 0.2)
    forms = ("cotangent", "covariant")
    runs = [angd.solve_flow(manifold, functional, flow, rho0, 1.0, 2.0, save=2, form=form) for form in forms]
    expected = np.real(np.exp(1j * np.outer(nodes, wave)) @ np.fft.fft(judge)) / 64
    assert np.abs(runs[0].rho[-1] - expected).max() < 1e-7
    assert np.abs(runs[0].rho - runs[1].rho).max() < 1e-8
