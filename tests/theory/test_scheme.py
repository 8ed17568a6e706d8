"""The discrete scheme converges to the flow at first order in h, with the known errors; wrong variants do not."""

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference import SobolevCircle
from schedules import Decaying

import angd
from angd.flow.schedules import OnePlusOverTime
from angd.method.metrics import L2, Energy, FisherRao, GridHs, Hs
from angd.method.samples import Samples
from angd.method.solvers import Normal
from angd.method.step import ANGD
from angd.method.transport import JVP, CurrentJVP, Printed

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(20)
NODES, WEIGHTS = jnp.asarray(NODES), jnp.asarray(WEIGHTS / WEIGHTS.sum())
EXACT = Normal(damping=0.0)


@eqx.filter_jit
def run(problem, theta0, metric, beta, gamma, transport, h, t0, steps):
    """θ after `steps` steps of size h; compiled once for all h."""
    flow = angd.ARGFlow(alpha=angd.OverTime(3.0), beta=beta, gamma=gamma, h=h, t0=t0)
    opt = ANGD(flow, metric, EXACT, transport=transport)

    def body(_, carry):
        params, state = carry
        params, _, state, _ = opt.step(problem, params, problem.samples(params), state)
        return params, state

    state = opt.init(problem, theta0, problem.samples(theta0))
    return jax.lax.fori_loop(0, steps, body, (theta0, state))[0]


def solve(problem, theta0, metric, h, span, beta: Any = 0.0, gamma: Any = 1.0, transport=None):
    steps = round((span[1] - span[0]) / h)
    start = jnp.asarray(theta0)
    return run(problem, start, metric, beta, gamma, transport or JVP(), jnp.asarray(h), span[0], jnp.asarray(steps))


def errors(problem, theta0, metric, hs, span, exact, read=lambda theta: theta, **kwargs):
    ends = [read(solve(problem, theta0, metric, h, span, **kwargs)) for h in hs]
    return np.array([np.abs(np.asarray(end) - np.asarray(exact)).max() for end in ends])


def halvings(first, count):
    return [first / 2**i for i in range(count)]


def assert_first_order(found, listed, tolerance=0.05):
    """Errors at both ends as listed, and the last order within 0.05 of one."""
    assert np.allclose([found[0], found[-1]], listed, rtol=tolerance)
    assert abs(np.log2(found[-2] / found[-1]) - 1) < 0.05


class GaussianLine(eqx.Module):
    """ρ = N(m, s²), θ = (m, log s), KL to N(0, 1), on Gauss–Hermite points of the present density."""

    def log_density(self, params, x):
        return -((x - params[0]) ** 2) * jnp.exp(-2 * params[1]) / 2 - params[1]

    def variation(self, params, x):
        return self.log_density(params, x) + x**2 / 2

    def samples(self, params):
        return Samples(params[0] + jnp.exp(params[1]) * NODES, WEIGHTS)


class HarmonicOscillator(GaussianLine):
    """log|ψ| = −(x − m)²/4s²: the variation is the local energy."""

    def variation(self, params, x):
        s2 = jnp.exp(2 * params[1])
        return 1 / (4 * s2) - (x - params[0]) ** 2 / (8 * s2**2) + x**2 / 2


class Softmax(eqx.Module):
    """Five categories, four logits, KL to a target; the sum over categories is exact."""

    target: Any

    def log_density(self, params, x):
        return jax.nn.log_softmax(jnp.append(params, 0.0))[x]

    def variation(self, params, x):
        return self.log_density(params, x) - jnp.log(self.target)[x]

    def samples(self, params):
        return Samples(jnp.arange(5), jax.nn.softmax(jnp.append(params, 0.0)))


FR = FisherRao(limit=None)
GAUSSIAN = {
    "0": (Decaying(0.0), (0.23051465, -0.15599028), (2.954e-3, 1.939e-4)),
    "0.4": (Decaying(0.4), (0.30323261, -0.10061873), (3.099e-3, 2.052e-4)),
    "0.4/(1+t)": (Decaying(0.4, 1.0), (0.24943179, -0.13724932), (2.563e-3, 1.705e-4)),
}
START, SPAN = (1.2, np.log(0.7)), (1.0, 4.0)


@pytest.mark.parametrize("name", GAUSSIAN)
def test_fisher_rao_on_gaussians_is_first_order_with_the_known_errors(name):
    beta, exact, listed = GAUSSIAN[name]
    found = errors(GaussianLine(), START, FR, halvings(0.06, 5), SPAN, exact, beta=beta)
    assert_first_order(found, listed)


