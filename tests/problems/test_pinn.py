"""Physics-informed problems: references against independent computations, derivatives, samplers, refusals."""

import warnings
from collections.abc import Callable
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from angd.method.jacobian import Dense, jacobian
from angd.method.samples import Samples
from angd.problems.pinn import (
    Adaptive,
    Balanced,
    Box,
    Condition,
    Data,
    Faces,
    Fixed,
    Mirrored,
    Network,
    Periodic,
    Problem,
    Renewed,
    Sobol,
    Uniform,
    burgers,
    d,
    euler,
    heat,
    observed,
)

SMALL = Network((6, 5))
KEY = jax.random.key(0)


def cole_hopf(initial, z):
    """The exact solution once more, in JAX: one trapezoidal rule, so that autodiff can be its judge."""
    y = np.linspace(-3, 3, 24001)
    mirrored = 1 - np.abs((y + 1) % 4 - 2)
    exponent = -((z[1] - y) ** 2 / (2 * z[0]) + burgers.INITIAL[initial].integral(mirrored)) / (2 * burgers.NU)
    w = jnp.exp(exponent - jax.lax.stop_gradient(exponent.max()))
    return jnp.sum((z[1] - y) / z[0] * w) / jnp.sum(w)


POINTS = np.array([[0.2, 0.3], [0.45, -0.05], [0.5, 0.002], [0.9, 0.7], [0.3, -0.95]])


@pytest.mark.parametrize("initial", ["-sin", "sin", "1-cos"])
def test_exact_solution_satisfies_the_equation(initial):
    """u_t + u u_x − ν u_xx = 0 by autodiff of the reference, which is the one that errors are measured by."""
    for z in POINTS:
        r = burgers.residual(lambda y: cole_hopf(initial, y), jnp.asarray(z))
        scale = abs(d(lambda y: cole_hopf(initial, y), 0)(jnp.asarray(z))) + 1
        assert abs(r) < 1e-8 * scale
    again = jax.jit(jax.vmap(lambda z: cole_hopf(initial, z)))(jnp.asarray(POINTS))
    assert np.allclose(again, burgers.solution(initial, POINTS), atol=1e-11)


class Exact(eqx.Module):
    """A field that needs no training, in the place of a network."""

    field: Callable = eqx.field(static=True)
    outputs: int | None = eqx.field(static=True, default=None)
    embed: None = None

    def init(self, key, dimension):
        return jnp.zeros(1)

    def __call__(self, params, z):
        return self.field(z) + 0 * params[0]


def burgers_field(initial):
    def field(z):
        later = cole_hopf(initial, z.at[0].set(jnp.where(z[0] > 0, z[0], 1.0)))
        return jnp.where(z[0] > 0, later, burgers.INITIAL[initial].h(z[1]))

    return field


def gas(z):
    """The Riemann solution at t > 0 in JAX, by Riemann invariants; at t = 0 the two states."""
    c = jnp.sqrt(euler.GAMMA * 0.4)
    s = jnp.abs(z[1] - 0.5) / jnp.where(z[0] > 0, z[0], 1e-30)
    # u − 2c/(γ − 1) is constant through the right fan, and u + c = s in it.
    sound = jnp.clip((s - 2.0 + 5 * c) / 6, euler_star_sound(), c)
    u = 2.0 - 5 * (c - sound)
    rho = (sound / c) ** 5
    return jnp.stack([rho, jnp.where(z[1] < 0.5, -u, u), 0.4 * rho**1.4])


def euler_star_sound():
    rho, _, p = euler.star()
    return (euler.GAMMA * p / rho) ** 0.5


def heat_field(z):
    return jnp.exp(-heat.KAPPA * jnp.pi**2 * z[0]) * jnp.sin(jnp.pi * z[1])


