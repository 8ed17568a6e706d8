"""Equations by name: their references against independent computations, and that each of them can be trained."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import angd
from angd.problems.evaluation import Evaluator
from angd.problems.library import EQUATIONS, TASKS
from angd.problems.pinn import Uniform, burgers, d, euler
from angd.problems.pinn.equations import allen_cahn, family, kdv, lid, poisson, riemann, sod, spectral, viscosity, wave
from angd.problems.pinn.equations import kuramoto_sivashinsky as ks
from angd.recipes import GaussNewton

KEY = jax.random.key(0)
NAMES = [known.name for known in EQUATIONS]
EXACT = ["poisson", "poisson-5d", "poisson-10d", "heat-4d", "wave", "helmholtz", "kovasznay", "insulated"]
HARD = {"poisson": "edge", "heat-4d": "start", "wave": "start", "cavity": "edge"}


@pytest.mark.parametrize("name", EXACT)
def test_an_exact_solution_satisfies_its_equation_and_conditions(name):
    task = TASKS[name]()
    problem, exact = task.problem, task.exact
    assert exact is not None
    samples = Uniform(**task.counts(12, 40))(KEY, problem, None)
    terms = {"interior": problem.equation} | {n: c.equation for n, c in problem.conditions.items()}
    for term, equation in terms.items():
        right, wrong = (
            jax.vmap(lambda z, u=u, equation=equation: equation(u, z))(samples[term].x)
            for u in (exact, lambda z: 1.01 * exact(z) + 0.01 * jnp.sum(z**2))
        )
        assert np.abs(right).max() < 1e-11
        assert np.abs(wrong).max() > 1e-5


def faces(name):
    """Points where the values of a hard constraint are known, and those values."""
    task = TASKS[name]()
    box = task.problem.domain
    axes = range(box.dimension) if HARD[name] == "edge" else (0,)
    sides = [box.face(a, s) for a in axes for s in ("lower", "upper") if s == "lower" or HARD[name] == "edge"]
    return task, jnp.concatenate([side.place(jax.random.uniform(KEY, (5, box.dimension))) for side in sides])


@pytest.mark.parametrize("name", [name for name in HARD if name != "cavity"])
def test_conditions_that_are_built_in_hold_whatever_the_network_says(name):
    task, z = faces(name)
    assert task.exact is not None
    found = jax.vmap(task.problem.constraint, (0, None))(z, jnp.array(7.0))
    assert np.allclose(found, jax.vmap(task.exact)(z), atol=1e-13)
    inside = task.problem.domain.place(jnp.full((1, z.shape[1]), 0.3))
    assert (
        abs(task.problem.constraint(inside[0], jnp.array(7.0)) - task.problem.constraint(inside[0], jnp.array(0.0)))
        > 0.1
    )


def test_the_string_begins_at_rest_has_fixed_ends_and_repeats_as_its_solution_does():
    task = TASKS["wave"]()
    params = task.start(KEY)

    def u(z):
        return task.problem.field(params, z)

    for field in (u, wave.exact):
        assert abs(d(field, 0)(jnp.array([0.0, 0.3]))) < 1e-12
        assert np.allclose([field(jnp.array([0.3, x])) for x in (0.0, 1.0)], 0, atol=1e-12)
        assert np.isclose(field(jnp.array([1.0, 0.3])), field(jnp.array([0.0, 0.3])), atol=1e-12)
    assert abs(u(jnp.array([0.3, 0.3])) - u(jnp.array([0.0, 0.3]))) > 1e-3


def test_the_velocity_at_the_walls_of_the_cavity_is_that_of_its_reference():
    task, z = faces("cavity")
    points, flow = np.asarray(z), lid.solve()
    known = np.stack([[part.item() for part in flow.velocity(p[:1], p[1:])] for p in points])
    found = jax.vmap(task.problem.constraint, (0, None))(z, jnp.ones(3))[:, :2]
    assert np.allclose(found, known, atol=1e-12)
    assert np.abs(known).max() > 0.1


MANY = {
    "allen-cahn": (
        allen_cahn.reference,
        (2, 65),
        {"points": 2048, "h": 1 / 500},
        {"points": 1024, "h": 1 / 1000},
        1e-7,
    ),
    "kdv": (kdv.reference, (2, 257), {"h": 1 / 4000}, {"points": 1024, "h": 1 / 8000}, 1e-7),
    "ks": (ks.reference, (2, 257), {"h": ks.END / 4000}, {"points": 768, "h": ks.END / 8000}, 1e-7),
}


@pytest.mark.parametrize("name", MANY)
def test_spectral_references_do_not_depend_on_their_resolution(name):
    """At a quarter of the usual resolution; at the usual one they agree to 1e-10 (slow)."""
    reference, grid, coarse, fine, close = MANY[name]
    (z, one), (_, two) = reference(*grid, **coarse), reference(*grid, **fine)
    assert np.linalg.norm(one - two) < close * np.linalg.norm(two)
    assert z.shape == (grid[0] * grid[1], 2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reference", "points", "h"),
    [
        (allen_cahn.reference, 8192, allen_cahn.STEP / 2),
        (kdv.reference, 1024, kdv.STEP / 2),
        (ks.reference, 1024, ks.STEP / 2),
    ],
)
def test_spectral_references_are_right_to_1e_10(reference, points, h):
    usual, finer = reference()[1], reference(points=points, h=h)[1]
    assert np.linalg.norm(usual - finer) < 1e-10 * np.linalg.norm(finer)


def by_lines(rhs, x, u, end):
    """Fourier collocation in plain FFTs of all wave numbers, and an explicit method with control of its error."""
    k = 1j * np.fft.fftfreq(len(x), (x[1] - x[0]) * len(x) / len(x) / (2 * np.pi))
    found = solve_ivp(lambda _, u: rhs(u, k), (0, end), u, "DOP853", rtol=1e-10, atol=1e-12)
    return found.y[:, -1]


def derivative(u, k, order=1):
    return np.fft.ifft(k**order * np.fft.fft(u)).real


def test_kdv_s_reference_is_that_of_another_integrator():
    n, end = 192, 0.25
    x = -1 + 2 * np.arange(n) / n

    def rhs(u, k):
        return -derivative(u**2 / 2, k) - kdv.MU**2 * derivative(u, k, 3)

    found = by_lines(rhs, x, np.cos(np.pi * x), end)
    known = kdv.reference(5, 193)[1].reshape(5, 193)[1]
    assert np.abs(found - known[:-1]).max() < 1e-6


def test_kuramoto_sivashinsky_s_reference_is_that_of_another_integrator():
    n, end = 192, ks.END / 10
    x = 2 * np.pi * np.arange(n) / n

    def rhs(u, k):
        linear = ks.BETA * derivative(u, k, 2) + ks.GAMMA * derivative(u, k, 4)
        return -ks.ALPHA * derivative(u**2 / 2, k) - linear

    found = by_lines(rhs, x, np.cos(x) * (1 + np.sin(x)), end)
    known = ks.reference(11, 193, points=768)[1].reshape(11, 193)[1]
    assert np.abs(found - known[:-1]).max() < 1e-5


def test_allen_cahn_s_reference_is_the_limit_of_finite_differences():
    """Second order, without flux at 0 and 1, to which the even solution of period 2 comes down."""

    def error(cells, end=0.5):
        dx = 1 / cells
        x = dx * (np.arange(cells) + 0.5)

        def rhs(_, u):
            wide = np.concatenate([u[:1], u, u[-1:]])
            return allen_cahn.D * np.diff(wide, 2) / dx**2 + allen_cahn.RATE * (u - u**3)

        start = x**2 * np.cos(np.pi * x)
        u = solve_ivp(rhs, (0, end), start, "LSODA", rtol=1e-9, atol=1e-11, lband=1, uband=1).y[:, -1]
        # cell centres are points of a reference with four times as many places
        known = allen_cahn.reference(3, 4 * cells + 1, points=2048)[1].reshape(3, -1)[1][2 * cells :][1::2]
        return np.linalg.norm(u - known) / np.linalg.norm(known)

    errors = [error(cells) for cells in (256, 512)]
    assert errors[1] < 1e-3
    assert 3.4 < errors[0] / errors[1] < 4.6


def test_kdv_s_reference_conserves_mass_momentum_and_energy():
    u = kdv.reference(5, 257)[1].reshape(5, 257)[:, :-1]
    slope = np.fft.irfft(1j * spectral.wave_numbers(256, 2.0) * np.fft.rfft(u), 256)
    for kept in (u, u**2, u**3 / 3 - kdv.MU**2 * slope**2):
        mean = kept.mean(axis=1)
        assert np.abs(mean - mean[0]).max() < 1e-6
    assert np.abs(u[1:] - u[0]).max() > 1


def test_the_integrator_keeps_a_soliton_of_kdv():
    """3c sech²(√c (x − ct)/2μ) moves at speed c without a change of its form."""
    n, c, end = 512, 0.8, 0.5
    x = -1 + 2 * np.arange(n) / n
    k, keep = spectral.wave_numbers(n, 2.0), spectral.dealiased(n)

    def soliton(t):
        away = (x - c * t + 1) % 2 - 1
        return 3 * c / np.cosh(np.sqrt(c) * away / (2 * kdv.MU)) ** 2

    def nonlinear(v):
        return -0.5j * k * keep * np.fft.rfft(np.fft.irfft(v, n) ** 2)

    *_, last = spectral.evolve(1j * kdv.MU**2 * k**3, nonlinear, np.fft.rfft(soliton(0)), [0, end], 1 / 4000)
    assert np.abs(np.fft.irfft(last, n) - soliton(end)).max() < 1e-6


def test_a_grid_that_is_no_part_of_the_reference_is_refused():
    for reference in (kdv.reference, allen_cahn.reference, ks.reference):
        with pytest.raises(ValueError, match="1 more than a divisor"):
            reference(3, 100)


def test_the_flow_in_a_cavity_does_not_depend_on_its_resolution():
    x = np.linspace(0, 1, 21)
    usual, finer, coarse = (np.stack(lid.solve(100.0, n).velocity(x, x)) for n in (96, 112, 32))
    assert np.abs(usual - finer).max() < 1e-10
    assert 1e-9 < np.abs(coarse - finer).max() < 1e-5


# Ghia, Ghia & Shin (1982), table I: u on the vertical line through the middle, at Re = 100; table II: v on the other.
GHIA_U = {0.9531: 0.68717, 0.7344: 0.00332, 0.5: -0.20581, 0.4531: -0.21090, 0.2813: -0.15662, 0.1016: -0.06434}
GHIA_V = {0.9063: -0.16914, 0.8047: -0.24533, 0.5: 0.05454, 0.2344: 0.17527, 0.0938: 0.12317}


@pytest.mark.slow
def test_with_a_sharper_lid_the_flow_becomes_that_of_ghia_and_of_botella_and_peyret():
    """To the accuracy of Ghia's grid, one per cent, and with the extremes of Botella & Peyret (1998) much closer."""
    extremes = []
    line, middle = np.linspace(0.01, 0.99, 981), np.array([0.5])
    for power in (4, 32):
        flow = lid.solve(100.0, 64, power)
        inside = flow.velocity(middle, line)[0][0], flow.velocity(line, middle)[1][:, 0]
        extremes.append(np.abs([inside[0].min() + 0.21404, inside[1].max() - 0.17957, inside[1].min() + 0.25380]).max())
    assert extremes[1] < 1e-4
    assert extremes[0] > 1e-3
    u, v = flow.velocity(middle, np.array([*GHIA_U]))[0][0], flow.velocity(np.array([*GHIA_V]), middle)[1][:, 0]
    assert np.abs(u - [*GHIA_U.values()]).max() < 0.01
    assert np.abs(v - [*GHIA_V.values()]).max() < 0.01


