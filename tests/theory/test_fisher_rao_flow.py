"""The Fisher–Rao flow on a grid: two forms, the known figures, the time at which it leaves the densities (E16)."""

from functools import cache

import jax.numpy as jnp
import numpy as np
import pytest
from schedules import Decaying, Wave

import angd

SPAN = (0.5, 4.0)


def grid(half_width=3.0, cells=64):
    """Manifold, points and the start N(0.5, 0.9²) of the acceptance test."""
    manifold = angd.FisherRaoManifold(np.full(cells, 2 * half_width / cells))
    x = jnp.asarray(np.linspace(-half_width, half_width, cells))
    return manifold, x, manifold.normalise(jnp.exp(-((x - 0.5) ** 2) / (2 * 0.81)))


@cache
def kl_problem():
    manifold, x, rho0 = grid()
    target = manifold.normalise(jnp.exp(-(x**2) / 2))
    return manifold, angd.RelativeEntropy(manifold, target), rho0, target


@pytest.mark.parametrize(
    ("beta", "gamma", "final"),
    [
        pytest.param(Decaying(0.0), Wave(), 3.694e-4, marks=pytest.mark.slow),
        (Decaying(0.4), Wave(), 1.805e-3),
        (Decaying(0.4, 0.2), Wave(0.1), None),
    ],
    ids=["beta=0", "beta=0.4", "scheduled"],
)
def test_cotangent_form_equals_sphere_form(beta, gamma, final):
    manifold, L, rho0, target = kl_problem()
    flow = angd.ARGFlow(alpha=angd.OverTime(3.0), beta=beta, gamma=gamma)
    first = angd.solve_flow(manifold, L, flow, rho0, *SPAN, rtol=1e-11, minimiser=target)
    second = angd.solve_flow(manifold, L, flow, rho0, *SPAN, rtol=1e-11, form="covariant")
    assert np.abs(first.rho - second.rho).max() < 1e-11
    assert np.abs(first.rho_dot - second.rho_dot).max() < 1e-10
    assert np.isclose(first.L[0], 0.134243, rtol=1e-5)
    if final is not None:
        assert np.isclose(first.L[-1], final, rtol=1e-3)


@pytest.mark.parametrize(
    ("beta", "sups"),
    [
        pytest.param(0.0, [0.2406, 0.0897, 0.0416, 0.0232], marks=pytest.mark.slow),
        (0.4, [0.2594, 0.0216, 0.0027, 2.2e-5]),
    ],
)
def test_t_squared_times_kl_stays_bounded(beta, sups):
    manifold, L, rho0, target = kl_problem()
    flow = angd.ARGFlow(alpha=angd.OverTime(3.0), beta=beta)
    solution = angd.solve_flow(manifold, L, flow, rho0, 0.5, 40.0, minimiser=target, save=2001)
    assert solution.result == angd.RESULTS.successful
    ts, scaled = np.asarray(solution.ts), np.asarray(solution.ts**2 * solution.gap)
    windows = [(0.5, 5), (5, 10), (10, 20), (20, 40)]
    found = [scaled[(ts >= low) & (ts <= high)].max() for low, high in windows]
    assert np.allclose(found, sups, rtol=0.03)


def test_flow_of_a_linear_energy_leaves_the_densities_and_says_when():
    manifold, x, rho0 = grid()
    L = angd.MeanEnergy(manifold, x**2 / 2)
    flow = angd.ARGFlow(alpha=angd.OverTime(3.0))
    stopped = angd.solve_flow(manifold, L, flow, rho0, *SPAN, rtol=1e-11)
    assert stopped.result == angd.RESULTS.left_manifold
    assert stopped.exit_time == pytest.approx(2.69, abs=5e-3)
    through = angd.solve_flow(manifold, L, flow, rho0, *SPAN, rtol=1e-11, form="covariant")
    assert through.result == angd.RESULTS.crossed_boundary
    assert through.exit_time == pytest.approx(stopped.exit_time, abs=1e-3)
    assert through.ts[-1] == SPAN[1]
    assert "reached the boundary" in stopped.verdict()
    assert "raise alpha" in stopped.verdict()
    early = angd.solve_flow(manifold, L, flow, rho0, 0.5, 2.6, rtol=1e-11)
    early_sphere = angd.solve_flow(manifold, L, flow, rho0, 0.5, 2.6, rtol=1e-11, form="covariant")
    assert np.abs(early.rho - early_sphere.rho).max() < 1e-11


