"""The training loop: budgets, phases, evaluations, and going on from anywhere."""

from itertools import pairwise

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import angd
from angd import Samples
from angd.recipes.base import Phase
from angd.train.loop import Budget, TrainState, is_evaluated, train

TARGET = np.array([1.0, -2.0])
ONE = Samples(jnp.zeros(1))
OPT = angd.ANGD(angd.ARGFlow.gradient(0.5), angd.Energy(), angd.Normal(0.0))


class Bowl(eqx.Module):
    """½ Σ c (θ − θ*)², c = (1, 10)."""

    def residual(self, params, x):
        return jnp.sqrt(jnp.array([1.0, 10.0])) * (params - TARGET)


class Noted:
    """A sampler that writes down when it is asked."""

    def __init__(self, every=1):
        self.log, self.every = [], every

    def __call__(self, key, problem, params):
        jax.debug.callback(self.log.append, params)
        return ONE


def sampler(key, problem, params):
    return ONE


def errors(seen):
    return [float(np.abs(state.params - TARGET).max()) for state, _ in seen]


def go(phases, budget, start=None):
    return list(train(Bowl(), phases, start or TrainState(jnp.zeros(2)), jax.random.key(0), budget))


def test_training_stops_at_its_budget_and_counts():
    seen = go([Phase(OPT, sampler)], Budget(steps=6))
    assert [state.k for state, _ in seen] == [1, 2, 3, 4, 5, 6]
    assert np.allclose(errors(seen), 2.0 * 0.5 ** np.arange(1, 7))
    assert all(a.cpu_seconds <= b.cpu_seconds and a.seconds <= b.seconds for (a, _), (b, _) in pairwise(seen))


def test_the_clock_stops_while_one_looks():
    steps = train(Bowl(), [Phase(OPT, sampler)], TrainState(jnp.zeros(2)), jax.random.key(0), Budget(steps=3))
    next(steps)
    before, _ = next(steps)
    sum(i * i for i in range(3_000_000))
    after, _ = next(steps)
    assert after.cpu_seconds - before.cpu_seconds < 0.1


def test_phases_follow_each_other_with_their_points_precision_and_momentum():
    first, second, third = Noted(), Noted(every=3), Noted()
    phases = [Phase(OPT, first, steps=2, single=True), Phase(OPT, second, steps=6), Phase(OPT, third, below=1e-2)]
    seen = go([*phases, Phase(OPT, first, steps=1)], Budget(steps=20))
    jax.effects_barrier()
    assert [state.params.dtype for state, _ in seen[:3]] == [jnp.float32, jnp.float32, jnp.float64]
    assert (len(first.log), len(second.log), len(third.log)) == (3, 3, 1)
    assert np.allclose(errors(seen), 2.0 * 0.5 ** np.arange(1, 11), rtol=1e-5)


class Double(eqx.Module):
    """A chain that begins in double precision."""

    def __call__(self, key, problem, params):
        return Samples(jnp.zeros(1, jnp.float64))

    def move(self, key, problem, params, samples):
        return samples


def test_in_single_precision_a_step_is_compiled_once():
    traced = []

    class Counting(type(OPT)):
        def step(self, problem, params, samples, state):
            traced.append(params.dtype)
            return super().step(problem, params, samples, state)

    momentum = angd.ARGFlow.momentum(0.5, 0.1)
    optimiser = Counting(momentum, angd.Energy(), angd.Normal(1e-3), angd.LevenbergMarquardt())
    seen = go([Phase(optimiser, Double(), single=True)], Budget(steps=4))
    assert len(seen) == 4
    assert traced == [jnp.float32]


@pytest.mark.parametrize("at", [1, 2, 5, 8, 9])
def test_a_run_goes_on_from_any_state_as_if_it_had_not_stopped(at):
    momentum = angd.ANGD(angd.ARGFlow.momentum(0.5, 0.1), angd.Energy(), angd.Normal(1e-3), angd.LevenbergMarquardt())
    phases = [Phase(momentum, sampler, steps=2), Phase(momentum, sampler, steps=6), Phase(OPT, sampler)]
    whole = go(phases, Budget(steps=12))
    rest = go(phases, Budget(steps=12), whole[at - 1][0])
    assert [state.k for state, _ in rest] == list(range(at + 1, 13))
    for (a, _), (b, _) in zip(whole[at:], rest, strict=True):
        assert np.array_equal(a.params, b.params)


class Walk(eqx.Module):
    """A chain whose samples count its moves."""

    def __call__(self, key, problem, params):
        return Samples(jnp.zeros(1))

    def move(self, key, problem, params, samples):
        return Samples(samples.x + 1)


@pytest.mark.parametrize(("follows", "moves"), [(False, [0, 1, 0, 1]), (True, [0, 1, 2, 3])])
def test_the_samples_of_a_phase_go_on_where_the_next_one_follows(follows, moves):
    seen = go([Phase(OPT, Walk(), 2), Phase(OPT, Walk(), follows=follows)], Budget(steps=4))
    assert [float(state.samples.x[0]) for state, _ in seen] == moves


def test_steps_that_are_rejected_are_counted():
    class Broken(eqx.Module):
        def residual(self, params, x):
            return jnp.log(params)

    seen = list(train(Broken(), [Phase(OPT, sampler)], TrainState(-jnp.ones(2)), jax.random.key(0), Budget(steps=4)))
    assert [state.rejected for state, _ in seen] == [1, 2, 3, 4]
    assert np.array_equal(seen[-1][0].params, -np.ones(2))
    assert seen[-1][1].result == angd.RESULTS.loss_not_finite


def test_evaluations_become_rare_and_depend_on_the_step_alone():
    evaluated = [k for k in range(1, 100_001) if is_evaluated(k)]
    assert evaluated[:50] == list(range(1, 51))
    assert 300 < len(evaluated) < 600
    assert all(b - a <= 1 + 0.021 * a for a, b in pairwise(evaluated))


@pytest.mark.parametrize("budget", [{}, {"steps": 0}, {"cpu_seconds": -1.0}, {"seconds": 0.0}])
def test_a_budget_must_make_sense(budget):
    with pytest.raises(ValueError, match="Budget"):
        Budget(**budget)


def test_a_step_is_taken_again_with_other_random_numbers():
    """From where it began: the second attempt counts as the same step, its samples differ."""

    def noisy(key, problem, params):
        return Samples(jax.random.normal(key, (1,)))

    steps = train(Bowl(), [Phase(OPT, noisy)], TrainState(jnp.zeros(2)), jax.random.key(0), Budget(steps=3))
    first, _ = next(steps)
    again, _ = steps.send("retry")
    after, _ = steps.send(None)
    assert (first.k, again.k, after.k) == (1, 1, 2)
    assert first.samples.x != again.samples.x
    assert again.seconds > first.seconds


def test_a_run_of_one_phase_draws_and_steps_in_one_compiled_function():
    """And the first step, for which the optimiser needs samples, uses the same ones."""

    def noisy(key, problem, params):
        return Samples(jax.random.normal(key, (3,)))

    alone = go([Phase(OPT, noisy)], Budget(steps=3))
    apart = go([Phase(OPT, noisy, steps=3), Phase(OPT, noisy)], Budget(steps=3))
    for (a, _), (b, _) in zip(alone, apart, strict=True):
        assert np.array_equal(a.samples.x, b.samples.x)
        assert np.array_equal(a.params, b.params)