def test_riemann_s_problem_has_its_published_middle_states_and_keeps_to_the_jump_conditions():
    assert np.allclose(riemann.middle(sod.LEFT, sod.RIGHT), [0.30313, 0.92745], atol=1e-5)  # Toro, table 4.2
    strong = riemann.middle((1.0, 0.0, 1000.0), (1.0, 0.0, 0.01))
    assert np.allclose(strong, [460.894, 19.5975], rtol=1e-5)
    z, states = euler.reference()
    same = riemann.solution(euler.LEFT, euler.RIGHT, (z[:, 1] - 0.5) / 0.2)
    assert np.allclose(same, states, atol=1e-12)
    x, found = sod.reference(2001)
    jump = np.argmax(np.abs(np.diff(found[:, 2])))  # of the pressure: the shock
    behind, ahead = (jnp.asarray(found[i]) for i in (jump - 1, jump + 2))
    speed = (euler.flux(behind) - euler.flux(ahead)) / (euler.conserved(behind) - euler.conserved(ahead))
    assert np.allclose(speed, (x[jump, 1] - 0.5) / 0.2, atol=5e-3)
    assert np.ptp(speed) < 1e-10


def test_in_a_rarefaction_sod_s_reference_satisfies_the_equations():
    speeds = np.linspace(-1.0, -0.2, 5)[None, :] + np.array([[-1e-5], [0.0], [1e-5]])
    states = riemann.solution(sod.LEFT, sod.RIGHT, speeds.ravel()).reshape(3, 5, 3)
    conserved, flux = (np.asarray(jax.vmap(jax.vmap(f))(jnp.asarray(states))) for f in (euler.conserved, euler.flux))
    balance = (flux[2] - flux[0] - speeds[1][:, None] * (conserved[2] - conserved[0])) / 2e-5
    assert np.abs(balance).max() < 1e-8


