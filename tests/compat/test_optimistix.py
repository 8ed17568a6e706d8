"""ANGD as a least-squares solver of optimistix, on the problems that such solvers are tried on."""

import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx
import pytest

import angd
from angd.compat.optimistix import AcceleratedGaussNewton

TIMES = jnp.linspace(0.0, 2.0, 15)
MATRIX = jax.random.normal(jax.random.key(0), (7, 3))


def rosenbrock(y, args):
    return 10 * (y[1] - y[0] ** 2), 1 - y[0]


def powell_singular(y, args):
    a, b, c, d = y
    return jnp.stack([a + 10 * b, 5**0.5 * (c - d), (b - 2 * c) ** 2, 10**0.5 * (a - d) ** 2])


def bilinear(y, args):
    """As a pytree, underdetermined by one scale."""
    return {"product": jnp.outer(y["u"], y["v"]) - jnp.array([[1.0, 2.0], [3.0, 6.0]]), "pin": y["u"][0] - 1.0}


def exponential(y, args):
    """A fit whose residuals do not vanish."""
    return y["height"] * jnp.exp(-y["rate"] * TIMES) - args


def linear(y, args):
    return MATRIX @ y - args


DATA = 2 * jnp.exp(-1.5 * TIMES) + 0.1 * jnp.cos(9 * TIMES)
PROBLEMS = {
    "rosenbrock": (rosenbrock, jnp.array([-1.2, 1.0]), None),
    "exponential": (exponential, {"height": jnp.asarray(1.0), "rate": jnp.asarray(0.5)}, DATA),
    "powell": (powell_singular, tuple(jnp.array([3.0, -1.0, 0.0, 1.0])), None),
    "bilinear": (bilinear, {"u": jnp.array([0.5, 1.0]), "v": jnp.array([1.0, -1.0])}, None),
    "linear": (linear, jnp.zeros(3), jnp.arange(7.0)),
}
KERNEL = {"solver": angd.Kernel(1e-8), "controller": angd.LineSearch()}
SOLVERS = {
    "plain": {},
    "momentum": {"flow": angd.ARGFlow.momentum(0.3, 0.7)},
    "kernel and search": KERNEL,
    "scaled": {"solver": angd.Scaled(angd.Normal(1e-3))},
    "trust region": {"controller": angd.TrustRegion()},
}


def of(name, rtol=1e-8, atol=1e-8):
    return AcceleratedGaussNewton(rtol, atol, **SOLVERS[name])


def cost(fn, y, args):
    return sum(float(jnp.sum(jnp.square(leaf))) for leaf in jax.tree.leaves(fn(y, args))) / 2


def far(x, y):
    return max(float(jnp.max(jnp.abs(a - b))) for a, b in zip(*map(jax.tree.leaves, (x, y)), strict=True))


QUICK = [("rosenbrock", "plain"), ("bilinear", "momentum"), ("exponential", "scaled")]
REST = [(problem, solver) for problem in PROBLEMS for solver in SOLVERS if (problem, solver) not in QUICK]


@pytest.mark.parametrize(("problem", "solver"), QUICK + [pytest.param(*pair, marks=pytest.mark.slow) for pair in REST])
def test_it_finds_what_levenberg_and_marquardt_find(problem, solver):
    fn, y0, args = PROBLEMS[problem]
    found = optx.least_squares(fn, of(solver), y0, args)
    theirs = optx.least_squares(fn, optx.LevenbergMarquardt(1e-10, 1e-10), y0, args, throw=False, max_steps=2000)
    assert found.result == optx.RESULTS.successful
    # At a singular minimum y is known to the fourth root of the loss only.
    assert far(found.value, theirs.value) < (1e-2 if problem == "powell" else 1e-6)
    assert cost(fn, found.value, args) <= cost(fn, theirs.value, args) + 1e-10
    assert found.stats["num_steps"] < 256
    assert jax.tree.structure(found.value) == jax.tree.structure(y0)


def test_one_step_solves_the_damped_normal_equations():
    y, args, lam = PROBLEMS["rosenbrock"][1], None, 1e-2

    def residual(y):
        return jnp.stack(rosenbrock(y, args))

    J, r = jax.jacfwd(residual)(y), residual(y)
    expected = y - jnp.linalg.solve(J.T @ J + lam * jnp.eye(2), J.T @ r)
    for kind in (angd.Normal, angd.Kernel):
        solver = AcceleratedGaussNewton(1e-8, 1e-8, solver=kind(lam), controller=angd.Constant())
        one = optx.least_squares(rosenbrock, solver, y, args, max_steps=1, throw=False)
        np.testing.assert_allclose(one.value, expected, rtol=1e-10)
        assert one.result == optx.RESULTS.nonlinear_max_steps_reached