@pytest.mark.parametrize(("name", "error"), [("0", 0.120), ("0.4", 0.122), ("0.4/(1+t)", 0.123)])
def test_transport_at_the_current_parameters_misses_the_connection(name, error):
    beta, exact, _ = GAUSSIAN[name]
    found = errors(GaussianLine(), START, FR, [0.0075, 0.00375], SPAN, exact, beta=beta, transport=CurrentJVP())
    assert np.allclose(found, error, rtol=0.03)


class PrintedFisherRao(FisherRao):
    """Test only: the right-hand side with the printed signs of the β-terms (E3)."""

    def _carried(self, context, problem, e, old):
        c, beta, phi = context.c, context.beta_prev, self._velocity(context, problem)
        return c.mu * phi - c.h / 2 * phi * (phi + beta * old) + beta * (e - old)


PRINTED, UNCORRECTED = PrintedFisherRao(limit=None), FisherRao(limit=None, correction=False)


@pytest.mark.parametrize(
    ("metric", "name", "error"), [(PRINTED, "0.4", 0.445), (UNCORRECTED, "0", 0.292), (UNCORRECTED, "0.4", 0.062)]
)
def test_printed_signs_and_a_missing_correction_do_not_converge(metric, name, error):
    """E3: the printed signs are negative Hessian damping; and R = 0 is another flow."""
    beta, exact, _ = GAUSSIAN[name]
    found = errors(GaussianLine(), START, metric, [0.0075, 0.00375], SPAN, exact, beta=beta)
    assert np.all(found > 0.05)
    assert np.isclose(found[-1], error, rtol=0.05)


@pytest.mark.parametrize(
    ("beta", "exact", "listed"),
    [
        (0.0, (0.351536, 0.100564, 0.251393, 0.196571, 0.099936), (2.787e-4, 1.926e-5)),
        (0.4, (0.353372, 0.100444, 0.242100, 0.209423, 0.094662), (3.326e-4, 2.231e-5)),
    ],
)
def test_fisher_rao_on_the_simplex_is_first_order_with_the_known_errors(beta, exact, listed):
    problem = Softmax(jnp.array([0.35, 0.1, 0.25, 0.2, 0.1]))
    logits = np.array([0.8, -0.5, 0.1, 0.6]) + 1.0
    found = errors(
        problem,
        logits,
        FR,
        halvings(0.06, 5),
        SPAN,
        exact,
        read=lambda theta: jax.nn.softmax(jnp.append(theta, 0.0)),
        beta=Decaying(beta),
    )
    assert_first_order(found, listed)


IMPLICIT = FisherRao(limit=None, implicit=True)


@pytest.mark.parametrize("name", GAUSSIAN)
def test_the_implicit_quadratic_term_is_first_order_too(name):
    beta, exact, listed = GAUSSIAN[name]
    found = errors(GaussianLine(), START, IMPLICIT, halvings(0.06, 5), SPAN, exact, beta=beta)
    assert abs(np.log2(found[-2] / found[-1]) - 1) < 0.05
    assert listed[1] < found[-1] < 10 * listed[1], "larger than the explicit one's"


def free(metric, phi, h, steps):
    """Densities and velocities of a free motion (α = β = γ = 0) that starts with ∂ₜ log ρ = φ on five categories."""
    problem, theta = Softmax(jnp.full(5, 0.2)), jnp.array([0.8, -0.5, 0.1, 0.6])
    opt = ANGD(angd.ARGFlow(gamma=0.0, h=h), metric, EXACT)
    d, state = jnp.asarray(phi)[:4] - phi[4], opt.init(problem, theta, problem.samples(theta))
    state = eqx.tree_at(lambda s: (s.previous.d, s.previous.started), state, (d, jnp.ones((), bool)))
    step, seen = eqx.filter_jit(opt.step), []
    for _ in range(steps):
        rho = problem.samples(theta).omega
        theta, _, state, info = step(problem, theta, problem.samples(theta), state)
        velocity = np.append(state.previous.d, 0.0)
        seen.append((rho, velocity - rho @ velocity, info))
    return seen


def centred(phi):
    """φ less its mean at the start of `free`."""
    rho = np.asarray(jax.nn.softmax(jnp.array([0.8, -0.5, 0.1, 0.6, 0.0])))
    return np.asarray(phi) - rho @ np.asarray(phi)


