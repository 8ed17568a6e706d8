"""solve_flow: what it reports, what it refuses, and that a second solve is not compiled again."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import angd
from angd.flow.theorem import fit_rate

QUANTILES = angd.QuantileManifold.midpoints(2)


def pinch(X):
    """A constant force that drives two quantiles together."""
    return 0.5 * (X[1] - X[0])


@pytest.mark.parametrize("form", ["cotangent", "covariant"])
def test_both_forms_stop_where_quantiles_meet(form):
    """Relative acceleration −2 (unit force over mass ½, on both sides), from distance 1 at rest: they meet at t = 1."""
    run = angd.solve_flow(QUANTILES, pinch, angd.ARGFlow(), jnp.array([0.0, 1.0]), 0.0, 3.0, form=form)
    assert run.result == angd.RESULTS.left_manifold
    assert run.exit_time == pytest.approx(1.0, abs=1e-4)
    assert run.ts[-1] < 1.01


def test_too_few_steps_are_reported_with_the_remedy():
    run = angd.solve_flow(
        QUANTILES, lambda X: jnp.sum(X**2), angd.ARGFlow(), jnp.array([0.0, 1.0]), 0.0, 1.0, max_steps=5
    )
    assert run.result == angd.RESULTS.too_many_steps
    assert "max_steps" in run.verdict()


def test_progress_is_told_from_zero_to_one():
    seen = []
    manifold = angd.SobolevManifold(0, 3)
    angd.solve_flow(manifold, lambda u: jnp.mean(u**2), angd.ARGFlow(), jnp.ones(3), 0.0, 1.0, progress=seen.append)
    jax.effects_barrier()
    assert len(seen) > 10
    assert sorted(seen) == seen
    assert 0.9 < seen[-1] <= 1.0


def test_another_alpha_does_not_compile_again():
    traces = []
    manifold = angd.SobolevManifold(0, 3)

    def functional(u):
        traces.append(None)
        return jnp.mean(u**2)

    def run(alpha):
        return angd.solve_flow(manifold, functional, angd.ARGFlow(alpha=alpha), jnp.ones(3), 0.0, 1.0)

    run(0.5)
    once = len(traces)
    slow = run(5.0)
    assert len(traces) == once + 2  # not traced, but called: its value is checked, and the force at the start is needed
    assert slow.L[-1] > 0


def test_without_a_minimiser_the_gap_is_relative_to_the_trajectory():
    run = angd.solve_flow(
        angd.SobolevManifold(0, 1), lambda u: jnp.sum(u**2), angd.ARGFlow(alpha=1.0), jnp.ones(1), 0.0, 5.0
    )
    assert run.certificate is None
    assert not run.minimum_known
    assert float(jnp.min(run.gap)) == 0


def bowl(u):
    """A bowl with its minimum at 0.2."""
    return jnp.sum((u - 0.2) ** 2)


@pytest.mark.parametrize(("wrong", "words"), [(0.7, "on the trajectory"), (0.15, "on the trajectory"), (-3.0, "there")])
def test_a_wrong_minimiser_gets_no_certificate(wrong, words):
    def run(minimiser):
        flow = angd.ARGFlow(alpha=angd.OverTime(3.0))
        point = jnp.full(1, minimiser)
        return angd.solve_flow(
            angd.SobolevManifold(0, 1), bowl, flow, jnp.ones(1), 1.0, 10.0, minimiser=point, save=101
        )

    assert run(0.2).certificate is not None
    assert "O(1/t²) holds by the theorem" in run(0.2).verdict()
    found = run(wrong)
    assert found.certificate is None
    assert not found.minimum_known
    assert np.isnan(found.rate)
    assert float(jnp.min(found.gap)) == 0
    assert "the minimiser given is none" in found.verdict()
    assert words in found.verdict()
    assert "holds" not in found.verdict()


def test_a_low_point_where_the_gradient_does_not_vanish_is_no_minimiser():
    """L below the trajectory is not enough: far down the slope L is lower, and nothing ends there."""
    flow = angd.ARGFlow(alpha=angd.OverTime(3.0))
    run = angd.solve_flow(
        angd.SobolevManifold(0, 1), jnp.sum, flow, jnp.ones(1), 1.0, 2.0, minimiser=jnp.full(1, -50.0), save=11
    )
    assert run.certificate is None
    assert "gradient" in run.verdict()


@pytest.mark.parametrize(("gamma", "word"), [(1.0, "fell"), (0.0, "stayed"), (-1.0, "rose")])
def test_the_verdict_says_which_way_the_loss_went(gamma, word):
    flow = angd.ARGFlow(alpha=1.0, gamma=lambda k, t: jnp.where(t > 0, gamma, 0.0), t0=0.0)
    run = angd.solve_flow(angd.SobolevManifold(0, 1), bowl, flow, jnp.ones(1), 0.0, 3.0, save=11)
    assert run.verdict().startswith(f"L {word}")


def test_rate_of_a_power_law_is_its_exponent():
    ts = np.geomspace(1, 100, 500)
    assert fit_rate(ts, 3 * ts**-2.5) == pytest.approx(2.5)
    assert np.isnan(fit_rate(ts, np.zeros_like(ts)))
    assert np.isnan(fit_rate(np.linspace(0, 1, 5), np.ones(5)))
    assert np.isnan(fit_rate(ts, np.where(ts > 0.98 * ts[-1], 1.0, 0.0))), "one window alone has no rate"


SOBOLEV, SIMPLEX = angd.SobolevManifold(0, 3), angd.FisherRaoManifold.simplex(2)


def solve(manifold: Any = SOBOLEV, functional=jnp.sum, flow=None, rho0=None, t0=1.0, t1=2.0, **kwargs):
    start = jnp.ones(3) if rho0 is None else rho0
    return angd.solve_flow(manifold, functional, flow or angd.ARGFlow(), start, t0, t1, **kwargs)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: solve(t1=1.0), "0 ≤ t0 < t1"),
        (lambda: solve(t1=float("inf")), "0 ≤ t0 < t1"),
        (lambda: solve(save=1), "at least 2"),
        (lambda: solve(save=[1.5, 1.2]), "increasing times"),
        (lambda: solve(rho0=jnp.ones(4)), "grid's shape"),
        (lambda: solve(rho0=jnp.array([1.0, jnp.nan, 1.0])), "not finite"),
        (lambda: solve(functional=lambda u: u), "must return a scalar"),
        (lambda: solve(functional=lambda u: jnp.sum(u) / 0.0), "not finite at rho0"),
        (lambda: solve(flow=angd.ARGFlow(alpha=angd.InverseTime(1.0, 0.1))), "depends on the step number k"),
        (lambda: solve(SIMPLEX, rho0=jnp.array([1.5, -0.5])), "positive density"),
        (lambda: solve(SIMPLEX, rho0=jnp.array([0.5, 0.6])), "mass 1.1 instead of 1"),
        (lambda: solve(SIMPLEX, rho0=jnp.ones(3) / 3), "one value per cell"),
        (lambda: solve(QUANTILES, rho0=jnp.array([1.0, 0.0])), "strictly increasing"),
        (lambda: solve(angd.WassersteinManifold(3), rho0=jnp.ones(5)), r"grid's shape \(3,\)"),
        (lambda: solve(angd.WassersteinManifold(3), rho0=jnp.array([3.0, 1.0, -1.0])), "positive density"),
        (lambda: solve(angd.WassersteinManifold(3), rho0=jnp.full(3, 2.0)), "mean 2 instead of 1"),
        (lambda: solve(angd.SobolevIntervalManifold(1, 4), rho0=jnp.ones(3)), r"one value per node, shape \(4,\)"),
        (lambda: solve(flow=angd.GradientFlow(), form="covariant"), "no covariant form"),
        (lambda: solve(flow=angd.GradientFlow(angd.InverseTime(1.0, 0.1))), "depends on the step number k"),
        (lambda: solve(angd.ParticleManifold([1.0]), rho0=jnp.ones(1)), r"shape \(1, d\)"),
        (
            lambda: solve(angd.GaussianManifold(), rho0=angd.Gaussian(jnp.zeros(2), -jnp.eye(2))),
            "positive definite",
        ),
        (lambda: solve(angd.GaussianManifold(), rho0=angd.Gaussian(jnp.zeros(2), jnp.eye(3))), "shape"),
        (lambda: solve(angd.MatrixManifold(lambda x: -jnp.eye(3))), "not positive definite at rho0"),
        (lambda: solve(angd.HessianManifold(lambda x: -jnp.sum(x**2))), "not strictly convex"),
        (lambda: solve(angd.HessianManifold(lambda x: jnp.sum(x**2), inside=lambda x: x - 2)), "outside the manifold"),
    ],
)
def test_bad_input_is_refused_with_a_sentence_before_any_work(make, words):
    with pytest.raises(ValueError, match=words):
        make()
