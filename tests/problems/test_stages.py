"""Networks on top of one another: their sum, their units, and that only the last one moves."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import angd
from angd.problems.pinn import Box, Condition, Network, Problem, Rolling, Uniform, d, observed
from angd.problems.stages import Grow, OnTop, Staged, staged_like, total
from angd.recipes.stages import Crawl, stacks
from angd.train.checkpoint import named_leaves

KEY = jax.random.key(0)
BOX = Box((0.0, 1.0), (0.0, 1.0))
GAUSS_NEWTON = angd.ANGD(angd.ARGFlow.gradient(1.0), angd.Energy(), angd.Normal(1e-12))


def hill(network, constraint=None, outputs=None):
    """−Δu = 1, or (1, 2) of two components, with u = 0 at one wall."""
    force = 1.0 if outputs is None else jnp.array([1.0, 2.0])
    wall = Condition(BOX.face(0, "lower"), lambda u, z: u(z), 10.0)

    def equation(u, z):
        return d(u, 0, 0)(z) + d(u, 1, 1)(z) + force

    return Problem(network, BOX, equation, {"wall": wall}, constraint)


def started(problem):
    params = problem.init(KEY)
    samples = Uniform(interior=40, wall=10)(jax.random.key(1), problem, params)
    return params, samples


class Line:
    """A model that is linear in its parameters, u = θ · (1, x, y, x², y²)."""

    def init(self, key, dimension):
        return jax.random.normal(key, (5,))

    def __call__(self, params, z):
        return params @ jnp.stack([1.0, z[0], z[1], z[0] ** 2, z[1] ** 2])


def test_the_field_of_a_stack_is_the_scaled_sum_of_its_networks():
    problem = hill(Network((4,)))
    a, b, c = (problem.init(jax.random.key(i)) for i in range(3))
    below = jax.tree.map(lambda *leaves: jnp.stack(leaves), a, b)
    stack, z = Staged(below, jnp.array([1.0, -0.3, 0.3]), c), jnp.array([0.2, 0.7])
    expected = problem.field(a, z) + 0.3 * (problem.field(c, z) - problem.field(b, z))
    assert problem.field(stack, z) == pytest.approx(float(expected), abs=1e-14)
    assert total(lambda part: part[0][1][0], stack) == 0.0


@pytest.mark.parametrize("outputs", [None, 2])
def test_a_new_network_changes_nothing_and_sees_residuals_of_mean_square_one(outputs):
    problem = hill(Network((4, 3), outputs=outputs), outputs=outputs)
    params, samples = started(problem)
    loss = problem.loss(params, samples)
    grown = Grow()(KEY, problem, params, loss)
    twice = Grow()(KEY, problem, grown, loss / 100)
    z = jnp.array([0.3, 0.6])
    for stack in (grown, twice):
        np.testing.assert_allclose(problem.field(stack, z), problem.field(params, z), rtol=1e-12)
        assert np.allclose(problem.loss(stack, samples), loss, rtol=1e-10)
    part = OnTop(GAUSS_NEWTON).part(problem, grown)
    squares = [np.mean(np.sum(np.square(r.reshape(len(r), -1)), 1)) for r in values(part, grown.last, samples)]
    assert squares @ np.array([1.0, 10.0]) == pytest.approx(1.0)
    assert np.allclose(twice.scales[1:], np.sqrt(2 * loss) * np.array([-1, 1, -0.1, 0.1]))
    assert twice.scales[0] == 1


def values(problem, params, samples):
    return [jax.vmap(problem.residuals[name], (None, 0))(params, samples[name].x) for name in ("interior", "wall")]


def test_weights_of_a_new_network_are_those_below_with_relative_noise():
    problem = hill(Network((60, 60)))
    params, _ = started(problem)
    grown = Grow(0.2)(KEY, problem, params, 1.0)
    ratio = (grown.last[1][0] / params[1][0] - 1).ravel()
    assert float(jnp.std(ratio)) == pytest.approx(0.2, rel=0.05)
    assert abs(float(jnp.mean(ratio))) < 0.02


def test_a_constraint_holds_whatever_the_last_network_says():
    def affine(z, value):
        return jnp.sin(z[1]) + z[0] * value

    problem = hill(Network((4,)), affine)
    params, _ = started(problem)
    grown = Grow()(KEY, problem, params, 1.0)
    other = Staged(grown.frozen, grown.scales, jax.tree.map(lambda x: x + 1.0, grown.last))
    wall, inside = jnp.array([0.0, 0.4]), jnp.array([0.5, 0.4])
    assert problem.field(other, wall) == jnp.sin(0.4)
    assert abs(problem.field(other, inside) - problem.field(params, inside)) > 1e-3


def test_only_the_last_network_moves_and_losses_are_those_of_the_problem():
    problem = hill(Network((4,)))
    params, samples = started(problem)
    grown = Grow()(KEY, problem, params, problem.loss(params, samples))
    careful = angd.ANGD(GAUSS_NEWTON.flow, angd.Energy(), angd.Normal(1e-3), angd.LevenbergMarquardt())
    optimiser = OnTop(careful)
    state = optimiser.init(problem, grown, samples)
    first, _, state, info = eqx.filter_jit(optimiser.step)(problem, grown, samples, state)
    jax.tree.map(np.testing.assert_array_equal, first.frozen, grown.frozen)
    assert info.loss == pytest.approx(float(problem.loss(params, samples)))
    assert problem.loss(first, samples) < info.loss


def test_the_step_of_a_linear_model_on_top_solves_the_problem_as_the_model_itself_would():
    """For u linear in θ, one Gauss–Newton step from anywhere is the least-squares solution; so it is from a stack."""
    problem = hill(Line())
    params, samples = started(problem)
    alone, *_ = GAUSS_NEWTON.step(problem, params, samples, GAUSS_NEWTON.init(problem, params, samples))
    grown, optimiser = Grow()(KEY, problem, params, problem.loss(params, samples)), OnTop(GAUSS_NEWTON)
    stack, *_ = optimiser.step(problem, grown, samples, optimiser.init(problem, grown, samples))
    assert total(lambda theta: theta, stack) == pytest.approx(np.asarray(alone), abs=1e-7)
    assert np.abs(alone - params).max() > 0.1


@pytest.mark.slow
def test_modules_of_other_frameworks_stack_too():
    problem = hill(eqx.nn.MLP(2, "scalar", 5, 1, jnp.tanh, key=KEY))
    params, samples = started(problem)
    grown = Grow()(KEY, problem, params, problem.loss(params, samples))
    optimiser = OnTop(GAUSS_NEWTON)
    stack, *_ = optimiser.step(problem, grown, samples, optimiser.init(problem, grown, samples))
    assert np.isfinite(problem.field(stack, jnp.array([0.1, 0.2])))


def test_the_structure_of_a_saved_stack_is_found_in_its_names():
    problem = hill(Network((4,)))
    params, _ = started(problem)
    stack = Grow()(KEY, problem, Grow()(KEY, problem, params, 1.0), 0.1)
    for saved in ({"params": params}, {"params": stack}):
        like = staged_like(params, named_leaves(saved))
        assert jax.tree.structure(like) == jax.tree.structure(saved["params"])
    assert jax.tree.structure(staged_like(params, named_leaves(stack))) == jax.tree.structure(stack)


STEPS = np.arange(1, 61)


@pytest.mark.parametrize(
    ("losses", "slow"),
    [(STEPS**-2.0, True), (STEPS**-6.0, False), (np.exp(-0.2 * STEPS), False), (np.full(60, 1e-9), True)],
)
def test_a_phase_is_slow_when_twice_the_steps_no_longer_pay(losses, slow):
    assert Crawl()(losses.tolist(), 1e3, 1e3) is slow


def test_a_new_stage_needs_losses_to_judge_by_and_a_budget_that_is_worth_it():
    losses, inf = [1e-9] * 60, float("inf")
    assert Crawl(least=60)(losses, inf, inf)
    assert not Crawl(least=61)(losses, inf, inf)
    assert not Crawl(steps=100)(losses, 99, inf)
    assert not Crawl(seconds=30)(losses, inf, 29)
    noisy = [loss * (1000 if i % 3 == 0 else 1) for i, loss in enumerate(np.exp(-0.2 * STEPS))]
    assert not Crawl()(noisy, inf, inf)


def test_networks_do_not_stack_where_values_are_measured_or_points_are_given():
    problem = hill(Network((4,)))
    assert stacks(angd.Task(problem))
    data = Problem(problem.network, BOX, problem.equation, {"data": observed(jnp.ones((3, 2)) / 2, jnp.ones(3))})
    assert not stacks(angd.Task(data))
    assert not stacks(angd.Task(problem, samples=Uniform(interior=5, wall=5)))
    names = [[phase.name for phase in angd.recipes.GaussNewton(stages=n).phases(angd.Task(problem))] for n in (0, 3)]
    assert names == [["uniform points", "adaptive points", "kept points"], [*names[0], "stages"]]


def test_rolling_points_serve_as_many_steps_as_there_are_parts():
    problem = hill(Network((4,)))
    params, _ = started(problem)
    rolling = Rolling(Uniform(interior=6, wall=3), Uniform(interior=2, wall=1))
    first = seen = rolling(KEY, problem, params)
    for number in range(3):
        before, seen = seen, rolling.move(jax.random.key(10 + number), problem, params, seen)
        for name, part in seen.items():
            new = 2 if name == "interior" else 1
            kept = [leaf[new:] for leaf in jax.tree.leaves(part.x)]
            assert all(map(np.array_equal, kept, [leaf[:-new] for leaf in jax.tree.leaves(before[name].x)]))
            assert np.array_equal(part.omega, first[name].omega)
    assert not np.isin(seen["interior"].x, first["interior"].x).any()