@pytest.mark.parametrize("metric", [FR, IMPLICIT], ids=["explicit", "implicit"])
def test_a_free_motion_is_a_great_circle_of_the_roots(metric):
    """√ρ(t) = √ρ cos ωt + ∂ₜ√ρ sin ωt / ω with ∂ₜ√ρ = √ρ φ/2 and ω its length."""
    phi, time, found = centred([0.9, -0.7, 0.2, 0.4, -0.5]), 1.0, []
    root = np.sqrt(jax.nn.softmax(jnp.array([0.8, -0.5, 0.1, 0.6, 0.0])))
    omega = np.linalg.norm(root * phi / 2)
    exact = (root * np.cos(omega * time) + root * phi / 2 * np.sin(omega * time) / omega) ** 2
    for h in (0.02, 0.01, 0.005):
        rho = free(metric, phi, h, round(time / h) + 1)[-1][0]
        found.append(np.abs(rho - exact).max())
    assert abs(np.log2(found[-2] / found[-1]) - 1) < 0.05
    assert found[-1] < 1e-3


def riccati(phi, h, steps=4000):
    """x(h) of ẋ = −x²/2 from φ, by the classical Runge–Kutta method."""
    x, dt = np.asarray(phi, float), h / steps
    for _ in range(steps):
        a = -(x**2) / 2
        b = -((x + dt / 2 * a) ** 2) / 2
        c = -((x + dt / 2 * b) ** 2) / 2
        e = -((x + dt * c) ** 2) / 2
        x = x + dt / 6 * (a + 2 * b + 2 * c + e)
    return x


def test_the_implicit_quadratic_term_is_the_exact_solution_of_its_equation():
    """Where −1 < hφ; hφ = 3 among them, which the explicit form would turn to −1.5."""
    h = 0.1
    phi = centred(np.array([-0.8, 3.0, -0.3, 0.1, 0.5]) / h)
    assert h * phi.min() > -1
    ((_, found, _),) = free(IMPLICIT, phi, h, 1)
    assert np.allclose(found, centred(riccati(phi, h)), rtol=1e-6)


def test_the_implicit_quadratic_term_stays_bounded_where_the_explicit_one_explodes():
    h = 0.1
    phi = centred(np.array([40.0, -30.0, 5.0, -2.0, 0.0]) / h)
    implicit = free(IMPLICIT, phi, h, 30)
    assert all(bool(info.accepted) for _, _, info in implicit)
    assert max(np.abs(velocity).max() for _, velocity, _ in implicit) <= 4 / h, "±2/h, and its mean taken off"
    explicit = free(FR, phi, h, 3)
    sizes = [np.abs(velocity).max() for _, velocity, info in explicit if bool(info.accepted)]
    assert len(sizes) < 3 or sizes[-1] > 1e3 * np.abs(phi).max()


@pytest.mark.parametrize(
    ("beta", "exact", "listed"),
    [(0.0, (0.164272, -0.521744), (2.43e-2, 1.59e-3)), (0.3, (0.162986, -0.434563), (1.75e-2, 1.14e-3))],
)
def test_variational_oscillator_is_first_order_with_the_known_errors(beta, exact, listed):
    problem = HarmonicOscillator()
    found = errors(problem, (1.5, np.log(1.1)), FR, halvings(0.08, 5), (1.0, 5.0), exact, beta=Decaying(beta))
    assert_first_order(found, listed)


def test_oscillator_sampled_by_monte_carlo_agrees_within_its_error_bars():
    """Fresh samples each step, n = 2000, h = 0.04: the mean over seeds is the deterministic result."""

    @partial(jax.jit, static_argnums=1)
    def end(key, n):
        problem = HarmonicOscillator()
        flow = angd.ARGFlow(alpha=angd.OverTime(3.0), h=0.04, t0=1.0)
        opt = ANGD(flow, FR, EXACT)
        theta = jnp.array([1.5, jnp.log(1.1)])

        def body(i, carry):
            params, state = carry
            x = params[0] + jnp.exp(params[1]) * jax.random.normal(jax.random.fold_in(key, i), (n,))
            params, _, state, _ = opt.step(problem, params, Samples(x), state)
            return params, state

        return jax.lax.fori_loop(0, 100, body, (theta, opt.init(problem, theta, Samples(jnp.zeros(n)))))[0]

    ends = np.array([end(key, 2000) for key in jax.random.split(jax.random.key(0), 12)])
    standard_error = ends.std(axis=0, ddof=1) / np.sqrt(len(ends))
    deterministic = np.asarray(
        solve(HarmonicOscillator(), (1.5, np.log(1.1)), FR, 0.04, (1.0, 5.0), beta=Decaying(0.0))
    )
    assert np.all(np.abs(ends.mean(axis=0) - deterministic) < 4 * standard_error + 1e-3)
    assert np.all(standard_error < 5e-3)


