"""The rivals behind the same face."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

import angd
from angd import Samples, baselines
from angd.method.baselines.broyden import _update

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


def test_adam_and_descent_with_numbers_as_arrays_are_optax_s():
    """The rate halves every 10 steps; decoupled decay; the same as optax's own, built with plain numbers."""
    schedule = optax.exponential_decay(0.1, 10, 0.5)
    pairs = [
        (baselines.FirstOrder(0.1, 10.0, 0.9, 0.99, 0.01), optax.adamw(schedule, 0.9, 0.99, weight_decay=0.01)),
        (baselines.FirstOrder(0.01, momentum=0.5, second=None), optax.sgd(0.01, 0.5)),
    ]
    for mine, published in pairs:
        params: Any = jnp.array([3.0, 1.0])
        state = published.init(jnp.array([3.0, 1.0]))
        for _ in range(7):
            gradient = jax.grad(Bowl().loss)(params, ONE)
            update, state = published.update(gradient, state, params)
            params = optax.apply_updates(params, update)
        assert np.allclose(walk(mine, 7, start=(3.0, 1.0))[0], params, atol=1e-12)


def test_decayed_shrinks_the_parameters_after_every_step_that_is_taken():
    plain, _ = walk(baselines.sgd(0.05), 1, start=(3.0, 1.0))
    shrunk, _ = walk(baselines.Decayed(baselines.sgd(0.05), 0.1), 1, start=(3.0, 1.0))
    assert np.allclose(shrunk, 0.9 * plain)
