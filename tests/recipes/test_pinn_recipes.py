"""Everything that can be run by name runs, and what cannot is answered in a sentence."""

from dataclasses import asdict, fields

import jax
import numpy as np
import pytest

from angd.problems.library import TASKS
from angd.problems.vmc import MOLECULES
from angd.recipes.experiments import EXPERIMENTS, preset
from angd.recipes.named import DENSITIES, FIELDS, RECIPES
from angd.train.config import Config
from angd.train.loop import Budget, Stand, train
from angd.train.setup import prepare

FEW = {"interior": 30, "condition": 8}
QUICK = {("burgers", "energy"), ("euler", "angd-h1"), ("heat", "ssbroyden"), ("heat", "sgd")}
EQUATIONS = [name for name in TASKS if not name.startswith("vmc-")]
PAIRS = [(e, o) for e in EQUATIONS for o in FIELDS]


def course(config, steps):
    setup = prepare(config)
    return setup, list(train(setup.problem, setup.phases, Stand(setup.params), setup.key, Budget(steps=steps)))


@pytest.mark.parametrize(
    ("experiment", "optimiser"), [pytest.param(*c, marks=[] if c in QUICK else pytest.mark.slow) for c in PAIRS]
)
@pytest.mark.filterwarnings("ignore:.*residuals at fixed points cannot hold")
def test_every_optimiser_runs_on_every_experiment(experiment, optimiser):
    setup, seen = course(Config.of(experiment, optimiser, FEW), 3)
    assert [stand.k for stand, _ in seen] == [1, 2, 3]
    assert all(np.isfinite(report.loss) for _, report in seen)
    look = setup.look(seen[-1][0], seen[-1][1].loss)
    assert set(look.errors) == ({"ρ", "u", "p"} if experiment == "euler" else {"u"})
    assert look.test_loss is not None
    assert np.isfinite([*look.errors.values(), look.test_loss]).all()


SMALL = {"walkers": 16, "burn_in": 5, "moves": 2, "pretrain": 2, "measurements": 4}


@pytest.mark.parametrize(
    ("name", "optimiser"), [("H", "angd-fr"), *(pytest.param("He", o, marks=pytest.mark.slow) for o in DENSITIES)]
)
def test_every_optimiser_of_densities_runs_on_atoms(name, optimiser):
    setup, seen = course(Config.of(f"vmc-{name.lower()}", optimiser, SMALL), 4)
    exact = MOLECULES[name].exact or 0
    assert [stand.phase for stand, _ in seen] == [0, 0, 1, 1]
    assert all(np.isfinite(report.loss) for _, report in seen)
    assert abs(seen[-1][1].loss - exact) < 3
    looks = [setup.look(stand, report.loss) for stand, report in seen[1:3]]
    assert [look.errors for look in looks] == [{}, {"energy": seen[2][1].loss - exact}]
    assert [set(look.observables) for look in looks] == [
        {"acceptance", "respawned"},
        {"acceptance", "respawned", "masked"},
    ]
    if optimiser == "spring":
        assert setup.finish is not None
        found = setup.finish(seen[-1][0].params)
        assert np.isfinite([found["error"], found["standard_error"]]).all()


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
    ("angd-l2", {"metric": "h2", "weight_decay": 1e-4, "beta": 1.0, "decay": 1e-3}),
    ("adam", {"weight_decay": 1e-4, "points": "fixed", "interior": 300}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("optimiser", "changes"), OTHERS, ids=str)
def test_every_other_choice_runs_too(optimiser, changes):
    _, seen = course(Config.of("heat", optimiser, FEW | changes), 4)
    assert len(seen) == 4
    assert all(np.isfinite(report.loss) for _, report in seen)


def test_the_catalogue_and_its_problems_agree():
    assert list(EXPERIMENTS) == list(TASKS)
    assert {entry.molecule for entry in EXPERIMENTS.values() if entry.molecule} == set(MOLECULES)
    for name, make in TASKS.items():
        task, entry = make("small"), EXPERIMENTS[name]
        assert (task.name, task.about, dict(task.options)) == (name, entry.about, dict(entry.options))
        assert task.cpu_seconds == entry.cpu_seconds
        assert task.is_density == (entry.molecule is not None)


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


def test_an_experiment_s_options_reach_the_whole_family_and_the_paper_s_network_its_own_method():
    points = {
        name: asdict(preset("euler", name, {})[1])["interior"] for name in ("energy", "energy-trust", "energy-fast")
    }
    assert points == {"energy": 1000, "energy-trust": 1000, "energy-fast": 2000}
    assert preset("euler", "adam", {})[1] == RECIPES["adam"].recipe
    assert Config.of("burgers", network="paper").optimizer == "energy-large"
    assert Config.of("burgers", "energy", network="paper").optimizer == "energy"
    assert Config.of("vmc-he", network="paper").optimizer == "angd-fr"


@pytest.mark.parametrize(("kind", "metric"), [("ngd", "h1"), ("angd", "h2")])
def test_another_metric_by_name_comes_with_its_rate_and_damping(kind, metric):
    assert preset("burgers", f"{kind}-l2", {"metric": metric})[1] == RECIPES[f"{kind}-{metric}"].recipe


@pytest.mark.parametrize(
    ("experiment", "optimiser", "changes", "words"),
    [
        ("burgrs", None, {}, "no experiment called 'burgrs'; did you mean 'burgers'"),
        ("burgers", "angd-l3", {}, "no recipe called 'angd-l3'; did you mean 'angd-l"),
        ("burgers", "zzz", {}, "there are adam, adam-vmc"),
        ("burgers", "spring", {}, "spring is not for burgers: take one of energy"),
        ("vmc-be", "adam", {}, "adam is not for vmc-be: take one of angd-fr"),
        ("burgers", "adam", {"rte": 1}, "no option of adam called 'rte'; did you mean 'rate'"),
        ("burgers", "adam", {"rate": "fast"}, "rate must be a number from 1e-12 to 100, got 'fast'"),
        ("burgers", "energy", {"interior": 2.5}, "interior must be a whole number"),
        ("burgers", "energy", {"metric": "h1"}, "lives in the energy metric"),
        ("burgers", "ngd-l2", {"metric": "energy"}, "lives in a Sobolev metric"),
        ("burgers", "adam", {"metric": "l2"}, "adam has no metric"),
        ("burgers", "ngd-l2", {"metric": "l7"}, "no metric called 'l7'"),
        ("burgers", "ngd-l2", {"solver": "magic"}, "solver must be one of"),
        ("burgers", "energy-trust", {"geodesic": "yes"}, "geodesic goes with levenberg-marquardt"),
        ("burgers", "energy", {"restart": "yes"}, "set mu > 0 as well"),
        ("burgers", "energy", {"transport": "current"}, "set mu > 0 as well"),
    ],
)
def test_what_does_not_exist_is_answered_in_a_sentence(experiment, optimiser, changes, words):
    with pytest.raises(ValueError, match=words):
        preset(experiment, optimiser, changes)
