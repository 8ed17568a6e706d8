"""Steps as taken, with bounds, controllers and weights in play, against the recursions written out in numpy."""

from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from schedules import Decaying

import angd
from angd import ANGD, ARGFlow, FisherRao, LevenbergMarquardt, Normal, Restart, Samples, StepNorm, Wasserstein

LAMBDA = 0.05
RNG = np.random.default_rng(11)
POINTS = [RNG.normal(0.8, 1.1, size=7) for _ in range(6)]
OMEGA = RNG.uniform(0.5, 1.5, size=7) / 7
START = np.array([0.3, -0.2])


class Gauss(eqx.Module):
    """ρ = N(m, s²), θ = (m, log s), KL to N(0, 1.5²)."""

    def log_density(self, params, x):
        return -((x - params[0]) ** 2) * jnp.exp(-2 * params[1]) / 2 - params[1]

    def variation(self, params, x):
        return self.log_density(params, x) + x**2 / 4.5


def scores(theta, x):
    """∂_θ log ρ, one row for each point."""
    u = (x - theta[0]) * np.exp(-theta[1])
    return np.stack([u * np.exp(-theta[1]), u**2 - 1], axis=1)


def variation(theta, x):
    return -((x - theta[0]) ** 2) * np.exp(-2 * theta[1]) / 2 - theta[1] + x**2 / 4.5


def force(theta, x):
    """∇ of the variation."""
    return -(x - theta[0]) * np.exp(-2 * theta[1]) + x / 2.25


def centred(y, omega):
    return y - omega @ y / omega.sum()


def solved(O, omega, v, c):
    """(G + λI) d = v + λc, with the mean row taken off."""
    O = centred(O, omega)
    return np.linalg.solve(O.T @ (omega[:, None] * O) + LAMBDA * np.eye(2), v + LAMBDA * c)


class Clock:
    """h = 0.3/(1 + 0.1 k), α = 1.5/t, β = 0.4/(1 + 0.2 t), γ = 1.3, step by step from t = 1."""

    flow = ARGFlow(alpha=angd.OverTime(1.5), beta=Decaying(0.4, 0.2), gamma=1.3, h=angd.InverseTime(0.3, 0.1))

    def __init__(self):
        self.t, self.beta_prev = 1.0, None

    def __call__(self, k):
        """h, μ, β of the step before (0 at first), hγ."""
        h, beta_prev = 0.3 / (1 + 0.1 * k), self.beta_prev
        mu, self.beta_prev = 1 - h * 1.5 / self.t, 0.4 / (1 + 0.2 * self.t)
        self.t += h
        return h, mu, 0.0 if beta_prev is None else beta_prev, h * 1.3


def taken(metric, batches, omega, controller: Any = None, moved=None):
    """θ, places and infos of the library, on batches or, where `moved` is given, on its own particles moved by it."""
    opt = ANGD(Clock.flow, metric, Normal(LAMBDA), controller or angd.Constant())
    params, samples = jnp.asarray(START), Samples(jnp.asarray(batches[0]), jnp.asarray(omega))
    state, step, seen = opt.init(Gauss(), params, samples), eqx.filter_jit(opt.step), []
    for batch in batches:
        x = jnp.asarray(batch) if moved is None else samples.x
        samples = eqx.tree_at(lambda s: s.x, samples, x if moved is None else moved(x))
        params, samples, state, info = step(Gauss(), params, samples, state)
        assert bool(info.accepted)
        seen.append((np.asarray(params), np.asarray(samples.x), info))
    return seen


def fisher_rao_by_numpy(limit, omega):
    theta, old, d, clock, seen, limited = START, START, np.zeros(2), Clock(), [], 0
    for k, x in enumerate(POINTS):
        h, mu, beta, gain = clock(k)
        e, before = centred(variation(theta, x), omega), centred(variation(old, x), omega)
        phi = centred(scores(old, x) @ d, omega)
        limited += int(np.sum(np.abs(phi) > limit / h))
        phi = np.clip(phi, -limit / h, limit / h)
        b = centred(mu * phi - h / 2 * phi * (phi + beta * before) - beta * (e - before) - gain * e, omega)
        d = solved(scores(theta, x), omega, centred(scores(theta, x), omega).T @ (omega * b), mu * d)
        theta, old = theta + h * d, theta
        seen.append(theta)
    return np.array(seen), limited