def test_flow_continued_on_the_sphere_keeps_t_squared_times_the_gap_bounded():
    manifold, x, rho0 = grid()
    V = np.asarray(x**2 / 2)
    flow = angd.ARGFlow(alpha=angd.OverTime(3.0))
    solution = angd.solve_flow(
        manifold, angd.MeanEnergy(manifold, jnp.asarray(V)), flow, rho0, 0.5, 60.0, form="covariant", save=4001
    )
    ts, scaled = np.asarray(solution.ts), np.asarray(solution.ts**2 * (solution.L - V.min()))
    windows = [(0.5, 5), (5, 10), (10, 20), (20, 40), (40, 60)]
    found = [scaled[(ts >= low) & (ts <= high)].max() for low, high in windows]
    assert np.allclose(found, [2.99, 3.75, 3.96, 3.93, 2.86], rtol=0.01)


@pytest.mark.parametrize(
    ("half_width", "first_zero"),
    [
        (3.0, 1.104),
        pytest.param(4.0, 0.811, marks=pytest.mark.slow),
        pytest.param(6.0, 0.531, marks=pytest.mark.slow),
        (8.0, 0.396),
    ],
)
def test_first_zero_without_friction_comes_as_predicted(half_width, first_zero):
    """E16: q = √ρ oscillates with frequency² γ[f]/2 where [f] > 0, so it vanishes near t = (π/2)/√(max[f]/2)."""
    manifold, x, rho0 = grid(half_width)
    V = x**2 / 2
    L = angd.MeanEnergy(manifold, V)
    solution = angd.solve_flow(manifold, L, angd.ARGFlow(), rho0, 0.0, 2.0)
    predicted = np.pi / 2 / np.sqrt(float(jnp.max(V) - L(rho0)) / 2)
    assert solution.result == angd.RESULTS.left_manifold
    assert solution.exit_time == pytest.approx(first_zero, abs=1e-3)
    assert solution.exit_time == pytest.approx(predicted, rel=0.01)


def test_enough_friction_keeps_the_density_positive():
    """The remedy that the result names: α² ≥ 2γ max[f]."""
    manifold, x, rho0 = grid()
    V = x**2 / 2
    alpha = float(jnp.sqrt(2 * jnp.max(V)))
    solution = angd.solve_flow(manifold, angd.MeanEnergy(manifold, V), angd.ARGFlow(alpha=alpha), rho0, 0.0, 4.0)
    assert solution.result == angd.RESULTS.successful
    assert solution.exit_time is None


def test_relative_entropy_turns_a_density_back():
    """The exception to E16: from the same rest, without friction, a linear energy takes a density to zero and the
    relative entropy does not, because it is largest where the density vanishes."""
    manifold, start = angd.FisherRaoManifold.simplex(2), jnp.array([0.97, 0.03])
    entropy = angd.RelativeEntropy(manifold, jnp.array([0.5, 0.5]))
    energy = angd.MeanEnergy(manifold, jnp.array([1.0, 0.0]))
    flow = angd.ARGFlow(alpha=0.0)
    turned = angd.solve_flow(manifold, entropy, flow, start, 0.0, 30.0)
    left = angd.solve_flow(manifold, energy, flow, start, 0.0, 30.0)
    assert turned.result == angd.RESULTS.successful
    assert 0.029 < turned.rho.min() < 0.031
    assert left.result == angd.RESULTS.left_manifold
