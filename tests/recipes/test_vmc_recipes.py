"""What options of ground states mean."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import angd
from angd.problems.library import TASKS, beryllium, hydrogen
from angd.problems.vmc import MOLECULES, ElectronRefit
from angd.program.reached import energy
from angd.recipes.choice import suited
from angd.recipes.named import named
from angd.recipes.vmc import Vmc

BE = MOLECULES["Be"]


def options(method, **changes):
    found = suited(named(method).recipe, TASKS["vmc-be"], changes, method)
    assert isinstance(found, Vmc)
    return found


def test_the_rate_falls_alike_with_momentum_and_without():
    """So that a comparison of the two is not one of schedules."""
    plain = options("spring", rate=0.05, decay=1e-3).optimiser(BE).flow
    fast = options("angd-fr", rate=0.01, mu=0.8, decay=1e-3).flow()
    for k in (0, 1000, 5000):
        a, b = plain.step(k, 1.0), fast.step(k, 1.0)
        assert np.isclose(b.mu, 0.8)
        assert np.isclose(a.rate, b.rate / (1 - b.mu))
        assert np.isclose(a.rate, 0.05 / (1 + 1e-3 * k))


def test_h_alpha_and_beta_fall_as_the_paper_has_them():
    """h = h₀/(1 + εk), α = α₀/(1 + εk) with α₀ = c/h₀, β = β₀/(1 + εk), γ = 1: so μ = 1 − c/(1 + εk)²."""
    told = {"rate": 0.01, "beta": 0.05, "decay": 0, "h_decay": 5e-5, "alpha_decay": 5e-5, "beta_decay": 5e-5}
    for momentum in ({"mu": 0.8}, {"alpha": 2.0}):
        flow = options("angd-fr", **told, **momentum).flow()
        for k in (0, 1, 100, 20000):
            c, fallen = flow.step(k, 1.0), 1 / (1 + 5e-5 * k)
            assert np.allclose([c.h, c.alpha, c.beta, c.gamma], [0.1 * fallen, 2 * fallen, 0.05 * fallen, 1.0])
            assert np.isclose(c.mu, 1 - 0.2 * fallen**2)


def test_the_norm_constraint_and_the_quadratic_term_are_as_told():
    told = options("angd-fr", norm_in_metric="yes", implicit="yes", limit="inf", restart="no").optimiser(BE)
    assert told.controller.controllers[0].in_metric
    assert told.metric.implicit
    assert told.metric.limit is None
    usual = options("angd-fr", restart="no").optimiser(BE)
    assert not usual.controller.controllers[0].in_metric
    assert not usual.metric.implicit


def test_adam_s_rate_falls_as_it_is_told():
    rule, params = options("adam-vmc", rate=1e-2, decay=1e-3).optimiser(BE).rule(), jnp.zeros(())
    state = rule.init(params)
    sizes = []
    step = jax.jit(lambda state: rule.update(jnp.ones(()), state, params))
    for _ in range(1001):
        update, state = step(state)
        sizes.append(-float(update))
    assert np.isclose(sizes[0], 1e-2, rtol=1e-4)
    assert np.isclose(sizes[-1], 5e-3, rtol=1e-3)


def test_the_parametric_form_carries_its_momentum_by_the_present_jacobian():
    assert isinstance(options("angd-w2p").optimiser(BE).transport, angd.CurrentJVP)
    assert isinstance(options("angd-w2").optimiser(BE).transport, angd.JVP)


@pytest.mark.parametrize("method", ["angd-fr", "spring", "angd-w2p"])
def test_a_sweep_compiles_once(method):
    """What it varies are arrays; everything else of two configurations is the same."""
    numbers = {"rate": (0.01, 0.05), "norm": (0.01, 0.05), "damping": (1e-3, 4e-3), "decay": (0.0, 1e-3)}
    fall = dict.fromkeys(("h_decay", "alpha_decay"), (0.0, 1e-4))
    numbers |= {"eta": (0.9, 0.99)} | ({"mu": (0.8, 0.9), **fall} if "angd" in method else {})
    made = [options(method, **{k: v[i] for k, v in numbers.items()}).optimiser(BE) for i in (0, 1)]
    one, other = (eqx.partition(optimiser, eqx.is_array)[1] for optimiser in made)
    assert eqx.tree_equal(one, other)


def test_velocities_are_refitted_as_told():
    assert isinstance(options("angd-w2").space(BE).refit, ElectronRefit)
    assert isinstance(options("angd-w2", refit="affine").space(BE).refit, angd.AffineRefit)
    with pytest.raises(ValueError, match="refit has no effect"):
        options("angd-fr", refit="affine")


def test_a_run_that_ends_without_finite_energies_says_so():
    task, few = hydrogen(), options("angd-fr", walkers=4, burn_in=0, moves=1, measurements=4)
    broken = jax.tree.map(lambda leaf: jnp.nan * leaf, task.start(jax.random.key(0)))
    final = few.final(task)
    assert final is not None
    found = final(broken, jax.random.key(1))
    assert np.isnan(found["energy"])
    assert "no energy" in energy(None, None, {"energy": None, "rhat": None})
    assert "1.00000 ± 0.10000 Ha (2.00 mHa above the reference)" in energy(2e-3, 0.1, {"energy": 1.0, "rhat": 1.0})
    assert "raise burn_in" in energy(2e-3, 0.1, {"energy": 1.0, "rhat": 1.4})


@pytest.mark.parametrize(
    ("method", "changes"),
    [
        ("spring", {"beta": 0.1}),
        ("spring", {"limit": 1.0}),
        ("angd-fr", {"force_clip": 2.0}),
        ("angd-w2", {"limit": 1.0}),
        ("adam-vmc", {"norm": 0.1}),
        ("adam-vmc", {"norm_in_metric": True}),
        ("spring", {"alpha_decay": 1e-3}),
        ("angd-w2", {"implicit": True}),
    ],
)
def test_an_option_without_effect_is_refused(method, changes):
    with pytest.raises(ValueError, match=f"{method}: {next(iter(changes))} has no effect"):
        options(method, **changes)


@pytest.mark.parametrize(("metric", "solver"), [("fisher-rao", angd.Kernel), ("wasserstein", angd.Normal)])
def test_projected_momentum_is_there_if_eta_is(metric, solver):
    name = "angd-fr" if metric == "fisher-rao" else "angd-w2"
    assert isinstance(options(name, eta=0.0).inverse(), solver)
    wrapped = options(name, eta=0.9).inverse()
    assert isinstance(wrapped, angd.ProjectedMomentum)
    assert np.isclose(wrapped.eta, 0.9)
    assert isinstance(wrapped.inner, solver)


def test_training_follows_on_the_walkers_of_pretraining_if_there_is_one():
    task = beryllium()
    before, last = options("angd-fr", pretrain=3).phases(task)
    assert before.pretraining
    assert before.steps == 3
    assert last.follows
    (alone,) = options("angd-fr", pretrain=0).phases(task)
    assert not alone.follows
