"""Runs whose parameters grow: on from anywhere to the last bit, one field at the end, saved and read again."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import angd
from angd.problems.pinn import Box, Condition, Network, Problem, Renewed, Uniform, d
from angd.problems.stages import Grow, OnTop, Staged
from angd.recipes.base import Phase, Recipe, number
from angd.train.config import Config
from angd.train.run import Run
from angd.train.setup import prepare

BOX = Box((0.0, 1.0))
ENDS = {
    side: Condition(BOX.face(0, side), lambda u, z: u(z) - jnp.stack([z[0], 0.0]), 10.0) for side in ("lower", "upper")
}
PROBLEM = Problem(Network((3,), outputs=2), BOX, lambda u, z: d(u, 0, 0)(z) + u(z), ENDS)
X = jnp.linspace(0, 1, 7)[:, None]


@dataclass(frozen=True)
class Quick(Recipe):
    """A new stage after every three sets of points, each of which serves two steps."""

    rounds: int = number(2, 1, 10, "networks on top")

    def phases(self, task, seed=0):
        optimiser = angd.ANGD(angd.ARGFlow.gradient(1.0), angd.Energy(), angd.Normal(1e-3), angd.LevenbergMarquardt())
        points = Renewed(Uniform(interior=20, lower=1, upper=1), 2)
        first = Phase(optimiser, points, until=three, name="first")
        return [first, Phase(OnTop(optimiser), points, until=three, grow=Grow(), rounds=self.rounds, name="stages")]


def three(losses, steps, seconds):
    return len(losses) == 3


def trained(steps, rounds=2):
    return angd.fit(PROBLEM, Quick(rounds), steps=steps, progress=False)


def equal(a, b):
    jax.tree.map(np.testing.assert_array_equal, a, b)


@pytest.fixture(scope="module")
def whole():
    return trained(12)


def test_a_new_network_begins_when_the_rule_says_so_and_the_last_one_goes_on_to_the_end(whole):
    phases = [record.phase for record in whole.records]
    assert phases == [0] * 5 + [1] * 7
    assert whole.params.scales.shape == (5,)
    losses = np.array([record.loss for record in whole.records])
    assert losses[-1] < 1e-2 * losses[0]
    assert whole.result == "finished"
    once = trained(12, rounds=1)
    assert len(once.history["loss"]) == 12
    assert once.params.scales.shape == (3,)


def test_a_run_goes_on_to_the_last_bit_across_a_new_stage(tmp_path):
    setup = prepare(angd.Task(PROBLEM), Quick(), 0)

    def end(name, steps):
        run = Run(setup, Config("problem", "quick", steps=steps, python=True), tmp_path / name)
        losses = [record.loss for record in run.records()]
        return run.state, losses

    whole = end("whole", 12)
    parts = [end("parts", steps) for steps in (4, 5, 9, 12)][-1]
    for tree in ("params", "samples", "state", "fresh"):
        equal(getattr(parts[0], tree), getattr(whole[0], tree))
    assert parts[1] == whole[1]


def test_the_field_of_all_stages_is_one_that_is_read_again_and_differentiated(whole, tmp_path):
    again = angd.load(whole.save(tmp_path / "saved"), PROBLEM)
    assert isinstance(again.params, Staged)
    equal(whole(X), again(X))
    slope = jax.vmap(d(lambda z: PROBLEM.field(whole.params, z), 0))(X)
    step = 1e-5
    np.testing.assert_allclose(slope, (whole(X + step) - whole(X - step)) / (2 * step), atol=1e-8)


def test_a_branch_starts_from_a_stack(whole):
    more = angd.fit(PROBLEM, Quick(), params=whole.params, steps=2, progress=False)
    assert more.records[0].loss < 1.5 * whole.records[-1].loss + 1e-12