@pytest.mark.parametrize(
    ("make", "field", "outputs"),
    [
        *((lambda network, h=h: burgers.burgers(h, network), burgers_field(h), None) for h in burgers.INITIAL),
        (heat.heat, heat_field, None),
        (euler.euler, gas, 3),
    ],
)
def test_the_loss_of_every_problem_is_zero_on_its_exact_solution(make, field, outputs):
    """All terms of the loss, through `Problem` itself, at random points that keep away from kinks and t < 0.05."""
    problem = make(Exact(field, outputs))
    samples = Uniform(**dict.fromkeys(problem.places(), 12))(KEY, problem, None)
    inside = samples["interior"].x
    early = jnp.stack([jnp.maximum(inside[:, 0], 0.05), inside[:, 1]], axis=1)
    samples |= {"interior": Samples(early)}
    wrong = make(Exact(lambda z: 1.001 * field(z), outputs))
    right, off = (jax.jit(lambda params, p=p: p.loss(params, samples))(jnp.zeros(1)) for p in (problem, wrong))
    assert right < 1e-14
    assert off > 1e-9


def test_heat_s_reference_is_its_exact_solution():
    z, u = heat.reference()
    assert np.allclose(jax.vmap(heat_field)(jnp.asarray(z)), u, atol=1e-14)


def test_euler_s_own_residual_and_constraint_hold_on_the_exact_solution():
    """The default problem: residual × t/T of a field whose density and pressure are given as logarithms."""
    z = euler.reference()[0][::20]
    assert np.allclose(jax.vmap(gas)(jnp.asarray(z)), euler.solution(z), atol=1e-12)

    def logarithms(y):
        state = gas(y)
        return jnp.stack([jnp.log(state[0]), state[1], jnp.log(state[2])])

    problem = euler.euler()
    exact = Problem(Exact(logarithms, 3), problem.domain, problem.equation, problem.conditions, problem.constraint)
    samples = Uniform(interior=40, initial=10)(KEY, exact, None)
    assert exact.loss(jnp.zeros(1), samples) < 1e-14
    twice = Problem(Exact(gas, 3), problem.domain, problem.equation, problem.conditions, problem.constraint)
    assert twice.loss(jnp.zeros(1), samples) > 1e-3


MIRRORED = Mirrored(Network((5,), embed=burgers.PERIODIC), axis=1)


@pytest.mark.parametrize(
    "make",
    [
        lambda: burgers.burgers("-sin", MIRRORED),
        lambda: burgers.burgers("1-cos", SMALL),
        pytest.param(euler.euler, marks=pytest.mark.slow),
    ],
)
@pytest.mark.filterwarnings("error")
def test_jacobians_of_residuals_are_those_of_plain_reverse_mode(make):
    """Through mirrors, embeddings and constraints, for every term, by the layers' factors and not by a fallback."""
    problem = make()
    params = problem.init(KEY)
    for name, f in problem.residuals.items():
        z = Uniform(**dict.fromkeys(problem.places(), 3))(KEY, problem, params)[name].x
        rows = jax.jit(jax.vmap(jax.jacrev(f), (None, 0)))(params, z)
        plain = np.concatenate(
            [np.asarray(leaf).reshape(z.shape[0] * max(1, f(params, z[0]).size), -1) for leaf in jax.tree.leaves(rows)],
            axis=1,
        )
        found = eqx.filter_jit(partial(jacobian, f, form=Dense))(params, z)
        direction = jax.tree.map(lambda leaf: jnp.cos(jnp.arange(leaf.size, dtype=float)).reshape(leaf.shape), params)
        flat = np.concatenate([np.asarray(leaf).ravel() for leaf in jax.tree.leaves(direction)])
        assert np.allclose(found.matvec(direction).ravel(), plain @ flat, atol=1e-10)
        assert np.allclose(found.kernel(), plain @ plain.T, atol=1e-9 * np.abs(plain @ plain.T).max())


