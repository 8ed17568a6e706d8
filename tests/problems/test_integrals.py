"""Conditions on integrals: exact for polynomials, at every value of the other coordinates, and trained like others."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import angd
from angd.problems.pinn import Ball, Box, Condition, Integral, Network, Problem, Uniform, d
from angd.recipes import GaussNewton

KEY = jax.random.key(0)
BOX = Box((0.0, 2.0), (-1.0, 3.0))


def test_it_integrates_polynomials_exactly():
    nodes = jax.tree.map(lambda leaf: leaf[0], Integral(BOX, nodes=4).place(jnp.zeros((1, 2))))
    assert np.isclose(nodes.integral(lambda z: z[0] ** 3 * z[1] ** 2), 4 * 28 / 3)
    assert np.isclose(nodes.mean(lambda z: z[0]), 1.0)
    assert np.allclose(nodes.integral(lambda z: jnp.stack([z[0] ** 0, z[1]])), [8.0, 8.0])


def test_over_some_coordinates_it_integrates_at_every_value_of_the_others():
    place = Integral(BOX, over=(1,), nodes=5)
    unit = jax.random.uniform(KEY, (3, 2))
    found = jax.vmap(lambda nodes: nodes.integral(lambda z: z[0] * z[1] ** 2))(place.place(unit))
    assert np.allclose(found, 2 * unit[:, 0] * 28 / 3)


def test_all_of_it_is_one_residual_and_a_part_as_many_as_asked_for():
    def mass(u, nodes):
        return nodes.integral(u) - 1

    conditions = {"all": Condition(Integral(BOX), mass), "slices": Condition(Integral(BOX, over=(1,)), mass)}
    task = angd.Task(Problem(Network((5,)), BOX, lambda u, z: u(z), conditions))
    assert task.counts(50, 20) == {"interior": 50, "all": 1, "slices": 20}
    samples = Uniform(**task.counts(50, 20))(KEY, task.problem, None)
    assert samples["slices"].x.z.shape == (20, 12, 2)
    assert np.allclose(samples["all"].omega.sum(), 1.0)


@pytest.mark.slow
def test_a_mass_is_kept_in_time():
    """u_t = 0 with an unknown height, of which only the mass is known: 3 in [0, 2]."""
    box = Box((0.0, 1.0), (0.0, 2.0))
    kept = Condition(Integral(box, over=(1,), nodes=6), lambda u, nodes: nodes.integral(u) - 3.0)
    problem = Problem(Network((6,)), box, lambda u, z: jnp.stack([d(u, 0)(z), d(u, 1)(z)]), {"mass": kept})
    fit = angd.fit(problem, GaussNewton(interior=60, condition=10, warm=0), steps=15, progress=False)
    assert np.allclose(fit(jnp.array([[0.3, 0.5], [0.9, 1.7]])), 1.5, atol=1e-3)


def test_what_cannot_be_integrated_is_refused():
    cases: list[tuple[dict[str, Any], str]] = [
        ({"domain": Ball((0.0, 0.0), 1.0)}, "must be a Box, got a Ball"),
        ({"domain": BOX, "over": (2,)}, "different coordinates below 2"),
        ({"domain": BOX, "over": ()}, "different coordinates below 2"),
        ({"domain": BOX, "over": (0,), "nodes": 0}, "nodes must be at least 1"),
    ]
    for given, sentence in cases:
        with pytest.raises(ValueError, match=sentence):
            Integral(**given)
    with pytest.raises(ValueError, match="points outside the domain"):
        Problem(Network((5,)), Box((0.0, 1.0), (0.0, 1.0)), lambda u, z: u(z), {"mass": Condition(Integral(BOX), max)})