WAVE = np.arange(1, 8)


class FourierSeries(eqx.Module):
    """The full Fourier model on 15 points: every function on the grid is reached, so the flow must be found exactly."""

    def field(self, params, x):
        return params[0] + params[1:8] @ jnp.cos(WAVE * x) + params[8:] @ jnp.sin(WAVE * x)

    def loss(self, params, samples):
        u = jax.vmap(self.field, (None, 0))(params, samples.x)
        slope = jax.vmap(jax.grad(self.field, 1), (None, 0))(params, samples.x)
        return jnp.mean(0.025 * slope**2 + u**4 / 4 - SobolevCircle.F * u)

    def samples(self, params):
        return Samples(jnp.asarray(SobolevCircle.x))

    def values(self, params):
        return jax.vmap(self.field, (None, 0))(params, jnp.asarray(SobolevCircle.x))


@pytest.mark.parametrize("beta", [0.0, 0.2])
@pytest.mark.parametrize("s", [-1, 0, 1, 2])
def test_sobolev_metrics_are_first_order_and_equal_the_recursion_on_the_grid(s, beta):
    """The full Fourier model; s < 0 by the elliptic solve of `GridHs`, which needs no derivatives of f."""
    judge, problem = SobolevCircle(s, beta), FourierSeries()
    theta0 = np.zeros(15)
    theta0[0], theta0[8] = 0.2, 0.8
    metric = GridHs(angd.SobolevManifold(s, 15)) if s < 0 else Hs(s) if s else L2()

    def end(h):
        theta = solve(problem, theta0, metric, h, (1.0, 4.0), beta=Decaying(beta, 0.3), gamma=OnePlusOverTime(0.2))
        return np.asarray(problem.values(theta))

    coarse, fine = end(0.01), end(0.005)
    assert np.abs(coarse - judge.scheme(0.01, 1.0, 300)).max() < 1e-9
    exact = judge.exact(1.0, 4.0)
    assert abs(np.log2(np.abs(coarse - exact).max() / np.abs(fine - exact).max()) - 1) < 0.05


@pytest.mark.parametrize(("s", "listed"), [(0, 9.43e-4), (1, 1.03e-3), (2, 6.8e-4), (-1, 1.33e-3)])
def test_known_errors_of_the_sobolev_flows_belong_to_the_printed_form(s, listed):
    """They are those of the paper's L² form with analytic β̇; the default recursion is closer to the flow for s ≥ 0."""
    judge = SobolevCircle(s)
    exact = judge.exact(1.0, 4.0)
    printed = np.abs(judge.scheme(0.0025, 1.0, 1200, printed_form=True) - exact).max()
    assert np.isclose(printed, listed, rtol=0.05)
    if s >= 0:
        assert np.abs(judge.scheme(0.0025, 1.0, 1200) - exact).max() < printed


POINTS = jnp.asarray(np.linspace(-2, 2, 21))


class Bump(eqx.Module):
    """θ₀ tanh(θ₁x + θ₂) fitted to a sine: a curved model, on which transports differ."""

    def field(self, params, x):
        return params[0] * jnp.tanh(params[1] * x + params[2])

    def loss(self, params, samples):
        u = jax.vmap(self.field, (None, 0))(params, samples.x)
        return 0.5 * jnp.mean((u - jnp.sin(samples.x)) ** 2)

    def samples(self, params):
        return Samples(POINTS)


def induced_metric(theta):
    """M(θ) = mean of ∂u ∂uᵀ: the metric that L² induces on the parameters."""
    J = jax.vmap(jax.grad(Bump().field), (None, 0))(theta, POINTS)
    return J.T @ J / POINTS.shape[0]


def bump_loss(theta):
    return Bump().loss(theta, Samples(POINTS))