@pytest.mark.parametrize(("limit", "weight"), [(0.05, 1.0), (None, 3.0)], ids=["limited", "weights that sum to 3"])
def test_fisher_rao_takes_the_steps_of_its_recursion(limit, weight):
    expected, limited = fisher_rao_by_numpy(np.inf if limit is None else limit, weight * OMEGA)
    found = np.array([theta for theta, _, _ in taken(FisherRao(limit=limit), POINTS, weight * OMEGA)])
    assert np.allclose(found, expected, rtol=1e-9, atol=1e-11)
    assert limited >= 5 if limit else limited == 0
    free, _ = fisher_rao_by_numpy(np.inf, OMEGA)
    assert np.abs(found - free).max() > 1e-3, "the limit, or the weights, must show"


def wasserstein_by_numpy(omega, reset=np.inf, above=np.inf, C=np.inf, moved=None):
    """θ, particles, and how often the bounds acted; `moved` is a Markov chain between two steps."""
    theta, d, clock, seen, acted = START, np.zeros(2), Clock(), [], 0
    x = kept = POINTS[0]
    V, F = np.zeros(7), np.zeros(7)
    for k in range(len(POINTS)):
        h, mu, beta, gain = clock(k)
        x = kept if moved is None else moved(kept)
        old = mu * V - beta * (force(theta, kept) - F)
        if moved is not None:
            features = np.stack([np.ones(7), kept], axis=1) * np.sqrt(omega)[:, None]
            a, b = np.linalg.lstsq(features, old * np.sqrt(omega))[0]
            old = a + b * x
        F = force(theta, x)
        V = old - gain * F
        beyond = np.abs(V) > reset
        V = np.where(beyond, 0.0, V)

        def pulled(V, theta=theta, x=x):
            slopes = np.stack([np.full(7, np.exp(-2 * theta[1])), 2 * (x - theta[0]) * np.exp(-2 * theta[1])], axis=1)
            return slopes.T @ (omega * V)

        d = solved(scores(theta, x), omega, pulled(V), mu * d)
        restart = np.linalg.norm(d) > above
        if restart:
            V, d = -gain * F, solved(scores(theta, x), omega, pulled(-gain * F), 0 * d)
        short = min(1.0, np.sqrt(C) / (h * np.linalg.norm(d)))
        acted += int((restart and k > 0) or short < 1 or beyond.any())
        theta, kept = theta + short * h * d, x + short * h * V
        seen.append((theta, kept))
    return seen, acted


def chain(x):
    """Where a Markov chain might put walkers: not in the order they came, nor along any line."""
    return 0.8 * x[::-1] + 0.3 * (x**2 < 1) - 0.1


WASSERSTEIN = {
    "reset": (Wasserstein(refit=None, reset=0.5), angd.Constant(), {"reset": 0.5}, 1.0),
    "refit": (Wasserstein(), angd.Constant(), {"moved": chain}, 1.0),
    "StepNorm": (Wasserstein(refit=None), StepNorm(0.2), {"C": 0.2}, 1.0),
    "Restart": (Wasserstein(refit=None), Restart(above=0.5), {"above": 0.5}, 1.0),
    "weights": (Wasserstein(refit=None), angd.Constant(), {}, 2.5),
}


@pytest.mark.parametrize("name", WASSERSTEIN)
def test_particles_and_model_take_the_steps_of_their_recursion(name):
    """Velocities beyond `reset`, β with a re-fit, particles under `StepNorm`, velocities after a restart, weights."""
    metric, controller, options, weight = WASSERSTEIN[name]
    expected, acted = wasserstein_by_numpy(weight * OMEGA, **options)
    found = taken(metric, POINTS, weight * OMEGA, controller, options.get("moved", lambda x: x))
    for (theta, x, _), (theta_expected, x_expected) in zip(found, expected, strict=True):
        assert np.allclose(theta, theta_expected, atol=1e-7)
        assert np.allclose(x, x_expected, atol=1e-7)
    assert 0 < acted < len(POINTS) if name in ("reset", "StepNorm", "Restart") else acted == 0
    if name == "Restart":
        assert sum(bool(info.restarted) for _, _, info in found) == acted


