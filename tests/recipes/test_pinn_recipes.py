"""Everything that can be run by name runs, and what cannot is answered in a sentence."""

from dataclasses import fields

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import angd
from angd.problems.library import EQUATIONS as BY_NAME
from angd.problems.library import TASKS
from angd.problems.vmc import MOLECULES
from angd.recipes.choice import default, suited
from angd.recipes.named import DENSITIES, FIELDS, RECIPES
from angd.recipes.pinn import Sobolev
from angd.train import loop
from angd.train.config import Config
from angd.train.loop import Budget, TrainState, train
from making import setup_of, task_of

FEW = {"interior": 30, "condition": 8}
QUICK = {("burgers", "energy"), ("euler", "angd-h1"), ("heat", "ssbroyden"), ("heat", "sgd")}
NAMED = {known.name for known in BY_NAME}  # tests/problems/test_equations.py
EQUATIONS = [name for name, known in TASKS.items() if not (known.density or name in NAMED)]
PAIRS = [(e, o) for e in EQUATIONS for o in FIELDS]


def course(config, steps):
    setup = setup_of(config)
    return setup, list(train(setup.problem, setup.phases, TrainState(setup.params), setup.key, Budget(steps=steps)))


@pytest.mark.parametrize(
    ("task", "recipe"), [pytest.param(*c, marks=[] if c in QUICK else pytest.mark.slow) for c in PAIRS]
)
@pytest.mark.filterwarnings("ignore:.*residuals at fixed points cannot hold")
def test_every_recipe_runs_on_every_task(task, recipe):
    setup, seen = course(Config.of(task, recipe, FEW), 3)
    assert [state.k for state, _ in seen] == [1, 2, 3]
    assert all(np.isfinite(info.loss) for _, info in seen)
    found = setup.evaluate(seen[-1][0], float(seen[-1][1].loss))
    assert set(found.errors) == ({"ρ", "u", "p"} if task == "euler" else {"u"})
    assert found.test_loss is not None
    assert np.isfinite([*found.errors.values(), found.test_loss]).all()


def test_all_phases_of_one_network_share_one_compiled_step(monkeypatch):
    powers, step = [], loop._step

    def counted(problem, optimiser, *held):
        powers.append(optimiser.solver.power)
        return step(problem, optimiser, *held)

    monkeypatch.setattr(loop, "_step", counted)
    setup, seen = course(Config.of("heat", "energy", FEW | {"warm_steps": 2, "fresh": 2}), 6)
    assert [state.phase for state, _ in seen] == [0, 0, 1, 1, 2, 2]
    assert [float(phase.optimiser.solver.power) for phase in setup.phases[:3]] == [0, 0.5, 0.5]
    assert len(powers) == 1, "it is traced once"


SMALL = {"walkers": 16, "burn_in": 5, "moves": 2, "pretrain": 2, "measurements": 4}


@pytest.mark.parametrize(
    ("name", "optimiser"),
    [pytest.param(atom, o, marks=pytest.mark.slow) for atom, o in [("H", "angd-fr"), *(("He", o) for o in DENSITIES)]],
)
def test_every_recipe_of_densities_runs_on_atoms(name, optimiser):
    setup, seen = course(Config.of(f"vmc-{name.lower()}", optimiser, SMALL), 4)
    exact = MOLECULES[name].exact or 0
    assert [state.phase for state, _ in seen] == [0, 0, 1, 1]
    assert all(np.isfinite(info.loss) for _, info in seen)
    assert abs(seen[-1][1].loss - exact) < 3
    found = [setup.evaluate(state, float(info.loss)) for state, info in seen[1:3]]
    assert [one.errors for one in found] == [{}, {"energy": seen[2][1].loss - exact}]
    assert [set(one.observables) for one in found] == [
        {"acceptance", "respawned"},
        {"acceptance", "respawned", "masked"},
    ]
    if optimiser == "spring":
        assert setup.final is not None
        ended = setup.final(seen[-1][0].params)
        assert np.isfinite([ended["error"], ended["standard_error"]]).all()