def test_momentum_is_that_of_the_recursion():
    """On a linear residual, undamped: r follows r″ = μ r′ − s r exactly."""
    mu, s, target = 0.5, 0.2, jnp.array([1.0, -2.0])

    def residual(y, args):
        return jnp.array([[2.0, 1.0], [0.0, 3.0]]) @ y - target

    flow = angd.ARGFlow.momentum(mu, s)
    solver = AcceleratedGaussNewton(1e-8, 1e-8, flow=flow, solver=angd.Normal(1e-14), controller=angd.Constant())
    r, v = -target, 0 * target
    for _ in range(4):
        v = mu * v - s * r
        r = r + v
    found = optx.least_squares(residual, solver, jnp.zeros(2), max_steps=4, throw=False)
    np.testing.assert_allclose(residual(found.value, None), r, rtol=1e-8)


def fitted(data, solver=None):
    fn, y0, _ = PROBLEMS["exponential"]
    return optx.least_squares(fn, solver or of("plain"), y0, data).value["rate"]


def test_solutions_are_differentiable_and_can_be_mapped():
    slope = jax.jit(jax.grad(fitted))(DATA)
    theirs = jax.grad(lambda data: fitted(data, optx.LevenbergMarquardt(1e-10, 1e-10)))(DATA)
    np.testing.assert_allclose(slope, theirs, rtol=1e-4, atol=1e-7)
    several = jnp.stack([DATA, 2 * DATA, DATA + 0.05 * jnp.sin(5 * TIMES)])
    np.testing.assert_allclose(jax.vmap(fitted)(several), [fitted(data) for data in several], rtol=1e-6)


def test_auxiliary_output_belongs_to_the_solution_and_stats_tell_the_last_step():
    def fn(y, args):
        return rosenbrock(y, args), y.sum()

    found = optx.least_squares(fn, of("plain"), PROBLEMS["rosenbrock"][1], has_aux=True)
    np.testing.assert_allclose(found.aux, found.value.sum())
    assert isinstance(found.stats["info"], angd.Info)


@pytest.mark.slow
def test_it_finds_roots_and_remembers_the_best():
    found = optx.root_find(lambda y, args: y**3 - args, of("plain"), jnp.array(1.0), jnp.array(8.0))
    np.testing.assert_allclose(found.value, 2.0, rtol=1e-7)
    best = optx.BestSoFarLeastSquares(of("momentum"))
    assert far(optx.least_squares(rosenbrock, best, PROBLEMS["rosenbrock"][1]).value, jnp.ones(2)) < 1e-6


@pytest.mark.slow
def test_single_precision_stays_single():
    y0 = PROBLEMS["rosenbrock"][1].astype("float32")
    found = optx.least_squares(rosenbrock, of("plain", 1e-4, 1e-4), y0)
    assert found.value.dtype == "float32"
    np.testing.assert_allclose(found.value, 1, atol=1e-3)


def test_failures_are_results():
    def pole(y, args):
        return jnp.array([jnp.log(y - 2.0)])

    found = optx.least_squares(pole, of("plain"), jnp.array(1.0), throw=False)
    assert found.result == optx.RESULTS.nonfinite
    assert found.stats["num_steps"] < 5
    few = optx.least_squares(rosenbrock, of("plain"), PROBLEMS["rosenbrock"][1], max_steps=3, throw=False)
    assert few.result == optx.RESULTS.nonlinear_max_steps_reached


@pytest.mark.slow
def test_a_minimum_that_was_found_ends_the_solve():
    """At the solution nothing is left to gain: no step is accepted, and that is a success."""
    found = optx.least_squares(rosenbrock, of("plain", 1e-16, 1e-300), jnp.ones(2))
    assert found.result == optx.RESULTS.successful
    fn, y0, args = PROBLEMS["exponential"]
    tight = optx.least_squares(fn, of("plain", 1e-18, 1e-300), y0, args)
    assert far(tight.value, optx.least_squares(fn, of("plain"), y0, args).value) < 1e-7