@pytest.mark.parametrize("initial", ["-sin", "sin", "1-cos"])
def test_reference_does_not_depend_on_its_quadrature_and_meets_its_conditions(initial):
    fine = burgers.solution(initial, POINTS, panel=0.005, nodes=24)
    assert np.abs(burgers.solution(initial, POINTS) - fine).max() < 1e-12
    walls = burgers.solution(initial, np.array([[0.3, -1.0], [0.3, 1.0], [1.0, 1.0]]))
    assert np.abs(walls).max() < 1e-12
    x = np.linspace(-1, 1, 9)
    early, start = (burgers.solution(initial, np.stack([np.full(9, t), x], axis=1)) for t in (1e-6, 0.0))
    assert np.allclose(early, start, atol=1e-4)


def test_steepest_slope_is_the_published_one():
    """∂u/∂x(0, t = 1.6037/π) = −152.00516 for −sin πx (Basdevant et al. 1986)."""
    t, h = 1.6037 / np.pi, 2e-5
    ahead, behind = burgers.solution("-sin", np.array([[t, h], [t, -h]]))
    assert abs((ahead - behind) / (2 * h) + 152.00516) < 0.01


def finite_differences(initial, cells, t):
    """Second-order conservative differences with odd ghost cells, integrated by scipy's LSODA."""
    dx = 2 / cells
    x = -1 + dx * (np.arange(cells) + 0.5)

    def field(_, u):
        wide = np.concatenate([[-u[0]], u, [-u[-1]]])
        flux = (wide[:-1] ** 2 + wide[:-1] * wide[1:] + wide[1:] ** 2) / 6
        return -np.diff(flux) / dx + burgers.NU * np.diff(wide, 2) / dx**2

    start = np.asarray(burgers.INITIAL[initial].h(x))
    return x, solve_ivp(field, (0, t), start, "LSODA", rtol=1e-8, atol=1e-10, lband=1, uband=1).y[:, -1]


@pytest.mark.parametrize("initial", ["-sin", "sin", "1-cos"])
def test_reference_is_the_limit_of_finite_differences(initial):
    """Errors fall fourfold when cells are halved, towards the reference and nothing else."""
    errors = []
    for cells in (1000, 2000):
        x, u = finite_differences(initial, cells, 0.25)
        exact = burgers.solution(initial, np.stack([np.full(cells, 0.25), x], axis=1))
        errors.append(np.linalg.norm(u - exact) / np.linalg.norm(exact))
    assert errors[1] < 2e-3
    assert 3.4 < errors[0] / errors[1] < 4.6


def test_riemann_solution_has_the_published_star_state_and_conserves():
    rho, u, p = euler.star()
    assert np.allclose([rho, u, p], [0.021852, 0.0, 0.0018939], atol=1e-6)
    z = np.array([[0.2, 0.62], [0.1, 0.7], [0.15, 0.35]])
    eps = 1e-5

    def conserved(y):
        return np.stack([np.asarray(euler.conserved(jnp.asarray(s))) for s in euler.solution(y)])

    def flux(y):
        return np.stack([np.asarray(euler.flux(jnp.asarray(s))) for s in euler.solution(y)])

    t, x = eps * np.array([[1.0, 0.0]]), eps * np.array([[0.0, 1.0]])
    balance = (conserved(z + t) - conserved(z - t) + flux(z + x) - flux(z - x)) / (2 * eps)
    assert np.abs(balance).max() < 1e-5
    assert np.allclose(euler.solution(np.array([[0.0, 0.2], [0.0, 0.8]])), [euler.LEFT, euler.RIGHT])


def test_gas_leaves_both_ends_faster_than_sound_and_the_ends_are_not_left_alone():
    """u − c > 0 at x = 1 at all times, so nothing may be prescribed there; and the state there changes in time."""
    rho, u, p = euler.solution(np.stack([np.linspace(0.001, 0.2, 50), np.ones(50)], axis=1)).T
    assert np.all(u - np.sqrt(euler.GAMMA * p / rho) > 0.5)
    assert np.isclose(rho[0], 1.0)
    assert rho[-1] < 0.8