OTHERS = [
    ("energy", {"solver": "iterative"}),
    ("energy", {"solver": "kfac"}),
    ("energy", {"geodesic": "yes", "momentum": 0.9}),
    ("energy-accelerated", {"restart": "yes", "transport": "current"}),
    ("adam", {"points": "adaptive"}),
    ("ngd-l2", {"points": "sobol"}),
    ("energy", {"balance": 0.5}),
    ("energy", {"single_steps": 1, "warm_steps": 1, "keep": 1}),
    ("ngd-l2", {"solver": "kfac", "points": "fixed", "interior": 300}),
    ("angd-l2", {"metric": "h2", "weight_decay": 1e-4, "beta": 1.0, "alpha_decay": 1e-3}),
    ("adam", {"weight_decay": 1e-4, "points": "fixed", "interior": 300}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("optimiser", "changes"), OTHERS, ids=str)
def test_every_other_choice_runs_too(optimiser, changes):
    _, seen = course(Config.of("heat", optimiser, FEW | changes), 4)
    assert len(seen) == 4
    assert all(np.isfinite(info.loss) for _, info in seen)


def test_a_built_in_task_says_the_same_before_and_after_it_is_built():
    for name, known in TASKS.items():
        task = known("small")
        assert known.recipe in (None, default(task))
        assert (task.name, task.address, task.about, task.options) == (name, name, known.about, known.options)
        assert task.cpu_seconds == known.cpu_seconds
        assert task.is_density == known.density
    waves = {name for name, known in TASKS.items() if known.density and known.recipe is None}
    others = {"tfim", "heisenberg", "j1j2", "hubbard", "dot-2d", "dot-2d-6", "dot-3d"}
    assert {f"vmc-{name.lower()}" for name in MOLECULES} | others == waves


def test_every_grid_names_options_and_values_that_exist():
    for name, optimiser in RECIPES.items():
        known = {spec.name for spec in fields(optimiser.recipe)}
        for grid in (optimiser.grid, optimiser.paper):
            assert set(grid) <= known
            for option, values in grid.items():
                for value in values:
                    optimiser.recipe.changed({option: value}, name)


def test_the_paper_s_network_has_its_size():
    params = TASKS["burgers"]("paper").start(jax.random.key(0))
    assert sum(leaf.size for leaf in jax.tree.leaves(params)) == 16761


def test_a_task_s_options_reach_the_whole_family_and_the_paper_s_network_its_own_recipe():
    euler = TASKS["euler"]
    points = {
        name: suited(RECIPES[name].recipe, euler).options()["interior"]
        for name in ("energy", "energy-trust", "energy-fast")
    }
    assert points == {"energy": 1000, "energy-trust": 1000, "energy-fast": 2000}
    assert suited(RECIPES["adam"].recipe, euler) == RECIPES["adam"].recipe
    paper = {"network": "paper"}
    assert Config.of("burgers", arguments=paper).recipe == "energy-large"
    assert Config.of("burgers", "energy", arguments=paper).recipe == "energy"
    assert Config.of("vmc-he", arguments=paper).recipe == "angd-fr"


def test_what_is_chosen_before_a_task_is_built_is_what_the_task_would_choose():
    for name in ("burgers", "heat", "vmc-h"):
        for network in ("small", "paper"):
            assert default(task_of(name, network)) == Config.of(name, arguments={"network": network}).recipe


@pytest.mark.parametrize(
    ("task", "recipe", "changes", "words"),
    [
        ("burgrs", None, {}, "no task called 'burgrs'; did you mean 'burgers'"),
        ("burgers", "angd-l3", {}, "no recipe called 'angd-l3'; did you mean 'angd-l"),
        ("burgers", "zzz", {}, "there are adam, adam-vmc"),
        ("burgers", "spring", {}, "spring is not for burgers: take one of energy"),
        ("vmc-be", "adam", {}, "adam is not for vmc-be: take one of angd-fr"),
        ("burgers", "adam", {"rte": 1}, "no option of adam called 'rte'; did you mean 'rate'"),
        ("burgers", "adam", {"rate": "fast"}, "rate must be a number from 1e-12 to 100, got 'fast'"),
        ("burgers", "energy", {"interior": 2.5}, "interior must be a whole number"),
        ("burgers", "adam", {"metric": "l2"}, "no option of adam called 'metric'"),
        ("burgers", "ngd-l2", {"metric": "l7"}, "metric must be one of l2, h1, h2, or the address of a metric"),
        ("burgers", "ngd-l2", {"metric": "nowhere.py:M"}, "There is no file 'nowhere.py'"),
        ("burgers", "ngd-l2", {"solver": "no.such.module:S"}, "There is no module 'no.such.module'"),
        ("burgers", "ngd-l2", {"solver": "magic"}, "solver must be one of"),
        ("burgers", "energy-trust", {"geodesic": "yes"}, "geodesic goes with levenberg-marquardt"),
        ("burgers", "energy", {"restart": "yes"}, "set mu > 0 as well"),
        ("burgers", "energy", {"transport": "current"}, "set mu > 0 as well"),
        ("burgers", "angd-l2", {"alpha": 50}, r"angd-l2: alpha must be at most 1/√rate = 5\.7735, got 50"),
        ("burgers", "angd-l2", {"alpha_decay": -1}, "alpha_decay must be a number from 0 to 10, got -1"),
        ("burgers", "ngd-l2", {"h_decay": 1e-3}, "h_decay has no effect on this method"),
        ("burgers", "heavy-ball", {"alpha_decay": 1e-3}, "alpha_decay has no effect on this method"),
        ("burgers", "nesterov", {"alpha": 0.1}, "alpha has no effect on this method"),
        ("burgers", "engd", {"beta_decay": 1e-3}, "beta_decay has no effect on this method"),
    ],
)
def test_what_does_not_exist_is_answered_in_a_sentence(task, recipe, changes, words):
    with pytest.raises(ValueError, match=words):
        Config.of(task, recipe, changes)


FALLING = {"rate": 0.04, "alpha": 2.0, "beta": 0.5, "h_decay": 1e-3, "alpha_decay": 0.02, "beta_decay": 0.3}


def falling(changes):
    """The flow of `angd-l2` on Burgers with these options."""
    recipe = suited(RECIPES["angd-l2"].recipe, TASKS["burgers"], changes, "angd-l2")
    assert isinstance(recipe, Sobolev)
    return recipe.optimiser().flow


def test_h_alpha_and_beta_fall_each_by_its_own_decay():
    """Inverse time, c/(1 + εk); `beta` is in units of the first h."""
    flow = falling(FALLING)
    before = None
    for k in (0, 1, 100):
        c = flow.step(k, 1.0, before)
        h, alpha, beta = 0.2 / (1 + 1e-3 * k), 2 / (1 + 0.02 * k), 0.1 / (1 + 0.3 * k)
        assert np.allclose([c.h, c.alpha, c.beta, c.gamma], [h, alpha, beta, 1.0])
        assert np.isclose(c.mu, 1 - h * alpha)
        assert np.isclose(c.beta_dot, 0.0 if before is None else (beta - float(before)) / h)
        before = c.beta


def test_mu_says_the_same_as_alpha_and_falls_alike():
    told = {"rate": 0.04, "alpha_decay": 0.02}
    by_mu, by_alpha = falling(told | {"mu": 0.6}), falling(told | {"alpha": 2.0})
    for k in (0, 1, 100):
        assert np.isclose(by_mu.step(k, 1.0).alpha, 2 / (1 + 0.02 * k))
        assert np.isclose(by_mu.step(k, 1.0).mu, by_alpha.step(k, 1.0).mu)
    with pytest.raises(ValueError, match="angd-l2: mu and alpha say the same thing; give one of them"):
        falling(told | {"mu": 0.6, "alpha": 2.0})


def test_weight_decay_is_in_units_of_the_rate():
    recipe = suited(RECIPES["angd-l2"].recipe, TASKS["burgers"], {"rate": 0.02, "weight_decay": 1e-3}, "angd-l2")
    assert isinstance(recipe, Sobolev)
    assert np.isclose(recipe.optimiser().amount, 2e-5)


class Line(eqx.Module):
    """u = θ₀ + θ₁ x, fitted to x²: linear in θ, so that Φ and f are vectors of ℝ² and G is constant."""

    def field(self, params, x):
        return params[0] + params[1] * x

    def loss(self, params, samples):
        return samples.mean((params[0] + params[1] * samples.x - samples.x**2) ** 2) / 2


def test_falling_coefficients_take_the_steps_of_the_flow_with_a_backward_difference_of_beta():
    """Ψ ← Ψ − h (αΦ + (γ − β̇) f), Φ = Ψ − βf, θ ← θ + h G⁻¹Φ, with β̇ = (β − β_prev)/h, from Ψ = βf."""
    xs = np.linspace(-1, 2, 7)
    recipe = RECIPES["angd-l2"].recipe.changed(FALLING | {"search": False, "damping": 1e-12})
    opt, problem, samples = recipe.optimiser(), Line(), angd.Samples(jnp.asarray(xs))
    params = jnp.array([0.5, -1.0])
    state, step = opt.init(problem, params, samples), eqx.filter_jit(opt.step)
    O = np.stack([np.ones(7), xs], axis=1)
    G, theta, Psi, Phi, old = O.T @ O / 7, np.array([0.5, -1.0]), None, np.zeros(2), 0.1
    for k in range(6):
        params, _, state, _ = step(problem, params, samples, state)
        h, alpha, beta = 0.2 / (1 + 1e-3 * k), 2 / (1 + 0.02 * k), 0.1 / (1 + 0.3 * k)
        f = O.T @ (O @ theta - xs**2) / 7
        Psi = (old * f if Psi is None else Psi) - h * (alpha * Phi + (1 - (beta - old) / h) * f)
        Phi, old = Psi - beta * f, beta
        theta = theta + h * np.linalg.solve(G, Phi)
        assert np.allclose(params, theta, atol=1e-9)
    assert np.abs(theta - [0.5, -1.0]).max() > 0.1


def test_a_run_with_falling_coefficients_ends_well():
    _, seen = course(Config.of("heat", "angd-l2", FEW | FALLING), 4)
    assert all(np.isfinite(info.loss) for _, info in seen)
    assert seen[-1][1].loss < seen[0][1].loss
