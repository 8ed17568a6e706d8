"""What each controller does to a step, seen from outside through `ANGD.step` and its report."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import angd
from angd import (
    ANGD,
    RESULTS,
    ARGFlow,
    Energy,
    FisherRao,
    Kernel,
    LevenbergMarquardt,
    LineSearch,
    Normal,
    ProjectedMomentum,
    Restart,
    Samples,
    StepNorm,
    TrustRegion,
    in_turn,
)


class Rosenbrock(eqx.Module):
    """r = (10 (y − x²), 1 − x): curved enough for undamped Gauss–Newton steps to overshoot."""

    def residual(self, params, x):
        return jnp.stack([10 * (params[1] - params[0] ** 2), 1 - params[0]])


class Arctan(eqx.Module):
    """r = arctan θ: from |θ| > 1.39 the Gauss–Newton iteration diverges."""

    def residual(self, params, x):
        return jnp.arctan(params)


ONE = Samples(jnp.zeros(1))
GAUSS_NEWTON = ARGFlow.gradient(1.0)


def walk(opt: Any, problem: Any, theta: Any, steps: int, samples: Any = ONE):
    """Parameters and reports, step after step."""
    params, state, step, seen = (
        jnp.asarray(theta),
        opt.init(problem, jnp.asarray(theta), samples),
        eqx.filter_jit(opt.step),
        [],
    )
    for _ in range(steps):
        params, _, state, info = step(problem, params, samples, state)
        seen.append((params, state, info))
    return seen


def test_step_norm_shortens_what_is_applied_and_not_what_is_remembered():
    opt = ANGD(GAUSS_NEWTON, Energy(), Normal(0.0), StepNorm(1e-4))
    ((params, state, info),) = walk(opt, Rosenbrock(), (-1.2, 1.0), 1)
    assert np.isclose(np.linalg.norm(params - jnp.array([-1.2, 1.0])), 1e-2)
    assert np.isclose(info.moved, 1e-2)
    assert np.isclose(info.norm, np.linalg.norm(state.previous.d))
    assert info.norm > 1
    loose = walk(ANGD(GAUSS_NEWTON, Energy(), Normal(0.0), StepNorm(1e4)), Rosenbrock(), (-1.2, 1.0), 1)[0][2]
    assert np.isclose(loose.moved, loose.norm)


def test_half_the_squared_length_in_fisher_rao_is_the_divergence_of_a_step():
    """θ = (m, log s) of a Gaussian: KL(ρ, ρ′) = log(s′/s) + (s² + (m − m′)²)/2s′² − ½."""

    class Line(eqx.Module):
        def log_density(self, params, x):
            return -((x - params[0]) ** 2) * jnp.exp(-2 * params[1]) / 2 - params[1]

        def variation(self, params, x):
            return x**2

    nodes, weights = np.polynomial.hermite_e.hermegauss(20)
    m, log_s = start = np.array([1.2, -0.4])
    samples = Samples(jnp.asarray(m + np.exp(log_s) * nodes), jnp.asarray(weights / weights.sum()))
    for C in (1e-4, 1e-6):
        opt = ANGD(GAUSS_NEWTON, FisherRao(), Normal(1e-8), StepNorm(C, in_metric=True))
        ((params, _, _),) = walk(opt, Line(), start, 1, samples)
        square = np.exp(2 * (log_s - params[1]))
        divergence = params[1] - log_s + (square + (m - params[0]) ** 2 * np.exp(-2 * params[1])) / 2 - 0.5
        assert np.isclose(divergence, C / 2, rtol=3 * C**0.5)


def test_a_step_that_the_samples_do_not_see_has_no_length_in_the_metric():
    """Projected momentum along the null space of G: nothing to shorten, and no division by zero."""

    class First(eqx.Module):
        def residual(self, params, x):
            return params[0]

    opt = ANGD(GAUSS_NEWTON, Energy(), ProjectedMomentum(0.5, Normal(1e-2)), StepNorm(1e-6, in_metric=True))
    params = jnp.zeros(2)
    state = eqx.tree_at(lambda s: s.previous.d, opt.init(First(), params, ONE), jnp.array([0.0, 4.0]))
    after, _, _, info = eqx.filter_jit(opt.step)(First(), params, ONE, state)
    assert np.allclose(after, [0.0, 2.0])
    assert bool(info.accepted)


def bowl_step(controller, d_prev):
    """One step on r = θ ∈ ℝ² from (1, 1) with momentum d_prev, μ = 0.9."""

    class Bowl(eqx.Module):
        def residual(self, params, x):
            return params

    opt = ANGD(ARGFlow.heavy_ball(0.9, 0.01), Energy(), Normal(1e-8), controller)
    params = jnp.ones(2)
    state = opt.init(Bowl(), params, ONE)
    state = eqx.tree_at(lambda s: (s.previous.d, s.previous.started), state, (jnp.asarray(d_prev), jnp.ones((), bool)))
    return eqx.filter_jit(opt.step)(Bowl(), params, ONE, state)


@pytest.mark.parametrize(
    ("controller", "d_prev", "acts"),
    [
        (Restart(), (3.0, 1.0), True),
        (Restart(), (-3.0, -1.0), False),
        (Restart(above=2.0), (-3.0, -1.0), True),
        (Restart(above=5.0), (-3.0, -1.0), False),
    ],
)
def test_restart_drops_the_momentum_when_told(controller, d_prev, acts):
    params, _, state, info = bowl_step(controller, d_prev)
    assert bool(info.restarted) == acts
    force = np.array([-0.1, -0.1])
    expected = force if acts else force + 0.9 * np.asarray(d_prev)
    assert np.allclose(state.previous.d, expected, atol=1e-6)
    assert np.allclose(params, 1 + 0.1 * expected, atol=1e-6)
    assert (info.result == RESULTS.restarted) if acts else (info.result == RESULTS.successful)


def test_line_search_takes_the_best_of_its_grid_and_rejects_when_nothing_helps():
    theta = jnp.asarray(5.0)
    opt = ANGD(GAUSS_NEWTON, Energy(), Normal(0.0), LineSearch(points=8))
    ((params, _, info),) = walk(opt, Arctan(), theta, 1)
    full = -np.arctan(5.0) * 26
    best = min((np.arctan(5.0 + full * 0.5**j) ** 2, 5.0 + full * 0.5**j) for j in range(8))[1]
    assert np.isclose(params, best)
    assert bool(info.accepted)
    stuck = walk(ANGD(GAUSS_NEWTON, Energy(), Normal(0.0), LineSearch()), Arctan(), 0.0, 1)[0]
    assert stuck[0] == 0.0
    assert stuck[2].result == RESULTS.rejected


def test_line_search_goes_on_by_quarters_where_halves_are_too_long():
    """A descent direction lowers the loss at some length, however wrong its scale is."""
    seen = walk(ANGD(ARGFlow.gradient(1e5), Energy(), Normal(0.0), LineSearch()), Arctan(), 0.1, 2)
    assert 1e5 * 0.5**11 > 2  # the shortest half still overshoots
    assert all(bool(info.accepted) for _, _, info in seen)
    assert np.isclose(seen[0][0], 0.1 - 1e5 * 0.25**8 * np.arctan(0.1) * 1.01, atol=1e-6)


def test_line_search_with_momentum_does_not_stall():
    """On fixed samples the same climbing direction would come back for ever: it searches from rest instead."""

    class Regression(eqx.Module):
        def residual(self, params, x):
            return jnp.tanh(params[:3] * x) @ params[3:] - jnp.sin(x)

    opt = ANGD(ARGFlow.momentum(0.9, 0.1), Energy(), Normal(1e-4), LineSearch())
    samples = Samples(jnp.linspace(-2, 2, 15))
    seen = walk(opt, Regression(), (0.5, -1.0, 1.5, 0.3, 0.7, -0.2), 40, samples)
    assert sum(not bool(info.accepted) for _, _, info in seen) < 5
    assert any(bool(info.restarted) for _, _, info in seen)


def lm_by_numpy(theta, damping, steps):
    """Levenberg–Marquardt on Rosenbrock, gain ratio against the quadratic model, four tries on one matrix."""
    seen = []

    def residual(t):
        return np.array([10 * (t[1] - t[0] ** 2), 1 - t[0]])

    for _ in range(steps):
        J, r = np.array([[-20 * theta[0], 10.0], [-1.0, 0.0]]), residual(theta)
        g, G, ratio = J.T @ r, J.T @ J, 0.0
        for _ in range(4):
            step = -np.linalg.solve(G + damping * np.eye(2), g)
            ratio = (r @ r - residual(theta + step) @ residual(theta + step)) / 2 / (-g @ step - step @ G @ step / 2)
            if ratio > 0:
                theta = theta + step
                break
            damping *= 3
        else:
            damping /= 3
        damping *= 0.5 if ratio > 0.75 else 3 if ratio < 0.25 else 1
        seen.append((theta, damping))
    return seen


def test_levenberg_marquardt_equals_the_textbook_loop():
    opt = ANGD(GAUSS_NEWTON, Energy(), Normal(1e-2), LevenbergMarquardt())
    found = walk(opt, Rosenbrock(), (-1.2, 1.0), 12)
    expected = lm_by_numpy(np.array([-1.2, 1.0]), 1e-2, 12)
    for (params, state, _), (theta, damping) in zip(found, expected, strict=True):
        assert np.allclose(params, theta, atol=1e-8)
        assert np.isclose(state.controller, damping)
    assert np.linalg.norm(found[-1][0] - 1) < 0.2


def test_levenberg_marquardt_rejects_and_leaves_parameters_and_momentum():
    """At the minimum of |r| with r ≠ 0 nothing helps: θ stays, λ grows, the momentum of the step before is kept."""

    class Floor(eqx.Module):
        def residual(self, params, x):
            return 1 + jnp.abs(params)

    opt = ANGD(ARGFlow.heavy_ball(0.5, 1.0), Energy(), Normal(1e-2), LevenbergMarquardt(tries=3))
    params = jnp.zeros(())
    state = opt.init(Floor(), params, ONE)
    state = eqx.tree_at(lambda s: s.previous.d, state, jnp.asarray(0.25))
    after, _, new, info = eqx.filter_jit(opt.step)(Floor(), params, ONE, state)
    assert after == params
    assert info.result == RESULTS.rejected
    assert not bool(info.accepted)
    assert new.previous.d == 0.25
    assert new.controller > state.controller
    assert new.t == state.t


class Beside(eqx.Module):
    """r = (1000, θ): in double precision the loss knows θ²/2 to about 1e-10."""

    def residual(self, params, x):
        return jnp.stack([1000.0 + 0 * params, params])


@pytest.mark.parametrize("controller", [LevenbergMarquardt(), TrustRegion()], ids=["LevenbergMarquardt", "TrustRegion"])
def test_a_decrease_within_the_rounding_of_the_loss_is_none(controller):
    opt = ANGD(GAUSS_NEWTON, Energy(), Normal(1e-3), controller)
    ((params, state, info),) = walk(opt, Beside(), 1.41e-5, 1)
    loss = 5e5 + 1.41e-5**2 / 2
    assert 0 < loss - 5e5 < 4 * np.finfo(float).eps * loss, "the loss cannot see it"
    assert info.result == RESULTS.rejected
    assert params == 1.41e-5
    assert state.controller == 1e-3, "more damping would not help"
    assert bool(walk(opt, Beside(), 1e-4, 1)[0][2].accepted)


@pytest.mark.parametrize("controller", [LevenbergMarquardt(), TrustRegion()], ids=["LevenbergMarquardt", "TrustRegion"])
def test_damping_does_not_grow_at_the_rounding_floor_and_new_samples_find_it_ready(controller):
    class Frequency(eqx.Module):
        def residual(self, params, x):
            return jnp.sin(params * x[0]) - x[1]

    places = np.linspace(0, 2, 12)

    def data(omega):
        return Samples(jnp.asarray(np.stack([places, np.sin(omega * places) + 0.3 * np.cos(9 * places)], axis=1)))

    opt = ANGD(GAUSS_NEWTON, Energy(), Normal(1e-3), controller)
    params, state, info = walk(opt, Frequency(), 1.0, 60, data(1.5))[-1]
    assert info.result == RESULTS.rejected
    assert state.controller < 1.0
    moved, _, _, info = eqx.filter_jit(opt.step)(Frequency(), params, data(1.6), state)
    assert bool(info.accepted)
    assert abs(moved - params) > 0.05


@pytest.mark.parametrize("controller", [LevenbergMarquardt(), TrustRegion()])
def test_damping_controllers_survive_a_matrix_that_cannot_be_factorised(controller):
    """Two equal samples and no damping: the first try is not finite, more damping makes it so."""

    class Two(eqx.Module):
        def residual(self, params, x):
            return jnp.sum(params) * x

    opt = ANGD(GAUSS_NEWTON, Energy(), Kernel(0.0), controller)
    samples = Samples(jnp.ones(3))
    plain = walk(ANGD(GAUSS_NEWTON, Energy(), Kernel(0.0)), Two(), (1.0, 2.0, 3.0, 4.0), 1, samples)[0][2]
    assert plain.result == RESULTS.singular
    ((_, _, info),) = walk(opt, Two(), (1.0, 2.0, 3.0, 4.0), 1, samples)
    assert np.isfinite(info.norm)
    assert bool(info.accepted)


def test_trust_region_takes_the_boldest_step_that_keeps_its_promise():
    """The choice is checked against all dampings of the grid, evaluated by hand."""
    problem, theta = Rosenbrock(), jnp.array([-1.2, 1.0])
    controller = TrustRegion(target=0.5, radii=9, decades=4.0)
    ((params, state, info),) = walk(ANGD(GAUSS_NEWTON, Energy(), Normal(1.0), controller), problem, theta, 1)
    J = np.asarray(jax.jacobian(problem.residual)(theta, None))
    r = np.asarray(problem.residual(theta, None))
    meets = []
    for damping in 10.0 ** np.linspace(-4, 4, 9):
        step = -np.linalg.solve(J.T @ J + damping * np.eye(2), J.T @ r)
        after = np.asarray(problem.residual(theta + step, None))
        if (r @ r - after @ after) / (r @ r - np.sum((r + J @ step) ** 2)) >= 0.5:
            meets.append((damping, step))
    damping, step = meets[0]
    assert np.isclose(info.damping, damping)
    assert np.allclose(params, theta + step, atol=1e-8)
    assert info.ratio >= 0.5
    assert np.isclose(state.controller, damping)


def test_trust_region_converges_where_gauss_newton_diverges():
    plain = walk(ANGD(GAUSS_NEWTON, Energy(), Normal(0.0)), Arctan(), 3.0, 6)
    assert not abs(plain[-1][0]) < 3
    opt = ANGD(GAUSS_NEWTON, Energy(), Normal(1e-2), TrustRegion())
    assert abs(walk(opt, Arctan(), 3.0, 15)[-1][0]) < 1e-8


@pytest.mark.parametrize("controller", [LevenbergMarquardt(), TrustRegion(radii=2, decades=1.0)])
def test_without_momentum_a_second_try_is_no_restart(controller):
    """From θ = 20 the first steps of arctan overshoot and are tried again; nobody should be told to lower μ."""
    seen = walk(ANGD(GAUSS_NEWTON, Energy(), Normal(1e-6), controller), Arctan(), 20.0, 4)
    assert not any(bool(info.restarted) for _, _, info in seen)
    assert all(info.result in (RESULTS.successful, RESULTS.rejected) for _, _, info in seen)


def test_trust_region_tries_larger_dampings_before_it_gives_up():
    """Within ± one decade every step from θ = 5 overshoots; two above, one lowers the loss, in the same step."""
    theta, start = 5.0, 1e-4
    ((params, _, info),) = walk(
        ANGD(GAUSS_NEWTON, Energy(), Normal(start), TrustRegion(radii=3, decades=1.0)), Arctan(), theta, 1
    )
    slope = 1 / (1 + theta**2)

    def after(damping):
        return theta - slope * np.arctan(theta) / (slope**2 + damping)

    assert min(abs(after(start * 10**k)) for k in (-1, 0, 1)) > theta
    assert bool(info.accepted)
    assert np.isclose(info.damping, 1e-2)
    assert np.isclose(params, after(1e-2))


def test_chained_controllers_act_in_order():
    opt = ANGD(GAUSS_NEWTON, Energy(), Normal(1e-2), in_turn([LevenbergMarquardt(), StepNorm(1e-4)]))
    _, _, info = walk(opt, Rosenbrock(), (-1.2, 1.0), 3)[-1]
    assert np.isclose(info.moved, 1e-2)
    assert np.isfinite(info.ratio)


def test_projected_momentum_works_under_every_controller():
    for controller in (Restart(), StepNorm(1e-2), LineSearch(), LevenbergMarquardt(), TrustRegion()):
        solver = ProjectedMomentum(0.5, Kernel(1e-2))
        last = walk(ANGD(GAUSS_NEWTON, Energy(), solver, controller), Rosenbrock(), (-1.2, 1.0), 5)[-1]
        assert np.all(np.isfinite(last[0]))


class Density(eqx.Module):
    def log_density(self, params, x):
        return -((x - params) ** 2) / 2

    def variation(self, params, x):
        return x**2


@pytest.mark.parametrize(
    ("make_it", "words"),
    [
        (lambda: StepNorm(0.0), "C must be positive"),
        (lambda: Restart(above=-1.0), "above must be positive"),
        (lambda: LineSearch(points=0), "at least 1"),
        (lambda: LevenbergMarquardt(up=0.5), "up > 1"),
        (lambda: TrustRegion(target=2.0), "0 < target < 1"),
        (lambda: in_turn([]), "an empty one"),
        (lambda: in_turn([StepNorm(1.0), "norm"]), "takes a list of controllers"),
        (
            lambda: ANGD(ARGFlow(h=0.1), FisherRao(), Normal(), LineSearch()).init(Density(), jnp.ones(()), ONE),
            "compares losses, but Density has no loss",
        ),
    ],
)
def test_misuse_is_refused_with_a_sentence(make_it, words):
    with pytest.raises(ValueError, match=words):
        make_it()


def test_a_loss_that_is_not_finite_after_the_step_is_no_decrease():
    """log θ is undefined beyond zero: damped controllers find a step that stays inside."""

    class Logarithm(eqx.Module):
        def residual(self, params, x):
            return jnp.log(params) + 5

    for controller in (LineSearch(), LevenbergMarquardt(tries=20), TrustRegion()):
        seen = walk(ANGD(GAUSS_NEWTON, Energy(), Normal(1e-4), controller), Logarithm(), 1.0, 3)
        assert all(np.isfinite(info.loss) for _, _, info in seen)
        assert seen[-1][0] > 0


def test_everything_named_in_the_report_is_there():
    _, _, info = walk(ANGD(GAUSS_NEWTON, Energy(), Normal(1e-2)), Rosenbrock(), (-1.2, 1.0), 1)[0]
    assert np.isclose(info.loss, 0.5 * (4.4**2 + 2.2**2))
    assert info.slope < 0
    assert np.isclose(info.damping, 1e-2)
    assert np.isnan(info.ratio)
    assert info.result == angd.RESULTS.successful


def test_a_geodesic_correction_solves_what_is_quadratic_in_one_step():
    """On Rosenbrock's valley the residual is quadratic, so that the bent Gauss–Newton step ends at the solution."""
    start = jnp.array([-1.2, 1.0])

    def end(**options):
        opt = ANGD(GAUSS_NEWTON, Energy(), Normal(1e-12), LevenbergMarquardt(tries=1, **options))
        return walk(opt, Rosenbrock(), start, 1)[0]

    params, _, info = end(geodesic=100.0)
    assert np.allclose(params, 1.0, atol=1e-6)
    assert bool(info.accepted)
    straight, _, _ = end()
    beyond, _, _ = end(geodesic=1e-3)
    assert np.array_equal(straight, beyond)
    assert not np.allclose(straight, 1.0, atol=1e-2)
    with pytest.raises(ValueError, match="geodesic must be"):
        LevenbergMarquardt(geodesic=-1.0)


