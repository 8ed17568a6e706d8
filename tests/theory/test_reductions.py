"""Without acceleration, or with a particular one, the step is a published method, written here again in numpy."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import angd
from angd import Kernel, Normal, Samples, published
from angd.method.jacobian import jacobian

STEPS = 5
RNG = np.random.default_rng(7)
THETA = {"W": jnp.asarray(RNG.normal(size=(2, 3))), "a": jnp.asarray(RNG.normal(size=3))}
POINTS = [Samples(jnp.asarray(RNG.normal(size=(8, 2)))) for _ in range(STEPS)]


def network(params, x):
    return jnp.tanh(x @ params["W"]) @ params["a"]


class WaveFunction(eqx.Module):
    """ρ = ψ² with log|ψ| a network; the variation stands for the local energy."""

    def log_density(self, params, x):
        return 2 * network(params, x)

    def variation(self, params, x):
        return jnp.sum(x**2) + jnp.sin(network(params, x))


class Regression(eqx.Module):
    def residual(self, params, x):
        return network(params, x) - jnp.sin(x[0])


def flat(params):
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(params)])


def unflat(theta):
    return {"W": jnp.asarray(theta[:6].reshape(2, 3)), "a": jnp.asarray(theta[6:])}


def trajectory(opt, problem, batches, params: Any = THETA):
    """θ after each step, as vectors."""
    step, state, seen = eqx.filter_jit(opt.step), opt.init(problem, params, batches[0]), []
    for batch in batches:
        params, _, state, info = step(problem, params, batch, state)
        assert bool(info.ok)
        seen.append(flat(params))
    return np.array(seen)


def score_and_energy(theta, batch):
    """Centred ∂ log|ψ| and local energies, and ∂ log|ψ| itself, by reverse mode."""
    params = unflat(theta)
    O = np.stack([flat(jax.grad(network)(params, x)) for x in batch.x])
    e = np.array([WaveFunction().variation(params, x) for x in batch.x])
    return O - O.mean(0, keepdims=True), e - e.mean(), O


def spring(learning_rate, damping, momentum, decay=0.0, C=None):
    """SPRING in its own units: O = ∂ log|ψ| / √n, damping of O Oᵀ, projected momentum, optional norm constraint."""
    theta, d, seen = flat(THETA), np.zeros(9), []
    for k, batch in enumerate(POINTS):
        O, e, _ = score_and_energy(theta, batch)
        O, e = O / np.sqrt(len(e)), e / np.sqrt(len(e))
        d = momentum * d + O.T @ np.linalg.solve(O @ O.T + damping * np.eye(len(e)), -e - momentum * (O @ d))
        rate = learning_rate / (1 + decay * k)
        theta = theta + d * (rate if C is None else min(rate, np.sqrt(C) / np.linalg.norm(d)))
        seen.append(theta)
    return np.array(seen)


@pytest.mark.parametrize("eta", [0.0, 0.9], ids=["minSR", "SPRING"])
def test_fisher_rao_without_momentum_is_minsr_and_with_projected_momentum_spring(eta):
    """lr = h²γ/2 and λ = 4 λ_SPRING, because ∂ log ρ = 2 ∂ log|ψ|."""
    opt = published.spring(0.02, 1e-3, eta, C=None) if eta else published.minsr(0.02, 1e-3)
    assert np.abs(trajectory(opt, WaveFunction(), POINTS) - spring(0.02, 1e-3, eta)).max() < 1e-8


def test_spring_constrains_what_it_applies_and_may_decay():
    """The update is d · min(η_k, √C/‖d‖) with η_k = η/(1 + εk), and the momentum keeps d."""
    opt = published.spring(angd.InverseTime(0.02, 0.1), 1e-3, 0.9, C=1e-4)
    expected = spring(0.02, 1e-3, 0.9, decay=0.1, C=1e-4)
    assert np.abs(trajectory(opt, WaveFunction(), POINTS) - expected).max() < 1e-8
    assert np.abs(expected - spring(0.02, 1e-3, 0.9, decay=0.1)).max() > 1e-3


def gauss_newton(theta, batch, damping):
    """(JᵀJ/n + λI)⁻¹ Jᵀr/n, with the Jacobian by reverse mode."""
    params = unflat(theta)
    J = np.stack([flat(jax.grad(Regression().residual)(params, x)) for x in batch.x])
    r = np.array([Regression().residual(params, x) for x in batch.x])
    return np.linalg.solve(J.T @ J / 8 + damping * np.eye(9), J.T @ r / 8)


def test_ngd_in_the_energy_metric_is_damped_gauss_newton():
    theta, expected = flat(THETA), []
    for batch in POINTS:
        theta = theta - 0.7 * gauss_newton(theta, batch, 1e-3)
        expected.append(theta)
    opt = published.ngd(0.7, angd.Energy(), Normal(1e-3))
    assert np.abs(trajectory(opt, Regression(), POINTS) - np.array(expected)).max() < 1e-8


def test_engd_is_gauss_newton_with_a_grid_line_search():
    theta, expected = flat(THETA), []

    def loss(theta, batch):
        return np.mean([Regression().residual(unflat(theta), x) ** 2 for x in batch.x])

    for batch in POINTS:
        d = gauss_newton(theta, batch, 1e-6)
        theta = min((theta - 0.5**j * d for j in range(12)), key=lambda t, b=batch: loss(t, b))
        expected.append(theta)
    opt = published.engd(1e-6)
    assert np.abs(trajectory(opt, Regression(), POINTS) - np.array(expected)).max() < 1e-8


def test_heavy_ball_in_the_energy_metric_is_heavy_ball_gauss_newton():
    """θ_{k+1} − θ_k = μ (θ_k − θ_{k−1}) − s M⁻¹ g, also with damping: the centre makes momentum λ-consistent."""
    mu, rate, theta, move, expected = 0.7, 0.3, flat(THETA), np.zeros(9), []
    for batch in POINTS:
        move = mu * move - rate * gauss_newton(theta, batch, 1e-2)
        theta = theta + move
        expected.append(theta)
    opt = published.heavy_ball(mu, rate, angd.Energy(), Normal(1e-2))
    assert np.abs(trajectory(opt, Regression(), POINTS) - np.array(expected)).max() < 1e-8


def test_wqmc_is_the_least_squares_projection_of_the_drift():
    """d = (F + λI)⁻¹ E[∂_θ⟨∇log|ψ|, −∇E⟩] in units of log|ψ|, written with finite differences in x."""
    rate, damping, theta, expected, eps = 0.01, 0.1, flat(THETA), [], 1e-6
    batches = [POINTS[0]] * STEPS
    x = np.asarray(POINTS[0].x)
    for _ in batches:
        params = unflat(theta)
        O, _, _ = score_and_energy(theta, Samples(jnp.asarray(x)))
        drift = -np.stack([np.asarray(jax.grad(WaveFunction().variation, 1)(params, jnp.asarray(y))) for y in x])
        ahead, behind = (score_and_energy(theta, Samples(jnp.asarray(x + e * drift)))[2] for e in (eps, -eps))
        v = np.mean(ahead - behind, axis=0) / (2 * eps)
        theta = theta + rate * np.linalg.solve(O.T @ O / 8 + damping * np.eye(9), v)
        x = x + 2 * rate * drift
        expected.append(theta)
    opt = published.wqmc(rate, damping, C=None, clip=None, solver=Normal(4 * damping))
    step, params, seen = eqx.filter_jit(opt.step), THETA, []
    samples, state = POINTS[0], opt.init(WaveFunction(), THETA, POINTS[0])
    for _ in batches:
        params, samples, state, _ = step(WaveFunction(), params, samples, state)
        seen.append(flat(params))
    assert np.abs(np.array(seen) - np.array(expected)).max() < 1e-7


class LinearModel(eqx.Module):
    """u = ⟨θ, features⟩: the metric matrix is constant, and L² descent is preconditioned descent."""

    def field(self, params, x):
        return params @ x

    def loss(self, params, samples):
        return jnp.mean((samples.x @ params) ** 4) + 0.5 * jnp.sum(params**2)


def test_nesterov_flow_in_l2_is_nesterovs_method_preconditioned():
    batch = Samples(jnp.asarray(RNG.normal(size=(12, 3))))
    M = np.asarray(batch.x).T @ np.asarray(batch.x) / 12
    rate, theta0 = 0.02, jnp.array([1.0, -0.5, 0.3])
    y, x_prev, expected = np.asarray(theta0), np.asarray(theta0), []
    for k in range(STEPS):
        x = y - rate * np.linalg.solve(M, np.asarray(jax.grad(LinearModel().loss)(jnp.asarray(y), batch)))
        y, x_prev = x + k / (k + 3) * (x - x_prev), x
        expected.append(y)
    opt = published.nesterov(rate, angd.L2(), Normal(0.0))
    found = []
    params, state, step = theta0, opt.init(LinearModel(), theta0, batch), eqx.filter_jit(opt.step)
    for _ in range(STEPS):
        params, _, state, _ = step(LinearModel(), params, batch, state)
        found.append(np.asarray(params))
    assert np.abs(np.array(found) - np.array(expected)).max() < 1e-10


class NoisyModel(eqx.Module):
    """A residual that is linear in θ and cannot vanish, so that every set of points pulls elsewhere."""

    def residual(self, params, x):
        return params @ x - jnp.sin(3 * x[0]) - x[1] ** 2


def test_storm_flow_is_storm_with_gauss_newton_directions():
    """m = n + μ (m − n′), θ ← θ − rate/(1 − μ) m: n and n′ from the new and the old θ on the new points."""
    batches = [Samples(jnp.asarray(RNG.normal(size=(9, 3)))) for _ in range(STEPS)]
    mu, rate, problem = 0.8, 0.1, NoisyModel()
    theta, expected, old, m = np.array([1.0, -0.5, 0.3]), [], None, np.zeros(3)
    for batch in batches:
        x = np.asarray(batch.x)
        directions = [
            np.linalg.lstsq(x, x @ t - np.sin(3 * x[:, 0]) - x[:, 1] ** 2)[0] for t in (theta, old) if t is not None
        ]
        m = (1 - mu) * directions[0] if old is None else directions[0] + mu * (m - directions[1])
        old, theta = theta, theta - rate / (1 - mu) * m
        expected.append(theta)
    opt = angd.ANGD(angd.ARGFlow.storm(mu, rate), angd.Energy(), Normal(0.0))
    params, found = jnp.array([1.0, -0.5, 0.3]), []
    state, step = opt.init(problem, params, batches[0]), eqx.filter_jit(opt.step)
    for batch in batches:
        params, _, state, _ = step(problem, params, batch, state)
        found.append(np.asarray(params))
    assert np.abs(np.array(found) - np.array(expected)).max() < 1e-10


@pytest.mark.filterwarnings("ignore:the parameter")  # sinh of a parameter has no layer factors, and taps say so
def test_natural_gradient_direction_in_function_space_does_not_depend_on_the_parameters():
    """Undamped, under θ = φ(η) with φ smooth: O d is the same."""
    batch = Samples(jnp.asarray(RNG.normal(size=(30, 2))))

    class Reparametrised(Regression):
        def residual(self, params, x):
            return Regression().residual(jax.tree.map(lambda leaf: jnp.sinh(leaf) + leaf, params), x)

    def push(problem, params):
        opt = angd.ANGD(angd.ARGFlow.gradient(1.0), angd.Energy(), Normal(0.0))
        moved, *_ = eqx.filter_jit(opt.step)(problem, params, batch, opt.init(problem, params, batch))
        d = jax.tree.map(jnp.subtract, moved, params)
        return jacobian(problem.residual, params, batch.x).matvec(d)

    eta = THETA
    theta = jax.tree.map(lambda leaf: jnp.sinh(leaf) + leaf, eta)
    assert np.abs(push(Reparametrised(), eta) - push(Regression(), theta)).max() < 1e-6


def test_a_step_compiles_once_and_keeps_the_types_of_its_state():
    traces = []

    class Counting(Regression):
        def residual(self, params, x):
            traces.append(None)
            return super().residual(params, x)

    opt, problem = angd.ANGD(angd.ARGFlow.heavy_ball(0.9, 0.1), angd.Energy(), Kernel(1e-3)), Counting()
    step, params, state = eqx.filter_jit(opt.step), THETA, opt.init(problem, THETA, POINTS[0])
    params, _, state, _ = step(problem, params, POINTS[0], state)
    once = len(traces)
    for batch in POINTS[1:]:
        params, _, state, _ = step(problem, params, batch, state)
    assert len(traces) == once
