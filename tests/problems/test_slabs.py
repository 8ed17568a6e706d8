"""Time slabs: one field made of networks one after the other, each trained from the end of the one before."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import angd
from angd.problems.library import TASKS
from angd.problems.pinn import Ball, Box, Causal, Condition, Integral, Network, Problem, Uniform, d, heat, observed
from angd.problems.slabs import InSlab, Next, OfSlab, SlabProblem, Slabs, at_time
from angd.problems.stages import staged_like
from angd.recipes import GaussNewton, Phase
from angd.train.checkpoint import named_leaves

KEY = jax.random.key(0)
PROBLEM = heat.heat(Network((5,)))
FEW = GaussNewton(interior=150, condition=40, slabs=3)


def networks(k=3):
    """Slabs with a network of its own in each."""
    each = [PROBLEM.init(jax.random.key(i)) for i in range(k)]
    slabs = Slabs.of(each[0], (0.0, 1.0), k)
    return each, Slabs(jax.tree.map(lambda *leaves: jnp.stack(leaves), *each), slabs.edges, jnp.array(k - 1))


def test_the_field_is_at_every_time_that_of_its_slab_with_its_derivatives():
    each, slabs = networks()
    for t, i in ((0.0, 0), (0.3, 0), (0.34, 1), (0.66, 1), (0.67, 2), (1.0, 2)):
        z = jnp.array([t, 0.4])
        for order in ((), (0,), (1, 1)):
            one, all = (d(lambda y, p=p: PROBLEM.field(p, y), *order)(z) for p in (each[i], slabs))
            assert np.isclose(one, all, atol=1e-12)


def test_times_after_the_present_slab_are_those_of_the_present_one():
    each, slabs = networks()
    early = Slabs(slabs.parts, slabs.edges, jnp.array(0))
    assert np.allclose(at_time(early, jnp.array(0.9))[0][0], each[0][0][0])
    assert at_time(each[1], jnp.array(0.9)) is each[1]


def test_a_slab_sees_the_equation_at_its_own_times_and_begins_where_the_last_one_ends():
    each, slabs = networks()
    part, z = SlabProblem(PROBLEM, slabs), jnp.array([0.5, 0.3])
    moved = jnp.array([2 / 3 + 0.5 / 3, 0.3])
    for name in ("interior", "walls"):
        assert np.isclose(part.residuals[name](each[2], z), PROBLEM.residuals[name](each[2], moved), atol=1e-12)
    begin = jnp.array([0.0, 0.3])
    found = part.residuals["initial"](each[2], begin)
    edge = jnp.array([2 / 3, 0.3])
    assert np.isclose(found, PROBLEM.field(each[2], edge) - PROBLEM.field(each[1], edge), atol=1e-12)
    first = SlabProblem(PROBLEM, Slabs(slabs.parts, slabs.edges, jnp.array(0)))
    assert np.isclose(first.residuals["initial"](each[0], begin), PROBLEM.residuals["initial"](each[0], begin))


def test_a_step_changes_the_present_slab_alone_and_the_next_one_begins_with_its_parameters():
    _, slabs = networks()
    slabs = Slabs(slabs.parts, slabs.edges, jnp.array(1))
    sampler = OfSlab(Uniform(interior=20, initial=5, walls=6))
    opt = InSlab(angd.ANGD(angd.ARGFlow.gradient(1.0), angd.Energy(), angd.Normal(1e-2), angd.LevenbergMarquardt()))
    samples = sampler(KEY, PROBLEM, slabs)
    after, _, _, info = eqx.filter_jit(opt.step)(PROBLEM, slabs, samples, opt.init(PROBLEM, slabs, samples))
    assert np.isfinite(info.loss)
    for i, changed in ((0, False), (1, True), (2, False)):
        before, now = jax.tree.leaves(slabs[i]), jax.tree.leaves(after[i])
        assert changed != all(np.array_equal(a, b) for a, b in zip(before, now, strict=True))
    following = Next()(KEY, PROBLEM, after, None)
    assert int(following.now) == 2
    assert all(np.array_equal(a, b) for a, b in zip(*(jax.tree.leaves(following[i]) for i in (1, 2)), strict=True))


@pytest.mark.slow
def test_marching_finds_the_solution_at_all_times():
    """A third of the steps for each third of the time."""
    fit = angd.fit("heat", FEW, steps=75, progress=False)
    assert int(fit.params.now) == 2
    z, exact = heat.reference()
    error = np.abs(np.asarray(fit(jnp.asarray(z))) - exact)
    for slab in np.array_split(np.argsort(z[:, 0], kind="stable"), 3):
        assert error[slab].max() < 0.02


@pytest.mark.slow
def test_marching_that_was_interrupted_goes_on_as_if_it_had_not_been(tmp_path):
    angd.fit("heat", FEW, steps=40, folder=tmp_path / "a", progress=False)
    twice, once = (angd.fit("heat", FEW, steps=60, folder=tmp_path / name, progress=False) for name in "ab")
    assert isinstance(twice.params, Slabs)
    assert int(twice.params.now) == int(once.params.now) == 2


def test_saved_slabs_have_their_structure():
    each, slabs = networks()
    for saved in (slabs, {"params": slabs}):
        assert jax.tree.structure(staged_like(each[0], named_leaves(saved))) == jax.tree.structure(slabs)


BOX = Box((0.0, 1.0), (-1.0, 1.0))
START = Condition(BOX.face(0, "lower"), lambda u, z: u(z))
REFUSED = {
    "built in": (TASKS["allen-cahn"]().problem, "need the initial values as a condition"),
    "no box": (Problem(Network((4,)), Ball((0.0, 0.0), 1.0), lambda u, z: u(z)), "a Problem on a Box"),
    "an end": (
        Problem(
            Network((4,)), BOX, lambda u, z: u(z), {"s": START, "end": Condition(BOX.face(0, "upper"), START.equation)}
        ),
        "'end' is neither at the start nor along all times",
    ),
    "data": (
        Problem(Network((4,)), BOX, lambda u, z: u(z), {"s": START, "seen": observed(np.zeros((2, 2)), np.zeros(2))}),
        "'seen' is neither",
    ),
    "an integral over time": (
        Problem(
            Network((4,)), BOX, lambda u, z: u(z), {"s": START, "all": Condition(Integral(BOX), lambda u, n: n.mean(u))}
        ),
        "'all' is neither",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_cut_into_slabs_is_refused(name):
    problem, sentence = REFUSED[name]
    with pytest.raises(ValueError, match=sentence):
        angd.fit(problem, FEW, steps=1, progress=False)


def test_empty_slabs_and_shares_are_refused():
    with pytest.raises(ValueError, match="slabs must be a number from 1"):
        GaussNewton(slabs=0)
    with pytest.raises(ValueError, match="share must be positive"):
        Phase(None, None, share=0)


def test_causal_weights_hold_later_times_back_until_earlier_ones_are_learnt():
    """r = 1 at all times: exp(−ε t) for the middle of each bin; r = 0: all count alike."""
    box = Box((0.0, 2.0), (0.0, 1.0))
    bad, good = (Problem(Network((4,)), box, lambda u, z, r=r: r + 0 * u(z)) for r in (1.0, 0.0))
    params, plain = bad.init(KEY), Uniform(interior=4000)
    before = plain(KEY, bad, params)["interior"]
    after, same = (Causal(plain, 3.0, bins=16)(KEY, problem, params)["interior"] for problem in (bad, good))
    ratio, bin = after.omega / before.omega, np.floor(before.x[:, 0] * 8)
    assert np.allclose(ratio, np.exp(-3 * bin / 16))
    assert np.allclose(same.omega, before.omega)
    with pytest.raises(ValueError, match="ε ≥ 0"):
        Causal(plain, -1.0)


@pytest.mark.slow
def test_causal_weights_are_an_option_of_the_recipe():
    fit = angd.fit("heat", GaussNewton(interior=100, condition=20, causal=1.0, warm=0), steps=12, progress=False)
    losses = fit.history["loss"]
    assert losses[-1] < losses[0] / 5