def test_a_geodesic_correction_needs_residuals():
    class Regression(eqx.Module):
        def field(self, params, x):
            return params * x

        def loss(self, params, samples):
            return jnp.sum((params - 1) ** 2)

    opt = ANGD(GAUSS_NEWTON, angd.L2(), Normal(1e-3), LevenbergMarquardt(geodesic=0.75))
    with pytest.raises(ValueError, match="needs residuals, which L2 has not"):
        walk(opt, Regression(), jnp.asarray(0.5), 1, Samples(jnp.ones(3)))


class Bowl(eqx.Module):
    """r = θ ∈ ℝ²: the quadratic model is exact."""

    def residual(self, params, x):
        return params


def test_levenberg_marquardt_tries_again_from_rest_with_more_damping():
    """Momentum climbs; what is taken is −hγ r/(1 + 3λ), of which nothing is left of the momentum or of the first λ."""
    opt = ANGD(ARGFlow.heavy_ball(0.9, 0.01), Energy(), Normal(0.5), LevenbergMarquardt(up=3.0, down=2.0))
    params = jnp.ones(2)
    state = opt.init(Bowl(), params, ONE)
    state = eqx.tree_at(
        lambda s: (s.previous.d, s.previous.started), state, (jnp.array([3.0, 1.0]), jnp.ones((), bool))
    )
    after, _, new, info = eqx.filter_jit(opt.step)(Bowl(), params, ONE, state)
    d = -0.1 / (1 + 1.5) * np.ones(2)
    assert np.allclose(new.previous.d, d)
    assert np.allclose(after, 1 + 0.1 * d)
    assert bool(info.restarted)
    assert info.result == RESULTS.restarted
    assert np.isclose(info.damping, 1.5)
    assert np.isclose(info.ratio, 1.0)
    assert np.isclose(new.controller, 1.5 / 2)