def test_derivatives_of_a_field_are_those_of_nested_reverse_mode_and_of_differences():
    params = SMALL.init(KEY, 2)

    def u(z):
        return SMALL(params, z)

    z, eps = jnp.array([0.3, -0.4]), 1e-5
    assert np.isclose(d(u, 1)(z), jax.grad(u)(z)[1], atol=1e-12)
    assert np.isclose(d(u, 0, 1)(z), jax.hessian(u)(z)[0, 1], atol=1e-12)
    shift = jnp.array([0.0, eps])
    third = jax.grad(lambda y: jax.hessian(u)(y)[1, 1])(z)[0]
    assert np.isclose(d(u, 1, 0, 1)(z), third, atol=1e-11)
    both = d(lambda y: jnp.stack([u(y), u(y) ** 2]), 1)(z)
    assert np.allclose(both, [jax.grad(u)(z)[1], 2 * u(z) * jax.grad(u)(z)[1]], atol=1e-12)
    assert np.isclose(d(u, 1, 1)(z), (u(z + shift) - 2 * u(z) + u(z - shift)) / eps**2, atol=1e-4)


@pytest.mark.parametrize("make", [burgers.burgers, lambda: burgers.burgers("1-cos"), euler.euler])
def test_problems_have_losses_and_samples_of_every_term(make):
    problem = make()
    params = problem.init(KEY)
    samples = Uniform(**dict.fromkeys(problem.places(), 6))(KEY, problem, params)
    assert set(samples) == set(problem.residuals)
    by_hand = sum(
        0.5
        * problem.weight(name)
        * jnp.mean(jnp.sum(jax.vmap(f, (None, 0))(params, samples[name].x).reshape(6, -1) ** 2, 1))
        for name, f in problem.residuals.items()
    )
    assert np.isclose(problem.loss(params, samples), by_hand)


def test_periodic_network_repeats():
    problem = burgers.burgers()
    params = problem.init(KEY)
    left, right = (problem.field(params, jnp.array([0.4, x])) for x in (-1.0, 1.0))
    assert np.isclose(left, right, atol=1e-12)
    assert set(problem.conditions) == {"initial"}
    assert set(burgers.burgers(network=SMALL).conditions) == {"initial", "walls"}


def test_a_mirrored_field_has_its_parity_and_asks_for_half_the_domain():
    problem = burgers.burgers("-sin", Mirrored(Network((5, 4)), axis=1))
    params = problem.init(KEY)
    z, image = jnp.array([0.3, 0.6]), jnp.array([0.3, -0.6])
    assert np.isclose(problem.field(params, z), -problem.field(params, image), atol=1e-14)
    assert problem.domain == burgers.HALF
    assert set(problem.places()) == {"interior", "initial", "walls"}
    gas = euler.euler()
    state, other = (gas.field(gas.init(KEY), jnp.array([0.1, x])) for x in (0.7, 0.3))
    assert np.allclose(state, np.array([1, -1, 1]) * other, atol=1e-14)
    assert set(gas.places()) == {"interior", "initial"}
    samples = Uniform(interior=20, initial=5)(KEY, gas, None)
    assert samples["interior"].x[:, 1].min() >= 0.5


def test_data_enter_as_a_term_of_their_own():
    """The loss of data alone is the weighted mean square of what is missed, and every point is drawn once."""
    z = np.random.default_rng(0).uniform(-1, 1, (9, 2)) * 0.5 + 0.5
    box = Box((0.0, 1.0), (0.0, 1.0))
    problem = Problem(SMALL, box, lambda u, z: 0 * u(z), {"data": observed(z, z[:, 0] * z[:, 1], weight=3.0)})
    params = problem.init(KEY)
    samples = Uniform(interior=4, data=9)(KEY, problem, params)
    assert np.array_equal(np.sort(samples["data"].x.z[:, 0]), np.sort(z[:, 0]))
    u = np.array([SMALL(params, jnp.asarray(point)) for point in z])
    assert np.isclose(problem.loss(params, samples), 1.5 * np.mean((u - z[:, 0] * z[:, 1]) ** 2))
    few = Uniform(interior=4, data=3)(KEY, problem, params)["data"].x.z
    assert len({tuple(point) for point in np.asarray(few)}) == 3