def test_the_family_s_reference_satisfies_its_equation_at_every_viscosity():
    h = 1e-4
    for nu in (0.1, 0.03):
        z = np.array([[0.8, 0.2], [0.5, -0.6]])
        shifts = [np.array([[0, 0]]), *(s * np.array([[a, 1 - a]]) * h for a in (1, 0) for s in (1, -1))]
        u, later, before, right, left = (burgers.solution("-sin", z + shift, nu=nu) for shift in shifts)
        r = (later - before) / (2 * h) + u * (right - left) / (2 * h) - nu * (right - 2 * u + left) / h**2
        assert np.abs(r).max() < 1e-4
    z, u = family.reference(11, 3)
    assert np.allclose(u[1::3], burgers.solution("-sin", z[1::3, :2], nu=10**-1.5))


def test_the_measured_front_satisfies_its_equation_and_has_its_noise():
    z = jnp.array([[0.3, 0.1], [0.8, 0.5]])
    c = {"nu": viscosity.NU, "speed": viscosity.SPEED}
    assert np.abs(jax.vmap(lambda y: viscosity.residual(viscosity.exact, y, c))(z)).max() < 1e-12
    points, values = viscosity.measured()
    noise = values - jax.vmap(viscosity.exact)(jnp.asarray(points))
    assert np.std(noise) == pytest.approx(viscosity.NOISE, rel=0.1)
    assert not np.array_equal(viscosity.measured(1)[1], values)