def test_step_norm_after_a_search_bounds_the_step_that_the_search_left():
    """From θ = 5 the full step on arctan is −35.7, and the best of its halves a quarter of it or less."""
    start, full = jnp.asarray(5.0), np.arctan(5.0) * 26
    halves = full * 0.5 ** np.arange(8)
    best = halves[np.argmin(np.abs(np.arctan(5.0 - halves)))]
    assert best <= full / 4

    def moved(controllers):
        ((params, _, info),) = walk(ANGD(GAUSS_NEWTON, Energy(), Normal(0.0), in_turn(controllers)), Arctan(), start, 1)
        assert np.isclose(info.moved, 5.0 - params)
        return info.moved

    assert np.isclose(moved([LineSearch(points=8)]), best)
    assert np.isclose(moved([LineSearch(points=8), StepNorm((2 * best) ** 2)]), best), "nothing to shorten"
    assert np.isclose(moved([LineSearch(points=8), StepNorm((best / 2) ** 2)]), best / 2)
    assert np.isclose(moved([StepNorm((2 * best) ** 2), StepNorm((best / 2) ** 2)]), best / 2), "bounds of one step"


def test_a_geodesic_correction_of_a_shorter_step_is_that_of_its_arc():
    """r = θ² − 1 from 2, h = ½: d = −hγ r r′/(r′² + λ), a = −r′ r″d²/(r′² + λ), θ ← θ + h d + h²a/2 if |a| is small."""

    class Parabola(eqx.Module):
        def residual(self, params, x):
            return params**2 - 1

    h, gamma, damping = 0.5, 1.5, 0.3
    d = -h * gamma * 3 * 4 / (16 + damping)
    a = -4 * 2 * d**2 / (16 + damping)
    share = h * abs(a) / abs(d)
    for limit, bent in ((1.01 * share, 1.0), (0.99 * share, 0.0)):
        opt = ANGD(
            ARGFlow(h=h, alpha=1 / h, gamma=gamma),
            Energy(),
            Normal(damping),
            LevenbergMarquardt(tries=1, geodesic=limit),
        )
        ((params, state, info),) = walk(opt, Parabola(), 2.0, 1)
        assert bool(info.accepted)
        assert np.isclose(params, 2 + h * (d + bent * h * a / 2), rtol=1e-12)
        assert np.isclose(state.previous.d, d + bent * h * a / 2, rtol=1e-12)
