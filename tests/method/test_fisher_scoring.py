"""Fisher scoring: the same steps as Fisher–Rao where the density of the data is known, and what it refuses."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import angd

X = jnp.linspace(-12.0, 12.0, 241)
CELL = X[1] - X[0]
P = 0.6 * jnp.exp(-((X - 1.0) ** 2) / 2) + 0.4 * jnp.exp(-((X + 1.5) ** 2) / 1.5)
P = P / (P.sum() * CELL)


class Likelihood(eqx.Module):
    """Two Gaussians, normalised."""

    def log_density(self, params, x):
        logs = -0.5 * ((x - params["m"]) * jnp.exp(-params["s"])) ** 2 - params["s"] - 0.5 * jnp.log(2 * jnp.pi)
        return jax.nn.logsumexp(logs + jax.nn.log_softmax(params["w"]))


class Known(Likelihood):
    """With the density of the data, which is known on the grid."""

    def variation(self, params, x):
        return -P[jnp.round((x - X[0]) / CELL).astype(int)] * jnp.exp(-self.log_density(params, x))


START = {"m": jnp.array([-1.0, 2.0]), "s": jnp.array([0.2, 0.4]), "w": jnp.array([0.1, -0.1])}
DATA = angd.Samples(X, P * CELL)


def model(params):
    return angd.Samples(X, jnp.exp(jax.vmap(Likelihood().log_density, (None, 0))(params, X)) * CELL)


def run(metric, beta, scoring, steps=4, solver=None):
    opt = angd.ANGD(angd.ARGFlow(h=0.2, alpha=1.5, beta=beta), metric, solver or angd.Normal(1e-3))
    problem, params, state, infos = Likelihood() if scoring else Known(), START, None, []
    for _ in range(steps):
        samples = {"model": model(params), "data": DATA} if scoring else model(params)
        state = opt.init(problem, params, samples) if state is None else state
        params, _, state, info = eqx.filter_jit(opt.step)(problem, params, samples, state)
        infos.append(info)
    return params, infos


@pytest.mark.parametrize(("beta", "limit"), [pytest.param(0.0, 0.05, marks=pytest.mark.slow), (0.3, None)])
def test_averages_over_data_are_the_variation_that_nobody_knows(beta, limit):
    known, _ = run(angd.FisherRao(limit=limit), beta, False)
    found, _ = run(angd.FisherScoring(limit=limit), beta, True)
    assert all(np.allclose(found[name], known[name], atol=1e-9) for name in START)
    assert max(float(jnp.abs(found[name] - START[name]).max()) for name in START) > 0.05


def test_loss_and_slope_are_those_of_the_likelihood():
    def loss(params):
        return -DATA.mean(jax.vmap(Likelihood().log_density, (None, 0))(params, X))

    _, (info, *_) = run(angd.FisherScoring(), 0.0, True, steps=1)
    assert np.isclose(info.loss, loss(START), atol=1e-12)
    gradient = jax.grad(loss)(START)
    metric = sum((np.outer(o, o) * w for o, w in zip(*scores(), strict=True)), np.zeros((6, 6)))
    flat = ravel_pytree(gradient)[0]
    direction = -0.2 * np.linalg.solve(metric + 1e-3 * np.eye(6), flat)
    assert np.isclose(info.slope, flat @ direction, rtol=1e-8)


def scores():
    """∂_θ log ρ at every sample, by plain automatic differentiation, and weights."""
    rows = jax.vmap(jax.grad(Likelihood().log_density), (None, 0))(START, X)
    return np.concatenate([rows[name] for name in sorted(rows)], axis=1), model(START).omega


SOLVERS = [angd.KFAC(1e-2), angd.Iterative(1e-2, rtol=1e-10), angd.ProjectedMomentum(0.5, angd.Normal(1e-2))]


@pytest.mark.slow
@pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: type(solver).__name__)
def test_other_solvers_descend(solver):
    _, infos = run(angd.FisherScoring(), 0.0, True, steps=6, solver=solver)
    assert infos[-1].loss < infos[0].loss
    assert all(info.accepted for info in infos)


@pytest.mark.slow
def test_controllers_may_compare_losses():
    search = angd.LineSearch()
    opt = angd.ANGD(angd.ARGFlow.gradient(1.0), angd.FisherScoring(), angd.Normal(1e-3), search)
    samples = {"model": model(START), "data": DATA}
    state = opt.init(Likelihood(), START, samples)
    *_, info = eqx.filter_jit(opt.step)(Likelihood(), START, samples, state)
    assert info.accepted


def test_misuse_is_told_in_one_sentence():
    opt = angd.ANGD(angd.ARGFlow(h=0.1), angd.FisherScoring(), angd.Normal(1e-3))
    with pytest.raises(ValueError, match=r'takes samples \{"model": …, "data": …\}.*got Samples'):
        opt.init(Likelihood(), START, DATA)
    with pytest.raises(ValueError, match=r"got \['data'\]"):
        opt.init(Likelihood(), START, {"data": DATA})
    with pytest.raises(ValueError, match="use Normal"):
        angd.ANGD(angd.ARGFlow(h=0.1), angd.FisherScoring(), angd.Kernel(1e-3))
    with pytest.raises(ValueError, match="limit must be positive"):
        angd.FisherScoring(limit=0.0)
    with pytest.raises(ValueError, match=r"needs log_density\(params, x\) of the problem, but object has no"):
        opt.init(object(), START, {"model": DATA, "data": DATA})