def test_balanced_weights_give_every_term_the_same_trace():
    """Σ ω |∂r|² by plain reverse mode at the very points, for every term alike (power 1)."""
    problem = burgers.burgers("1-cos", SMALL)
    params = problem.init(KEY)
    plain = Uniform(interior=30, initial=8, walls=10)
    traces = {}
    full = eqx.filter_jit(Balanced(plain, power=1.0))(KEY, problem, params)
    for name, part in full.items():
        rows = jax.jit(jax.vmap(jax.grad(problem.residuals[name]), (None, 0)))(params, part.x)
        squares = sum(jnp.sum(leaf.reshape(leaf.shape[0], -1) ** 2, axis=1) for leaf in jax.tree.leaves(rows))
        traces[name] = float(jnp.vdot(part.omega, squares)) / problem.weight(name)
    assert np.allclose(list(traces.values()), traces["interior"], rtol=1e-10)
    halfway = eqx.filter_jit(Balanced(plain))(KEY, problem, params)["initial"].omega.sum()
    assert np.isclose(halfway, np.sqrt(10.0 * full["initial"].omega.sum()))


def test_points_say_how_long_they_serve_and_fixed_ones_warn_of_overfitting():
    problem = burgers.burgers("-sin", SMALL)
    params, draw = problem.init(KEY), Uniform(interior=20, initial=5, walls=5)
    assert (draw.every, Renewed(draw, 7).every, Fixed(draw, KEY).every) == (1, 7, float("inf"))
    assert Balanced(Renewed(draw, 7)).every == 7
    with pytest.warns(UserWarning, match="30 residuals at fixed points cannot hold"):
        Fixed(draw, KEY)(KEY, problem, params)
    with pytest.warns(UserWarning, match="30 residuals at fixed points cannot hold"):
        Renewed(draw, 500)(KEY, problem, params)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Fixed(Uniform(interior=200, initial=5, walls=5), KEY)(KEY, problem, params)
        Renewed(draw, 20)(KEY, problem, params)


def test_a_periodic_field_repeats_with_its_value_and_derivatives_and_a_constraint_holds_exactly():
    """Hard conditions: u = 0 at both ends and the initial value are built in, so the loss is the equation's alone."""
    box = Box((0.0, 1.0), (0.0, 3.0))
    network = Network((5, 4), embed=Periodic(axis=1, period=3.0))
    problem = Problem(network, box, lambda u, z: d(u, 0)(z) - d(u, 1, 1)(z), {}, constraint=from_a_wave)
    params = problem.init(KEY)
    for axes in ((), (1,), (1, 1)):
        left, right = (d(lambda z: problem.field(params, z), *axes)(jnp.array([0.4, x])) for x in (0.0, 3.0))
        assert np.isclose(left, right, atol=1e-12)
    z = jnp.array([0.0, 1.3])
    assert np.isclose(problem.field(params, z), np.sin(2 * np.pi * 1.3 / 3), atol=1e-14)
    assert not np.isclose(problem.field(params, z.at[0].set(0.5)), np.sin(2 * np.pi * 1.3 / 3), atol=1e-3)


def from_a_wave(z, value):
    return jnp.sin(2 * jnp.pi * z[1] / 3) + z[0] * value


def test_a_condition_that_parameters_do_not_move_keeps_its_weight():
    box = Box((0.0, 1.0), (-1.0, 1.0))
    told = {"told": Condition(box.face(0, "lower"), lambda u, z: z[1] + 0 * u(z), 3.0)}
    problem = Problem(SMALL, box, lambda u, z: u(z), told)
    samples = eqx.filter_jit(Balanced(Uniform(interior=5, told=4)))(KEY, problem, problem.init(KEY))
    assert np.isclose(samples["told"].omega.sum(), 3.0)


