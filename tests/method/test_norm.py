"""The norm constraint in the metric, h² dᵀGd ≤ C, with every kind of metric and solver."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from catalogue import METRICS, batch, draw_params
from jax.flatten_util import ravel_pytree

import angd
from angd import ANGD, ARGFlow, Kernel, Normal, ProjectedMomentum, Restart, StepNorm, in_turn

DENSITIES = ("Fisher-Rao", "Wasserstein")


def rows_of(metric, params, x):
    """What a metric of the catalogue differentiates at one point."""
    problem = METRICS[metric].problem
    if metric == "Energy":
        return problem.residual(params, x)
    if metric in DENSITIES:
        return problem.log_density(params, x)
    field = problem.field(params, x)
    return jnp.append(field, jax.grad(problem.field, 1)(params, x)) if metric == "H1" else field


def length_in_metric(metric, params, samples, step):
    """(step)ᵀG(step) with G from jax.jacrev, centred for densities."""
    flat, unravel = ravel_pytree(params)
    O = jax.jacrev(lambda p: jax.vmap(lambda x: rows_of(metric, unravel(p), x))(samples.x))(flat)
    O = np.asarray(O)
    O = O - O.mean(axis=0) if metric in DENSITIES else O
    return np.sum((O @ np.asarray(ravel_pytree(step)[0])) ** 2) / len(samples.x)


@pytest.mark.parametrize(
    ("metric", "solver"),
    [
        ("Energy", Normal(1e-2)),
        ("Energy", angd.KFAC(1e-2)),
        ("Fisher-Rao", ProjectedMomentum(0.9, Kernel(1e-2))),
        ("Wasserstein", angd.Iterative(1e-2, rtol=1e-10)),
        ("L2", angd.Scaled(Normal(1e-2))),
        ("H1", Normal(1e-2)),
    ],
    ids=str,
)
def test_step_norm_in_the_metric_bounds_the_step_by_the_sampled_matrix(metric, solver):
    """With momentum and in turn; particles move as far as θ does, and what is remembered is the whole direction."""
    problem, samples, bound = METRICS[metric].problem, batch(), jnp.asarray(jnp.inf)

    def bounded(C):
        flow, controller = ARGFlow(h=0.1, alpha=2.0), in_turn([Restart(above=1e6), StepNorm(C, in_metric=True)])
        return ANGD(flow, METRICS[metric].metric, solver, controller)

    step = eqx.filter_jit(lambda C, params, state: bounded(C).step(problem, params, samples, state))
    params, _, state, _ = step(bound, draw_params(), bounded(bound).init(problem, draw_params(), samples))

    def second(C):
        after, moved, new, info = step(jnp.asarray(C), params, state)
        length = length_in_metric(metric, params, samples, jax.tree.map(jnp.subtract, after, params))
        return length, info.moved, np.asarray(moved.x - samples.x), ravel_pytree(new.previous.d)[0]

    length, far, shift, d = second(jnp.inf)
    shorter = second(length / 4)
    assert np.isclose(shorter[0], length / 4, rtol=1e-8)
    assert np.isclose(shorter[1], far / 2)
    assert np.allclose(shorter[2], shift / 2)
    assert np.array_equal(shorter[3], d)
    assert second(1.01 * length)[1] == far