@pytest.mark.parametrize("beta", [0.0, 0.3])
def test_only_the_jvp_at_the_old_parameters_converges_to_the_flow_of_the_induced_metric(beta):
    """E7: the judge is the covariant flow of M(θ) on ℝ³, by Christoffel symbols. The printed recursion misses it."""
    theta0, span = jnp.array([0.6, 0.8, 0.4]), (1.0, 4.0)
    exact = angd.solve_flow(
        angd.MatrixManifold(induced_metric),
        bump_loss,
        angd.ARGFlow(alpha=angd.OverTime(3.0), beta=beta),
        theta0,
        *span,
        form="covariant",
        save=3,
    ).rho[-1]
    hs = [0.02, 0.01, 0.005]

    def found(transport):
        return errors(Bump(), theta0, L2(), hs, span, exact, beta=Decaying(beta), transport=transport)

    right = found(JVP())
    assert abs(np.log2(right[-2] / right[-1]) - 1) < 0.05
    for wrong in (found(CurrentJVP()), found(Printed())):
        assert wrong.min() > 50 * right[-1]


def by_hand(theta, h, steps, damping, beta):
    """Form (P) with the covector v carried: v = μ(v + β_{k−1} g_{k−1}) − (μβ_k + hγ − β_k + β_{k−1}) g_k, no origin."""
    v, g_old, beta_old = np.zeros(3), np.zeros(3), 0.0
    for k in range(steps):
        t = 1.0 + k * h
        mu, now, g = 1 - 3 * h / t, float(beta(k, t)), np.asarray(jax.grad(bump_loss)(theta))
        carried = mu * (v + beta_old * g_old) - (mu * now + h - now + beta_old) * g
        v = carried if k else -h * g
        theta = theta + h * np.linalg.solve(np.asarray(induced_metric(theta)) + damping * np.eye(3), v)
        g_old, beta_old = g, now
    return theta


def test_printed_is_the_recursion_of_the_paper_with_its_covector_and_without_origin():
    h, steps, damping, beta = 0.05, 30, 0.1, Decaying(0.4, 0.3)
    flow = angd.ARGFlow(alpha=angd.OverTime(3.0), beta=beta, h=h)
    opt, samples = ANGD(flow, L2(), Normal(damping), transport=Printed()), Samples(POINTS)
    theta = start = jnp.array([0.6, 0.8, 0.4])
    state, step = opt.init(Bump(), theta, samples), eqx.filter_jit(opt.step)
    for _ in range(steps):
        theta, _, state, _ = step(Bump(), theta, samples, state)
    expected = by_hand(np.asarray(start), h, steps, damping, beta)
    assert np.allclose(theta, expected, atol=1e-12)
    assert np.abs(expected - start).max() > 0.1


class ThreeEquations(eqx.Module):
    """A nonlinear map of ℝ³ whose residual obeys r̈ + (α + β) ṙ + γr = 0 exactly."""

    def residual(self, u, x):
        return jnp.stack([u[0] + 0.3 * jnp.sin(u[1]) - 0.5, u[1] + 0.2 * u[0] ** 2 + 0.4, u[2] + 0.3 * u[0] * u[1]])

    def samples(self, params):
        return Samples(jnp.zeros(1))


def test_energy_metric_drives_the_residual_like_a_damped_oscillator():
    problem = ThreeEquations()
    exact = (0.0317544, -0.0052326, 0.0878520)
    found = errors(
        problem,
        (0.9, -0.6, 0.8),
        Energy(),
        halvings(0.02, 4),
        (1.0, 4.0),
        exact,
        read=lambda u: problem.residual(u, None),
        beta=Decaying(0.5),
    )
    assert abs(np.log2(found[-2] / found[-1]) - 1) < 0.05
    assert found[-1] < 2e-3


def test_covector_transport_is_refused_where_it_has_no_meaning():
    with pytest.raises(ValueError, match="use JVP"):
        solve(GaussianLine(), START, FR, 0.1, SPAN, transport=Printed())


def test_a_direction_that_is_not_finite_never_reaches_the_parameters():
    class Broken(GaussianLine):
        def variation(self, params, x):
            return jnp.full_like(x, jnp.nan)

    problem, theta = Broken(), jnp.asarray(START)
    opt = ANGD(angd.ARGFlow(h=0.1), FR, EXACT)
    state = opt.init(problem, theta, problem.samples(theta))
    after, _, state, info = opt.step(problem, theta, problem.samples(theta), state)
    assert not bool(info.ok)
    assert np.array_equal(after, theta)
    assert np.all(np.isfinite(state.previous.d))
