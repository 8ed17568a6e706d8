"""Inverse problems: unknown coefficients and functions, measurements, error bars."""

import re
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import angd
from angd.problems.estimate import Estimate, from_json, to_json
from angd.problems.pinn import Box, Coefficient, Condition, Data, Face, Network, Problem, d, estimates, observed

LINE = Box((0.0, 1.0))
RNG = np.random.default_rng(0)
PLACES = RNG.uniform(size=(30, 1))


class Monomial(eqx.Module):
    """θ z^k, a model of one parameter."""

    power: int = eqx.field(static=True)
    first: float = 0.5

    def init(self, key: Any, dimension: int) -> Any:
        return jnp.asarray(self.first)

    def __call__(self, params: Any, z: Any) -> Any:
        return params * z[0] ** self.power


def slope(u: Any, z: Any, c: Any) -> Any:
    return d(u, 0)(z) - c["k"]


def line(**known: Any) -> Problem:
    """u = θ z with u' = k, measured with noise."""
    values = 2 * PLACES[:, 0] + 0.1 * RNG.standard_normal(30)
    return Problem(Monomial(1), LINE, slope, {"m": observed(PLACES, values, **known)}, unknowns={"k": Coefficient(1.0)})


@pytest.mark.parametrize(("lower", "upper"), [(-np.inf, np.inf), (0.0, np.inf), (-np.inf, 2.0), (0.0, 2.0)])
def test_a_coefficient_starts_at_its_first_value_and_keeps_its_bounds(lower, upper):
    coefficient = Coefficient([0.5, 1.5], lower, upper)
    np.testing.assert_allclose(coefficient.value(coefficient.init()), [0.5, 1.5], rtol=1e-14)
    far = coefficient.value(jnp.array([-30.0, 30.0]))
    assert jnp.all((far >= lower) & (far <= upper))


def test_the_bar_is_that_of_weighted_least_squares():
    """With u = θz and u' = k exactly, k is θ, and var θ = 1 / Σ z²/σ²."""
    sigma = RNG.uniform(0.05, 0.2, size=30)
    problem = line(noise=sigma)
    wanted = np.sum(PLACES[:, 0] ** 2 / sigma**2) ** -0.5
    values = problem.conditions["m"].on.values
    best = float(np.sum(PLACES[:, 0] * np.asarray(values) / sigma**2)) * wanted**2
    params = {"field": jnp.asarray(best), "unknowns": {"k": jnp.asarray(best)}}
    found = estimates(problem, params)["k"]
    np.testing.assert_allclose(found.value, best)
    np.testing.assert_allclose(found.error, wanted, rtol=1e-6)


def test_unknown_noise_is_estimated_as_least_squares_does():
    """y = θz + b, with s² of N − 2 degrees of freedom."""
    values = 2 * PLACES[:, 0] + 1 + 0.1 * RNG.standard_normal(30)
    measured = Condition(Data(PLACES, values), lambda u, p, c: u(p.z) + c["b"] - p.values)
    problem = Problem(Monomial(1), LINE, lambda u, z: 0 * u(z), {"m": measured}, unknowns={"b": Coefficient(0.0)})
    X = np.stack([PLACES[:, 0], np.ones(30)], axis=1)
    (theta, b), missed = np.linalg.lstsq(X, values, rcond=None)[:2]
    wanted = np.sqrt(missed[0] / 28 * np.linalg.inv(X.T @ X)[1, 1])
    found = estimates(problem, {"field": jnp.asarray(theta), "unknowns": {"b": jnp.asarray(b)}})["b"]
    np.testing.assert_allclose((found.value, found.error), (b, wanted), rtol=1e-6)


def test_an_unknown_function_has_bars_where_it_is_asked():
    """u = θz²/2 with u' = s(z) = wz: the bar of s is z times that of w = θ."""
    points = jnp.array([[0.3], [0.9]])
    values = PLACES[:, 0] ** 2 / 2
    problem = Problem(
        Monomial(2),
        LINE,
        lambda u, z, c: d(u, 0)(z) - c["s"](z),
        {"m": observed(PLACES, values, noise=0.1)},
        unknowns={"s": Monomial(1)},
    )
    params = {"field": jnp.asarray(0.5), "unknowns": {"s": jnp.asarray(1.0)}}
    found = estimates(problem, params, {"s": points})["s"]
    wanted = 2 * 0.1 / np.sqrt(np.sum(PLACES[:, 0] ** 4)) * points[:, 0]
    np.testing.assert_allclose(found.value, points[:, 0], rtol=1e-12)
    np.testing.assert_allclose(found.error, wanted, rtol=1e-6)


def test_training_that_stopped_short_widens_the_bar():
    problem = line(noise=0.1)
    far = {"field": jnp.asarray(3.0), "unknowns": {"k": jnp.asarray(3.0)}}
    values = np.asarray(problem.conditions["m"].on.values)
    best = np.sum(PLACES[:, 0] * values) / np.sum(PLACES**2)
    noise = 0.1 / np.sqrt(np.sum(PLACES**2))
    np.testing.assert_allclose(estimates(problem, far)["k"].error, np.hypot(noise, 3 - best), rtol=1e-6)


def test_what_is_not_measured_has_no_finite_bar():
    """The equation reads b only as b − b'."""
    unknowns = {"k": Coefficient(1.0), "a": Coefficient(1.0), "b": Coefficient(1.0)}
    problem = Problem(
        Monomial(1),
        LINE,
        lambda u, z, c: d(u, 0)(z) - c["k"] + c["a"] - c["b"],
        {"m": observed(PLACES, PLACES[:, 0], noise=0.1)},
        unknowns=unknowns,
    )
    found = problem.estimates(problem.init(jax.random.key(0)))
    assert all(np.isinf(found[name].error) for name in "kab")