def test_data_on_the_boundary_are_inside_in_single_precision_too():
    with jax.enable_x64(False):
        data = {"data": observed([[0.2], [0.0]], [0.0, 1.0])}
        Problem(SMALL, Box((0.0, 0.2)), lambda u, z: u(z), data)
        with pytest.raises(ValueError, match="outside the domain"):
            Problem(SMALL, Box((0.0, 0.2)), lambda u, z: u(z), {"data": observed([[0.2001]], [0.0])})


def test_a_box_of_many_dimensions_may_have_a_condition_on_all_its_faces():
    cube = Box(*[(0.0, 1.0)] * 5)
    faces = Faces(tuple(cube.face(axis, side) for axis in range(5) for side in ("lower", "upper")))
    problem = Problem(SMALL, cube, lambda u, z: d(u, 0)(z), {"faces": Condition(faces, lambda u, z: u(z))})
    points = Uniform(interior=2, faces=10)(KEY, problem, problem.init(KEY))["faces"].x
    assert np.array_equal(np.sum((points == 0) | (points == 1), axis=1), np.ones(10))
    assert len(np.unique(np.argmax((points == 0) | (points == 1), axis=1))) == 5


def test_an_error_inside_an_equation_says_whose_it_is():
    with pytest.raises(TypeError) as caught:
        Problem(SMALL, Box((0.0, 1.0)), lambda u: u, {}).init(KEY)  # type: ignore[arg-type]
    assert "the equation of 'interior'" in caught.value.__notes__[-1]


@pytest.mark.parametrize("sampler", [Uniform, Sobol, Adaptive])
def test_samplers_fill_their_places_and_nothing_else(sampler):
    problem = burgers.burgers("1-cos", SMALL)
    params = problem.init(KEY)
    draw = sampler(interior=64, initial=16, walls=10)
    samples = draw(KEY, problem, params)
    t, x = samples["interior"].x.T
    assert samples["interior"].x.shape == (64, 2)
    assert 0 <= t.min() < 0.2
    assert 0.8 < t.max() <= 1
    assert -1 <= x.min() < -0.7
    assert np.all(samples["initial"].x[:, 0] == 0)
    assert np.all(np.abs(samples["walls"].x[:, 1]) == 1)
    assert np.isclose(samples["walls"].omega.sum(), 10.0)
    other = draw(jax.random.key(1), problem, params)["interior"].x
    assert not np.allclose(samples["interior"].x, other)
    fixed = Fixed(sampler(interior=100, initial=16, walls=10), KEY)
    first = fixed(KEY, problem, params)["interior"].x
    assert np.array_equal(fixed(jax.random.key(1), problem, params)["interior"].x, first)


def test_sobol_points_are_more_even_than_random_ones():
    problem = burgers.burgers("-sin", SMALL)
    params = problem.init(KEY)

    def spread(sampler):
        x = np.asarray(sampler(interior=256, initial=4, walls=4)(KEY, problem, params)["interior"].x[:, 0])
        return np.histogram(x, bins=16, range=(0, 1))[0].std()

    assert spread(Sobol) < 0.5 * spread(Uniform)


def test_adaptive_points_go_where_the_residual_is_large():
    """The residual is made large for x > 0: the share of points there is (r̄ + 1 weighted), not one half."""
    box = Box((0.0, 1.0), (-1.0, 1.0))
    bumpy = Problem(SMALL, box, lambda u, z: jnp.where(z[1] > 0, 3.0, 1.0) + 0 * u(z), {})
    samples = Adaptive(interior=4000, pool=16)(KEY, bumpy, bumpy.init(KEY))
    share = np.mean(np.asarray(samples["interior"].x[:, 1]) > 0)
    assert abs(share - 2.5 / 4) < 0.03


def returning(equation, **conditions):
    return Problem(SMALL, Box((0.0, 1.0)), equation, conditions).init(KEY)


