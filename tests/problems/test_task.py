"""A task: what is known beside a problem, and what is done where nothing is."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import angd
from angd.problems.evaluation import Evaluator, grid
from angd.problems.library import burgers, heat
from angd.problems.pinn import Box, Condition, Network, Problem, d
from angd.problems.solution import differences
from angd.problems.task import Task
from angd.problems.vmc import Molecule
from angd.recipes.choice import chosen, default
from angd.recipes.pinn import GaussNewton
from angd.train.loop import Budget, TrainState, train
from angd.view.fields import draw_solution

BOX = Box((0.0, 1.0))


def equation(u, z):
    return d(u, 0)(z) - 1.0


def start(u, z):
    return u(z)


PROBLEM = Problem(Network((4,)), BOX, equation, {"start": Condition(BOX.face(0, "lower"), start)})
FEW = GaussNewton(interior=20, condition=2)


def trained(task, steps, seed=0):
    recipe = FEW.phases(task)
    begin = TrainState(task.start(jax.random.key(seed)))
    *_, (last, _) = train(task.problem, recipe, begin, jax.random.key(1), Budget(steps=steps))
    return last.params


def test_a_bare_problem_is_judged_by_its_held_out_loss_and_can_be_drawn():
    task = Task.of(PROBLEM)
    evaluate = Evaluator(task)
    before = evaluate(task.start(jax.random.key(0)), None, 0.0)
    solutions, after = [], before
    for seed in (0, 1):
        params = trained(task, 15, seed)
        after = evaluate(params, None, 0.0)
        assert evaluate.solution is not None
        solutions.append(evaluate.solution(params))
    assert after.errors == {}
    assert after.test_loss is not None
    assert before.test_loss is not None
    assert after.test_loss < 1e-3 * before.test_loss
    z = solutions[0]["z"]
    assert np.allclose(solutions[0]["u found"], z[:, 0], atol=0.05)
    assert 0 < differences(solutions)["u"] < 0.05
    assert [panel.get_title() for panel in draw_solution(solutions[0]).axes] == ["u"]


def test_an_exact_solution_gives_errors():
    task = Task(PROBLEM, exact=lambda z: z[0], observables={"at 1": lambda p: PROBLEM.field(p, jnp.ones(1))})
    found = Evaluator(task)(trained(task, 15), None, 0.0)
    assert found.errors["u"] < 0.05
    assert abs(found.observables["at 1"] - 1) < 0.1


def test_the_recipe_is_chosen_by_what_the_problem_is_and_by_its_size():
    class Density(eqx.Module):
        def log_density(self, params, x):
            return -jnp.sum((x - params) ** 2)

        def variation(self, params, x):
            return jnp.sum(x**2)

    class Line(eqx.Module):
        def residual(self, params, x):
            return params[0] * x - x

    few, many = (angd.Samples(jnp.linspace(0, 1, n)) for n in (2, 9))
    assert default(Task(Density())) == "angd-fr"
    assert default(Task(Line(), params=jnp.zeros(3), samples=many)) == "energy"
    assert default(Task(Line(), params=jnp.zeros(3), samples=few)) == "energy-large"
    assert default(burgers("paper")) == "energy-large"
    assert chosen(None, heat())[1] == GaussNewton(interior=200, condition=40, fresh=20, keep=5)


def test_a_density_that_knows_no_loss_is_trained_on_given_samples():
    class Shifted(eqx.Module):
        def log_density(self, params, x):
            return -jnp.sum((x - params) ** 2) / 2

        def variation(self, params, x):
            return jnp.sum((x - 3.0) ** 2) / 2

    def sampler(key, problem, params):
        return angd.Samples(params[None] + jax.random.normal(key, (64, 1)))

    task = Task(Shifted(), params=jnp.zeros(1), samples=sampler)
    _, recipe = chosen(None, task, {"norm": 1.0})
    seen = list(
        train(task.problem, recipe.phases(task), TrainState(task.start(None)), jax.random.key(0), Budget(steps=30))
    )
    assert float(jnp.abs(seen[-1][0].params[0] - 3.0)) < 1.0


def test_a_molecule_is_a_task():
    task = Task.of(Molecule.of([("H", (0.0, 0.0, 0.0))], units="bohr"))
    assert (task.name, task.is_density, task.energy) == ("H", True, None)


def test_the_grid_of_more_than_two_coordinates_is_a_slice():
    box = Box((0.0, 1.0), (0.0, 2.0), (0.0, 4.0))
    z = grid(Task(Problem(Network((2,)), box, lambda u, z: u(z), {})))
    assert z is not None
    assert z.shape[1] == 3
    assert set(z[:, 2]) == {2.0}


class Bare(eqx.Module):
    def residual(self, params, x):
        return params - x


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Task.of(3), "is not a problem"),
        (lambda: Task(Bare()).start(None), "where does training start"),
        (lambda: Task(Bare()).counts(1, 1), "has no domain to draw points in"),
        (lambda: Task(Bare(), samples="many").sampler(), "samples must be Samples"),
        (lambda: Task(Bare()).field(jnp.zeros(1), jnp.zeros((2, 1))), "has no `field`"),
        (lambda: Task(PROBLEM, exact=jnp.sin, reference=(0, {})), "not both"),
        (lambda: GaussNewton(interior=0), "GaussNewton: interior must be a number from 1"),
        (lambda: GaussNewton(restart=True), "set mu > 0 as well"),
    ],
)
def test_misuse_is_answered_in_a_sentence(make, words):
    with pytest.raises(ValueError, match=words):
        make()