def test_errors_in_many_dimensions_are_measured_all_over_the_domain():
    """A field that is wrong only where x₅ > ½ is right on the plane that is drawn, on which x₃, x₄ and x₅ are ½."""
    task = TASKS["poisson-5d"]()

    class Wrong(type(task.problem)):
        def field(self, params, z):
            return poisson.exact(z) + jnp.where(z[4] > 0.5, 1.0, 0.0)

    wrong = Wrong(task.problem.network, task.problem.domain, task.problem.equation, task.problem.conditions)
    found = Evaluator(angd.Task(wrong, exact=task.exact))(task.start(KEY), None, 1.0)
    assert found.errors["u"] == pytest.approx(np.sqrt(0.5) / np.sqrt(2.5), rel=0.02)


def test_a_reference_of_the_wrong_shape_is_refused_at_once():
    problem, z = TASKS["insulated"]().problem, np.zeros((4, 2))
    for reference, sentence in {
        "points": ((np.zeros((4, 3)), {"u": np.zeros(4)}), r"points of shape \(N, 2\), got \(4, 3\)"),
        "values": ((z, {"u": np.zeros((4, 1))}), r"one value of 'u' at each of the 4 points, got shape \(4, 1\)"),
        "fewer": ((z, {"u": np.zeros(3)}), r"at each of the 4 points, got shape \(3,\)"),
    }.values():
        with pytest.raises(ValueError, match=sentence):
            angd.fit(angd.Task(problem, reference=reference), steps=1, progress=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_equation_is_learnt_by_its_name(name):
    """With the default recipe on few points: the loss at held-out points falls."""
    fit = angd.fit(name, GaussNewton(interior=150, condition=40, warm=0), steps=30, progress=False)
    losses = [record.test_loss for record in fit.records]
    assert (losses[-1] or np.inf) < (losses[0] or 0) / 2
    known = {"cavity": {"u", "v"}, "kovasznay": {"u", "v", "p"}, "sod": {"ρ", "u", "p"}}.get(name, {"u"})
    assert set(fit.errors) == known
    assert fit.plot() is not None