@pytest.mark.parametrize(
    ("make_it", "words"),
    [
        (lambda: Box((1.0, 0.0)), "lower < upper"),
        (lambda: Box((0.0, float("inf"))), "both finite"),
        (lambda: Box(0.0, 1.0), "Box takes pairs"),
        (lambda: Faces(()), "at least one face"),
        (
            lambda: Uniform(interior=5, initial=2, walls=1)(KEY, burgers.burgers("1-cos", SMALL), None),
            "'walls' has 2 faces and needs as many points, got 1",
        ),
        (lambda: Network((5,), outputs=0), "outputs must be None"),
        (lambda: Periodic(axis=0, period=0.0), "period > 0"),
        (lambda: Periodic(axis=2, period=1.0)(jnp.zeros(2)), "no coordinate 2"),
        (lambda: euler.euler(Network((4,))), "must have 3 outputs"),
        (lambda: Adaptive(pool=0, interior=3), "pool ≥ 1"),
        (lambda: Adaptive(floor=-5.0, interior=3), "floor ≥ 0"),
        (lambda: returning(lambda u, z: jnp.zeros(0)), r"shape \(0,\)"),
        (lambda: returning(lambda u, z: jnp.array([1, 2])), "type int"),
        (lambda: returning(lambda u, z: u(z) + 1j), "type complex"),
        (
            lambda: returning(lambda u, z: u(z), data=observed([[0.5]], [[1.0, 2.0, 3.0]])),
            r"values of shape \(\) at a point, but the data \(3,\)",
        ),
        (
            lambda: Problem(SMALL, Box((0.0, 1.0)), lambda u, z: u(z), {"end": Condition("left", lambda u, z: u(z))}),
            "must be on a Box",
        ),
        (lambda: Box((0.0, 1.0)).face(1, "lower"), "no 'lower' side of coordinate 1"),
        (lambda: Network((5,), activation="relu"), "activation must be one of"),
        (lambda: Network(()), "widths must be positive"),
        (lambda: burgers.burgers("cos"), "initial must be one of"),
        (lambda: Uniform(interior=5)(KEY, burgers.burgers(), None), r"Points are needed for \['initial', 'interior'\]"),
        (lambda: Uniform(interior=5, initial=0)(KEY, burgers.burgers(), None), "at least one point"),
        (lambda: d(lambda z: z[0], 2)(jnp.zeros(2)), "no coordinate 2"),
        (
            lambda: Problem(SMALL, Box((0.0, 1.0)), lambda u, z: jnp.zeros((2, 2)), {}).init(KEY),
            "a number or a vector at one point",
        ),
        (
            lambda: Problem(
                SMALL, Box((0.0, 1.0)), lambda u, z: u(z), {"end": Condition(Box((0, 1), (0, 1)), lambda u, z: u(z))}
            ),
            "another dimension",
        ),
        (
            lambda: Problem(
                SMALL, Box((0.0, 1.0)), lambda u, z: u(z), {"end": Condition(Box((0, 2)), lambda u, z: u(z))}
            ),
            "outside the domain",
        ),
        (
            lambda: Problem(SMALL, Box((0.0, 1.0)), lambda u, z: u(z), {"data": observed([[1.5]], [0.0])}),
            "'data' has points outside",
        ),
        (lambda: Problem(SMALL, Box((0.0, 1.0)), lambda u, z: jnp.log(-z[0]), {}).init(KEY), "is not finite at"),
        (lambda: Data([[0.1], [0.2]], [1.0]), "N values are needed"),
        (lambda: Data([[jnp.nan]], [1.0]), "must be finite"),
        (lambda: Renewed(Uniform(interior=3), 0), "at least 1"),
        (lambda: Mirrored(Network((4,), outputs=3), axis=1, parity=(1, -1)), "one for each component"),
        (lambda: burgers.burgers("1-cos", Mirrored(SMALL, axis=1)), "has no mirror"),
        (
            lambda: Problem(
                SMALL, Box((0.0, 1.0)), lambda u, z: u(z), {"interior": Condition(Box((0, 1)), lambda u, z: u(z))}
            ),
            "the equation's own name",
        ),
    ],
)
def test_misuse_is_refused_with_a_sentence(make_it, words):
    with pytest.raises(ValueError, match=words):
        make_it()
