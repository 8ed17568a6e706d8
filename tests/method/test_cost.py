"""What a step costs, by its jaxpr: one factorisation for the damping of the step, whoever asks again."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from catalogue import METRICS, batch, draw_params

import angd
from angd import ANGD, ARGFlow, Kernel, Normal
from angd.tree import all_finite

FACTORISATIONS = ("cholesky", "eigh", "svd", "lu", "qr")
CONTROLLERS = {
    "Constant": angd.Constant(),
    "LineSearch": angd.LineSearch(points=4),
    "Restart": angd.Restart(),
    "LevenbergMarquardt": angd.LevenbergMarquardt(),
    "TrustRegion": angd.TrustRegion(radii=4),
    "in turn": angd.in_turn([angd.Restart(), angd.LineSearch(points=4), angd.StepNorm(1e-2)]),
}


def inner_jaxprs(equation: Any) -> list[Any]:
    """Bodies of calls and scans; what happens only in some cases (alternatives, loops while ...) does not count."""
    if equation.primitive.name in ("cond", "while"):
        return []
    leaves = jax.tree.leaves(
        list(equation.params.values()), is_leaf=lambda x: hasattr(x, "eqns") or hasattr(x, "jaxpr")
    )
    return [getattr(leaf, "jaxpr", leaf) for leaf in leaves if hasattr(leaf, "eqns") or hasattr(leaf, "jaxpr")]


def factorisations(jaxpr: Any) -> int:
    """How many of them every step does, loops counted once."""
    here = sum(equation.primitive.name in FACTORISATIONS for equation in jaxpr.eqns)
    return here + sum(factorisations(inner) for equation in jaxpr.eqns for inner in inner_jaxprs(equation))


def count(metric: str, solver: Any, controller: Any, beta: float = 0.0) -> int:
    case = METRICS[metric]
    opt = ANGD(ARGFlow(alpha=2.0, beta=beta, h=0.1), case.metric, solver, controller)
    params, samples = draw_params(), batch()
    state = opt.init(case.problem, params, samples)
    dynamic, static = eqx.partition((params, samples, state), eqx.is_array)

    def step(dynamic):
        return eqx.filter(opt.step(case.problem, *eqx.combine(dynamic, static)), eqx.is_array)

    return factorisations(jax.make_jaxpr(step)(dynamic).jaxpr)


@pytest.mark.parametrize("controller", CONTROLLERS)
@pytest.mark.parametrize(
    ("metric", "solver", "beta"),
    [("L2", Normal(1e-3), 0.0), ("L2", Normal(1e-3), 0.05), ("Energy", Kernel(1e-3), 0.05)],
    ids=["L2", "L2 with beta", "Energy by its kernel"],
)
def test_the_present_damping_is_factorised_once_whatever_the_controller(metric, solver, beta, controller):
    assert count(metric, solver, CONTROLLERS[controller], beta) == 1


@pytest.mark.parametrize("metric", ["L2", "Energy", "Wasserstein", "Fisher-Rao"])
@pytest.mark.parametrize("solver", [Normal(1e-3), angd.KFAC(1e-3)], ids=["Normal", "KFAC"])
def test_buffers_may_be_donated_from_the_first_state_on(metric, solver):
    """No buffer of the state is one of the parameters or samples, so each may be given away."""
    case = METRICS[metric]
    opt = ANGD(ARGFlow.momentum(0.8, 0.1, beta=0.05), case.metric, solver)
    params, samples = jax.tree.map(jnp.copy, (draw_params(), batch()))
    state = opt.init(case.problem, params, samples)
    plain, _, _, _ = eqx.filter_jit(opt.step)(case.problem, params, samples, state)

    def step(params, samples, state):
        return eqx.filter(opt.step(case.problem, params, samples, state)[:3], eqx.is_array)

    donating = jax.jit(step, donate_argnums=(0, 1, 2))
    kept = samples
    for k in range(3):
        params, samples, state = donating(params, samples, state)
        if k == 0:
            assert all(np.allclose(a, b) for a, b in zip(*map(jax.tree.leaves, (plain, params)), strict=True))
    assert bool(all_finite(params))
    assert int(state.k) == 3
    assert kept.x.is_deleted() or kept.x is samples.x


def test_an_optimiser_is_printed_with_its_numbers():
    flow = ARGFlow.momentum(jnp.asarray(0.8), jnp.asarray(0.1))
    opt = ANGD(
        flow, angd.FisherRao(limit=0.25), angd.ProjectedMomentum(0.99, Kernel(jnp.asarray(4e-3))), angd.StepNorm(1e-2)
    )
    text = str(opt)
    assert repr(opt) == text
    for part in ("μ=0.8", "s=0.1", "FisherRao(limit=0.25", "eta=0.99", "Kernel(damping=0.004)", "C=0.01", "JVP()"):
        assert part in text
    assert "f64[" not in text
    assert "weak" not in text
