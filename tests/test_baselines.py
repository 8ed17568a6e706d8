"""The rivals behind the same face, and the training loop that runs them all."""

from itertools import pairwise

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import angd
from angd import Samples, baselines
from angd.baselines.broyden import _update
from angd.experiments.runner import Budget, Phase, train

TARGET = np.array([1.0, -2.0])
ONE = Samples(jnp.zeros(1))


class Bowl(eqx.Module):
    """½ Σ c (θ − θ*)², c = (1, 10)."""

    def loss(self, params, samples):
        return 0.5 * jnp.sum(jnp.array([1.0, 10.0]) * (params - TARGET) ** 2) + 0 * jnp.sum(samples.x)

    def residual(self, params, x):
        return jnp.sqrt(jnp.array([1.0, 10.0])) * (params - TARGET)


def walk(opt, steps, problem=None, start=(0.0, 0.0)):
    problem = problem or Bowl()
    params = jnp.asarray(start)
    state, step, info = opt.init(problem, params, ONE), eqx.filter_jit(opt.step), None
    for _ in range(steps):
        params, _, state, info = step(problem, params, ONE, state)
    return params, info


def test_sgd_is_gradient_descent_and_reports_its_slope():
    theta = np.zeros(2)
    for _ in range(5):
        theta = theta - 0.05 * np.array([1.0, 10.0]) * (theta - TARGET)
    found, info = walk(baselines.sgd(0.05), 5)
    assert np.allclose(found, theta)
    assert info is not None
    assert info.slope < 0
    assert info.result == angd.RESULTS.successful


def test_every_rival_goes_down():
    start = Bowl().loss(jnp.zeros(2), ONE)
    for opt in (baselines.sgd(0.01, 0.9), baselines.adam(0.1), baselines.lbfgs()):
        assert Bowl().loss(walk(opt, 80)[0], ONE) < 1e-2 * start
    assert np.allclose(walk(baselines.lbfgs(), 15)[0], TARGET, atol=1e-6)


def test_self_scaled_broyden_keeps_the_secant_equation_and_stays_positive():
    """H y = s and H > 0 after every update, whatever the scaling; with exact line searches on a bowl it is exact."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        root, g, y = rng.normal(size=(5, 5)), rng.normal(size=5), rng.normal(size=5)
        H = root @ root.T + 0.1 * np.eye(5)
        s = -rng.uniform(0.1, 2) * H @ g
        y = y if y @ s > 0 else -y
        after = np.asarray(_update(jnp.asarray(H), jnp.asarray(s), jnp.asarray(y), jnp.asarray(g)))
        assert np.allclose(after @ y, s, atol=1e-9)
        assert np.linalg.eigvalsh(after).min() > 0
    assert np.allclose(walk(baselines.SelfScaledBroyden(), 15)[0], TARGET, atol=1e-6)


def test_a_loss_that_is_not_finite_changes_nothing():
    class Broken(Bowl):
        def loss(self, params, samples):
            return jnp.log(params[0])

    found, info = walk(baselines.adam(0.1), 1, Broken(), (-1.0, 0.0))
    assert np.array_equal(found, [-1.0, 0.0])
    assert info is not None
    assert info.result == angd.RESULTS.loss_not_finite


def sampler(key, problem, params):
    return ONE


def test_training_stops_at_its_budget_and_looks_as_told():
    opt = angd.ANGD(angd.ARGFlow.gradient(0.5), angd.Energy(), angd.Normal(0.0))

    def error(params):
        return {"u": float(np.abs(params - TARGET).max())}

    budget = Budget(steps=6, look=1e-9)
    seen = list(train(Bowl(), [Phase(opt, sampler)], jnp.zeros(2), jax.random.key(0), budget, error))
    assert [record.step for record, _ in seen] == [1, 2, 3, 4, 5, 6]
    assert np.allclose([record.error for record, _ in seen], 2.0 * 0.5 ** np.arange(1, 7))
    assert all(a.cpu_seconds <= b.cpu_seconds for (a, _), (b, _) in pairwise(seen))
    rare = list(train(Bowl(), [Phase(opt, sampler)], jnp.zeros(2), jax.random.key(0), Budget(steps=6, look=1e9), error))
    assert [record.step for record, _ in rare] == [1, 6]


class Noted:
    """A sampler that writes down when it is asked."""

    def __init__(self, every=1):
        self.log, self.every = [], every

    def __call__(self, key, problem, params):
        jax.debug.callback(self.log.append, params)
        return ONE


def test_phases_follow_each_other_with_their_points_precision_and_momentum():
    opt = angd.ANGD(angd.ARGFlow.gradient(0.5), angd.Energy(), angd.Normal(0.0))
    first, second, third = Noted(), Noted(every=3), Noted()
    phases = [Phase(opt, first, steps=2, single=True), Phase(opt, second, steps=6), Phase(opt, third, below=1e-2)]
    after = [Phase(opt, first, steps=1)]
    budget, error = Budget(steps=20, look=1e-9), lambda params: {"u": float(np.abs(params - TARGET).max())}
    seen = list(train(Bowl(), phases + after, jnp.zeros(2), jax.random.key(0), budget, error))
    jax.effects_barrier()
    assert [params.dtype for _, params in seen[:3]] == [jnp.float32, jnp.float32, jnp.float64]
    assert (len(first.log), len(second.log), len(third.log)) == (3, 3, 1)
    assert np.allclose([r.error for r, _ in seen], 2.0 * 0.5 ** np.arange(1, 11), rtol=1e-5)


@pytest.mark.parametrize("budget", [{}, {"steps": 0}, {"cpu_seconds": -1.0}, {"steps": 5, "look": 0.0}])
def test_a_budget_must_make_sense(budget):
    with pytest.raises(ValueError, match="Budget"):
        Budget(**budget)