def test_all_measurements_are_used_in_every_step():
    counts = angd.Task(line()).counts(1000, 7)
    assert counts == {"interior": 1000, "m": 30}
    assert angd.Task(line()).counts(20, 7) == {"interior": 20, "m": 7}


def test_measurements_weigh_by_their_numbers():
    two = {"a": observed(PLACES, PLACES[:, 0], noise=0.1), "b": observed(PLACES[:10], PLACES[:10, 0], noise=0.2)}
    problem = Problem(Monomial(1), LINE, lambda u, z: d(u, 0)(z) - 1, two)
    assert problem.weight("a") == pytest.approx(3 * problem.weight("b"))
    assert Problem(Monomial(1), LINE, lambda u, z: u(z), {"a": observed(PLACES, PLACES[:, 0])}).weight("a") == 1


def test_a_component_or_a_derivative_may_be_measured():
    class Pair(eqx.Module):
        def init(self, key: Any, dimension: int) -> Any:
            return jnp.zeros(2)

        def __call__(self, params: Any, z: Any) -> Any:
            return jnp.stack([z[0] ** 2, 3 * z[0]]) + params

    values = 3 * PLACES[:, 0]
    conditions = {
        "second": observed(PLACES, values, of=1),
        "slope": observed(PLACES, values, of=lambda u, z: d(u, 0)(z)[1]),
    }
    problem = Problem(Pair(), LINE, lambda u, z: u(z)[0], conditions)
    z = jnp.array([0.2])
    for name, wanted in (("second", 0.6 - values[0]), ("slope", 3 - values[0])):
        point = jax.tree.map(lambda leaf: leaf[0], problem.conditions[name].on)
        point = eqx.tree_at(lambda data: data.z, point, z)
        np.testing.assert_allclose(problem.residuals[name](jnp.zeros(2), point), wanted, rtol=1e-12)


def test_a_fit_ends_with_the_coefficient_and_its_bar(tmp_path):
    """Decay, u' = −ku, from 40 values; the same from the folder."""
    z = np.linspace(0, 1, 40)[:, None]
    values = np.exp(-1.5 * z[:, 0]) + 0.01 * np.random.default_rng(1).standard_normal(40)
    problem = Problem(
        Network((6,)),
        LINE,
        lambda u, z, c: d(u, 0)(z) + c["k"] * u(z),
        {"m": observed(z, values, noise=0.01)},
        unknowns={"k": Coefficient(0.5, lower=0)},
    )
    recipe = angd.recipes.GaussNewton(interior=60, condition=20, fresh=float("inf"), scaling=0)
    fit = angd.fit(problem, recipe, steps=25, folder=tmp_path / "run", progress=False)
    k = fit.estimates["k"]
    assert abs(k.value - 1.5) < 4 * k.error
    assert 0.005 < k.error < 0.1
    assert f"k = {k}" in repr(fit)
    assert fit.records[-1].observables["k"] == pytest.approx(k.value)
    loaded = angd.load(tmp_path / "run", problem).estimates["k"]
    assert loaded == (k.value, k.error)


@pytest.mark.parametrize(
    ("estimate", "said"),
    [
        (Estimate(0.04993, 0.00052), "0.04993 ± 0.00052"),
        (Estimate(12.3456, 1.5), "12.3 ± 1.5"),
        (Estimate(3.1831e-9, 2e-11), "3.183e-09 ± 2.0e-11"),
        (Estimate(1.0, np.inf), "1 ± inf"),
        (Estimate(np.array([1.0, 2.0]), np.array([0.1, 0.2])), "[1.00 ± 0.10, 2.00 ± 0.20]"),
    ],
)
def test_estimates_are_said_with_as_many_digits_as_are_known(estimate, said):
    assert str(estimate) == said
    back = from_json(to_json({"c": estimate}))["c"]
    np.testing.assert_array_equal(back.value, estimate.value)
    np.testing.assert_array_equal(back.error, estimate.error)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Coefficient(3.0, lower=4.0), "the first value must be finite and between"),
        (lambda: Coefficient(1.0, lower=2.0, upper=1.0), "lower must be below upper"),
        (lambda: line(noise=-0.1), "must be positive"),
        (lambda: line(noise=np.ones(7)), "broadcasts to the values' shape (30,)"),
        (lambda: line(of="u"), "the number of a component or a function"),
        (lambda: Problem(Monomial(1), LINE, slope), "but there are none"),
        (lambda: Problem(Monomial(1), LINE, slope, unknowns=[1]), "unknowns must be a dictionary"),
        (lambda: Problem(Monomial(1), LINE, slope, unknowns={"k": 0.5}), "must be a Coefficient"),
        (
            lambda: Problem(Monomial(1), LINE, lambda u, z: u(z), unknowns={"k": Coefficient(1.0)}),
            "no equation reads the unknowns",
        ),
        (
            lambda: Problem(Monomial(1), LINE, lambda u, z: u(z), {"m": observed(PLACES, PLACES[:, 0], of=1)}).init(
                jax.random.key(0)
            ),
            "no component 1",
        ),
        (lambda: estimates(Problem(Monomial(1), LINE, lambda u, z: u(z)), None), "no unknowns"),
        (
            lambda: estimates(
                Problem(
                    Monomial(1),
                    LINE,
                    slope,
                    {"a": Condition(Face(LINE, 0, "lower"), lambda u, z: u(z))},
                    unknowns={"k": Coefficient(1.0)},
                ),
                None,
            ),
            "nothing is measured",
        ),
        (lambda: estimates(line(), None, {"k": PLACES}), "not an unknown function"),
    ],
)
def test_bad_input_is_told(make, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        make()