class Quartic(eqx.Module):
    """u = ⟨θ, x⟩ in L², which only knows the gradient of its loss."""

    def field(self, params, x):
        return params @ x

    def loss(self, params, samples):
        return samples.mean((samples.x @ params) ** 4) + 0.5 * jnp.sum((params - 1) ** 2)


def test_the_natural_gradient_that_beta_carries_has_the_damping_of_its_step():
    """n = (M + λI)⁻¹ ∂L with the λ that Levenberg–Marquardt has come to, not the solver's."""
    mu, h, beta, damping, omega = 0.6, 0.25, 0.3, 0.4, np.full(9, 1 / 9)
    batches = [RNG.normal(size=(9, 3)) for _ in range(6)]
    opt = ANGD(ARGFlow(alpha=(1 - mu) / h, beta=beta, h=h), angd.L2(), Normal(damping), LevenbergMarquardt())
    params = jnp.array([1.0, -0.5, 0.3])
    state, step = opt.init(Quartic(), params, Samples(jnp.asarray(batches[0]))), eqx.filter_jit(opt.step)
    theta, d, n, dampings = np.asarray(params), np.zeros(3), np.zeros(3), []
    for k, x in enumerate(batches):
        params, _, state, info = step(Quartic(), params, Samples(jnp.asarray(x)), state)

        def loss(t, x=x):
            return omega @ (x @ t) ** 4 + np.sum((t - 1) ** 2) / 2

        M, g, b = x.T @ x / 9, x.T @ (4 * omega * (x @ theta) ** 3) + theta - 1, beta if k else 0.0
        c = mu * d + b * n
        d = np.linalg.solve(M + damping * np.eye(3), M @ c + damping * c - (b + h) * g)
        while (ratio := (loss(theta) - loss(theta + h * d)) / (-h * g @ d)) < 0 or g @ d > 0:
            damping *= 3
            d = -h * np.linalg.solve(M + damping * np.eye(3), g)
        n, theta = np.linalg.solve(M + damping * np.eye(3), g), theta + h * d
        assert np.isclose(info.damping, damping)
        assert np.allclose(params, theta, atol=1e-10)
        assert np.allclose(state.previous.metric[0].natural, n, atol=1e-10)
        dampings.append(damping)
        damping *= 0.5 if ratio > 0.75 else 3 if ratio < 0.25 else 1
    assert len(set(dampings)) > 2


class Mode(eqx.Module):
    """L = Λ θ²/2 in L² of one point: one mode with curvature Λ."""

    curvature: Any

    def field(self, params, x):
        return params * x

    def variation(self, params, x):
        return self.curvature * params * x


def test_a_mode_is_stable_up_to_the_curvature_that_the_guide_names():
    """h²γΛ + 2hβΛ < 2(1 + μ), four per cent below and above, for coefficients of all kinds."""
    guide = Path(__file__).parent.parent.parent / "docs" / "choosing.md"
    assert r"$$h^2\gamma\Lambda+2h\beta\Lambda<2(1+\mu).$$" in guide.read_text(encoding="utf-8")
    rng = np.random.default_rng(5)
    mu, h, gamma, share = (
        rng.uniform(0, 0.9, 24),
        rng.uniform(0.1, 1, 24),
        rng.uniform(0.5, 2, 24),
        rng.uniform(0, 1, 24),
    )
    beta = share * h * gamma
    bound = 2 * (1 + mu) / (h**2 * gamma + 2 * h * beta)

    def end(mu, h, gamma, beta, curvature):
        opt = ANGD(ARGFlow(alpha=(1 - mu) / h, beta=beta, gamma=gamma, h=h), angd.L2Pointwise(), Normal(0.0))
        problem, samples, theta = Mode(curvature), Samples(jnp.ones(1)), jnp.ones(())

        def body(carry, _):
            params, _, state, _ = opt.step(problem, carry[0], samples, carry[1])
            return (params, state), None

        return jax.lax.scan(body, (theta, opt.init(problem, theta, samples)), None, length=1200)[0][0]

    run = jax.jit(jax.vmap(end))
    below, above = (np.abs(run(mu, h, gamma, beta, factor * bound)) for factor in (0.96, 1.04))
    assert np.all(below < 1e-3)
    assert np.all(above > 1e3)
