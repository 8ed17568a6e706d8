"""Domains that are not boxes: points, boundaries, normals, and a problem solved on one."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import angd
from angd.problems.evaluation import solution_of
from angd.problems.pinn import (
    Adaptive,
    Ball,
    Box,
    Condition,
    Data,
    Network,
    Polygon,
    Problem,
    SignedDistance,
    Uniform,
    d,
)
from angd.problems.solution import relative_errors

SQUARE = Box((-1.0, 1.0), (-1.0, 1.0))
CORNER = Polygon([(0, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2)])
PLATE = SQUARE - Ball((0, 0), 0.5)
UNIT = jax.random.uniform(jax.random.key(0), (20000, 2))


@pytest.mark.parametrize(
    ("region", "mean"),
    [
        (Ball((1.0, -1.0), 2.0), (1.0, -1.0, 4 / 4 + 1, 4 / 4 + 1)),
        (CORNER, (5 / 6, 5 / 6, 1.0, 1.0)),
        (Polygon([(0, 0), (0, 1), (1, 0)]), (1 / 3, 1 / 3, 1 / 6, 1 / 6)),
        (PLATE, (0.0, 0.0, *[(4 / 3 - np.pi / 64) / (4 - np.pi / 4)] * 2)),
        (Ball((-0.5, 0), 1) & Ball((0.5, 0), 1), (0.0, 0.0, None, None)),
        (Ball((-2, 0), 1) | Ball((2, 0), 1), (0.0, 0.0, 4.25, 0.25)),
    ],
)
def test_points_inside_are_even(region, mean):
    """First and second moments, against closed forms."""
    z = region.place(UNIT)
    assert bool(jnp.all(jax.vmap(region.distance)(z) < 0))
    found = [*jnp.mean(z, axis=0), *jnp.mean(z**2, axis=0)]
    for value, wanted in zip(found, mean, strict=True):
        assert wanted is None or abs(value - wanted) < 0.06


@pytest.mark.parametrize(
    ("region", "test", "share"),
    [
        (Ball((0, 0), 1), lambda z: z[0] > 0.5, 1 / 3),
        (CORNER, lambda z: z[0] < 1e-6, 2 / 8),
        (CORNER, lambda z: (abs(z[0] - 1) < 1e-6) & (z[1] > 1), 1 / 8),
        (PLATE, lambda z: jnp.linalg.norm(z) < 0.6, np.pi / (8 + np.pi)),
    ],
)
def test_points_of_the_boundary_are_on_it_and_even(region, test, share):
    z = region.boundary.place(UNIT)
    assert float(jnp.max(jnp.abs(jax.vmap(region.distance)(z)))) < 1e-7
    assert abs(float(jnp.mean(jax.vmap(test)(z))) - share) < 0.02
    part = region.boundary.where(test).place(UNIT[:100])
    assert bool(jnp.all(jax.vmap(test)(part)))


@pytest.mark.parametrize("corners", [CORNER.corners, CORNER.corners[::-1], [(0, 0), (3, 1), (1, 1.2), (0.5, 3)]])
def test_the_distance_from_a_polygon_is_that_from_its_nearest_point(corners):
    """Against a dense outline, and the sign against the winding number."""
    outline = np.asarray(corners, float)
    t = np.linspace(0, 1, 2001)[:, None]
    sides = zip(outline, np.roll(outline, -1, axis=0), strict=True)
    dense = np.concatenate([a + t * (b - a) for a, b in sides])
    points = np.random.default_rng(0).uniform(-0.5, 3.2, size=(60, 2))
    found = np.asarray(jax.vmap(Polygon(corners).distance)(jnp.asarray(points)))
    wanted = np.linalg.norm(points[:, None] - dense, axis=2).min(axis=1)
    np.testing.assert_allclose(np.abs(found), wanted, atol=2e-3)
    complex_outline = dense @ np.array([1, 1j])
    turns = np.diff(np.unwrap(np.angle(complex_outline - (points @ np.array([1, 1j]))[:, None]), axis=1), axis=1)
    inside = np.abs(turns.sum(axis=1)) > 3
    np.testing.assert_array_equal(found < 0, inside)


@pytest.mark.parametrize(
    ("region", "z", "normal"),
    [
        (Ball((1, 0), 2), (3.0, 0.0), (1, 0)),
        (CORNER, (0.0, 0.7), (-1, 0)),
        (CORNER, (1.5, 1.0), (0, 1)),
        (PLATE, (0.5, 0.0), (-1, 0)),
        (PLATE, (0.3, 1.0), (0, 1)),
    ],
)
def test_normals_point_outwards(region, z, normal):
    np.testing.assert_allclose(region.normal(jnp.asarray(z)), normal, atol=1e-12)


def test_samplers_draw_on_regions():
    hole = PLATE.boundary.where(lambda z: jnp.linalg.norm(z) < 0.6)
    problem = Problem(Network((4,)), PLATE, lambda u, z: u(z), {"hole": Condition(hole, lambda u, z: u(z))})
    params = problem.init(jax.random.key(0))
    for sampler in (Uniform(interior=50, hole=10), Adaptive(interior=50, hole=10)):
        samples = sampler(jax.random.key(1), problem, params)
        assert bool(jnp.all(jax.vmap(PLATE.distance)(samples["interior"].x) < 0))
        np.testing.assert_allclose(jnp.linalg.norm(samples["hole"].x, axis=1), 0.5, rtol=1e-6)


@pytest.mark.parametrize("part", ["inside", "boundary", "half"])
def test_points_may_first_be_asked_for_while_somebody_traces(part):
    """As when parameters are given to `fit`, so that nobody tries the equations before."""
    disc = Ball((0.0, 0.0), 1.5)
    place = {"inside": disc, "boundary": disc.boundary, "half": disc.boundary.where(lambda z: z[0] > 0)}[part]
    traced = jax.jit(place.place)(UNIT[:50])
    np.testing.assert_array_equal(traced, place.place(UNIT[:50]))
    assert place.within(Ball((0.0, 0.0), 1.51))


def test_the_equation_of_poisson_is_solved_on_a_disc():
    """−Δu = 4 with u = 0 on the circle: u = 1 − r². Points of the grid outside count for nothing."""
    disc = Ball((0.0, 0.0), 1.0)
    problem = Problem(
        Network((8,)),
        disc,
        lambda u, z: d(u, 0, 0)(z) + d(u, 1, 1)(z) + 4,
        {"rim": Condition(disc.boundary, lambda u, z: u(z), 10.0)},
    )
    task = angd.Task(problem, exact=lambda z: 1 - jnp.sum(z**2))
    recipe = angd.recipes.GaussNewton(interior=100, condition=40, fresh=float("inf"), scaling=0)
    fit = angd.fit(task, recipe, steps=25, progress=False)
    error, solution = fit.errors["u"], solution_of(task)
    assert error is not None
    assert 0 < error < 1e-2
    assert solution is not None
    drawn = solution(fit.params)
    outside = np.linalg.norm(drawn["z"], axis=1) > 1 + 1e-5
    np.testing.assert_array_equal(np.isnan(drawn["u found"]), outside)
    np.testing.assert_array_equal(np.isnan(drawn["u exact"]), outside)


def test_a_field_that_is_not_finite_is_not_taken_for_one_outside():
    found = {"z": np.zeros((3, 1)), "u found": np.array([1.0, np.nan, np.nan]), "u exact": np.array([1.0, 1.0, np.nan])}
    assert np.isnan(relative_errors(found)["u"])


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Polygon([(0, 0), (1, 1), (1, 0), (0, 1)]), "must not cross or touch itself"),
        (lambda: Polygon([(0, 0), (1, 1)]), "at least three corners"),
        (lambda: Polygon([0, 1, 2]), "corners are points (x, y)"),
        (lambda: SignedDistance(lambda z: jnp.sum(z**2) - 1, ((-1.5, 1.5),) * 2), "has length 2"),
        (lambda: Ball((0, 0), -1.0), "a radius > 0"),
        (lambda: Ball((0, 0), 0.3) & Ball((5, 5), 0.3), "nothing at all"),
        (lambda: SQUARE - Ball((0,), 0.3), "cannot be combined"),
        (lambda: SQUARE - 3, "combined with another region"),
        (lambda: SQUARE.boundary.where(lambda z: z[0] > 7).place(UNIT), "no point of the boundary"),
        (
            lambda: Problem(
                Network((4,)),
                PLATE,
                lambda u, z: u(z),
                {"m": Condition(Data([[0.0, 0.0]], [1.0]), lambda u, p: u(p.z))},
            ),
            "has points outside the domain",
        ),
        (
            lambda: Problem(
                Network((4,)),
                Ball((0, 0), 1),
                lambda u, z: u(z),
                {"m": Condition(SQUARE.face(0, "lower"), lambda u, z: u(z))},
            ),
            "has points outside the domain",
        ),
    ],
)
def test_bad_input_is_told(make, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        make()
