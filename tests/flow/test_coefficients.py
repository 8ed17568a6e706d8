"""ARGFlow: the units that are derived, the named members, and the sentences that refuse nonsense."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import angd


def test_units_of_tuning_and_units_of_the_flow_are_interchangeable():
    flow = angd.ARGFlow.momentum(mu=0.9, rate=0.04, beta=0.3)
    step = flow.step(0, flow.t0)
    assert np.allclose([step.mu, step.rate, step.h, step.alpha, step.gamma], [0.9, 0.04, 0.2, 0.5, 1.0])
    again = angd.ARGFlow(h=0.2, alpha=0.5, beta=0.3, gamma=1.0).step(0, 1.0)
    assert jax.tree.all(jax.tree.map(np.allclose, step, again))


def test_momentum_and_rate_may_be_schedules():
    flow = angd.ARGFlow.momentum(mu=lambda k, t: k / (k + 3), rate=angd.InverseTime(0.04, 0.5))
    step = flow.step(6, 2.0)
    assert np.allclose([step.mu, step.rate], [6 / 9, 0.04 / 4])


def test_beta_dot_is_a_backward_difference_in_steps_and_a_derivative_in_time():
    flow = angd.ARGFlow(h=0.1, beta=lambda k, t: 0.3 / (1 + 0.5 * t))
    first, second = flow.step(0, 1.0), flow.step(1, 1.1, flow.step(0, 1.0).beta)
    assert first.beta_dot == 0
    assert np.allclose(second.beta_dot, (0.3 / 1.55 - 0.3 / 1.5) / 0.1)
    assert np.allclose(flow.at(2.0).beta_dot, -0.15 / 4)
    assert np.allclose(flow.at(2.0).w, 1 + 0.15 / 4 - 0.15 / 2)


def test_nesterov_coefficients_reproduce_nesterovs_sequence():
    """On a quadratic, d ← μd − β_prev(g − g_prev) − hγg, θ ← θ + hd is Nesterov's y-sequence with μ = k/(k+3)."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(4, 4))
    A = A @ A.T / 4 + np.eye(4)
    rate = 0.5 / np.linalg.eigvalsh(A)[-1]
    flow = angd.ARGFlow.nesterov(rate)
    y, theta0 = [], rng.normal(size=4)
    x_prev, yk = theta0, theta0
    for k in range(30):
        y.append(yk)
        x = yk - rate * A @ yk
        yk, x_prev = x + k / (k + 3) * (x - x_prev), x
    theta, d, g_prev, beta_prev, t = theta0, np.zeros(4), A @ theta0, None, flow.t0
    for k in range(30):
        assert np.allclose(theta, y[k], atol=1e-13)
        step, g = flow.step(k, t, beta_prev), A @ theta
        d = step.mu * d - step.beta_prev * (g - g_prev) - step.h * step.gamma * g
        theta, t, g_prev, beta_prev = theta + step.h * d, t + step.h, g, step.beta


def test_named_members_have_their_textbook_coefficients():
    gradient = angd.ARGFlow.gradient(0.1).step(0, 1.0)
    assert np.allclose([gradient.mu, gradient.rate, gradient.beta], [0, 0.1, 0])
    ball = angd.ARGFlow.heavy_ball(0.9, 0.01).step(0, 1.0)
    assert np.allclose([ball.mu, ball.rate, ball.beta], [0.9, 0.01, 0])
    damped = angd.ARGFlow.hessian_damped(alpha=3.0, beta=0.7).at(jnp.asarray(2.0))
    assert np.allclose([damped.alpha, damped.beta, damped.w], [1.5, 0.7, 1.0])


def test_coefficients_trace_once_under_jit():
    traces = []

    @jax.jit
    def mu(k, t):
        traces.append(None)
        return angd.ARGFlow(alpha=angd.OverTime(3.0), h=0.1).step(k, t).mu

    assert np.allclose([mu(0, 1.0), mu(1, 2.0)], [0.7, 0.85])
    assert len(traces) == 1


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: angd.ARGFlow(alpha=-1.0), "alpha must be finite and ≥ 0, got -1"),
        (lambda: angd.ARGFlow(beta=float("nan")), "beta must be finite"),
        (lambda: angd.ARGFlow(gamma="1"), "gamma must be a number or a function"),
        (lambda: angd.ARGFlow(h=0.0), "h must be finite and > 0"),
        (lambda: angd.ARGFlow(h=True), "h must be a number"),
        (lambda: angd.ARGFlow(h=1.0, alpha=1.5), "exceeds 1"),
        (lambda: angd.ARGFlow(alpha=angd.OverTime(3.0), t0=0.0), "needs t0 > 0"),
        (lambda: angd.ARGFlow(t0=-1.0), "t0 must be finite"),
        (lambda: angd.ARGFlow.momentum(mu=1.2, rate=0.1), "alpha must be finite and ≥ 0"),
        (lambda: angd.ARGFlow.momentum(mu=-0.2, rate=0.1), "mu must be finite and ≥ 0"),
        (lambda: angd.ARGFlow.momentum(mu=0.9, rate=0.0), "rate must be finite and > 0"),
        (lambda: angd.InverseTime(1.0, -0.1), "decay must be ≥ 0"),
        (lambda: angd.ARGFlow().step(0, 1.0), "has no step size"),
    ],
)
def test_out_of_range_values_are_refused_with_a_sentence(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_printing_shows_both_units():
    assert (
        str(angd.ARGFlow(h=0.2, alpha=1.0, beta=0.05))
        == "ARGFlow(h=0.2 α=1 β=0.05 γ=1; first step: μ=0.8 s=0.04 hβ=0.01)"
    )


def test_a_gradient_flow_may_have_a_rate_that_falls():
    flow = angd.ARGFlow.gradient(angd.InverseTime(0.5, 1.0))
    for k in range(3):
        c = flow.step(k, 1.0)
        rate = 0.5 / (1 + k)
        assert (float(c.h), float(c.mu), float(c.gamma)) == pytest.approx((rate, 0.0, 1 / rate))
    assert "1/(0.5/(1+1k))" in str(flow)
    assert "1/(f(k,t))" in str(angd.ARGFlow.gradient(lambda k, t: 0.1))


@pytest.mark.parametrize("rate", [-1.0, None, "fast"])
def test_rates_of_presets_are_checked_as_they_were_said(rate):
    with pytest.raises(ValueError, match=r"got -1\.$" if rate == -1.0 else "must be a number or a function"):
        angd.published.spring(rate)
