"""H^s flows on the circle against a numpy integration, and the two forms against each other."""

import jax.numpy as jnp
import numpy as np
import pytest
from reference import SobolevCircle
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
