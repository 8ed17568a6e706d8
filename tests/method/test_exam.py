"""The exam: every metric with every solver, every controller and every transport passes the same tests.

Each runs three steps twice, on one fixed batch and on fresh ones, and is traced once for all of them; the first of
them, from rest, is the unaccelerated direction, which must descend where theory says so. `make test` takes
each pair of metric and solver once and each controller and transport once; the full product is slow.
"""

import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from catalogue import CONTROLLERS, METRICS, SOLVERS, TRANSPORTS, draw_params, legal, optimiser

import angd
from angd.tree import all_finite

STEPS = 3
# Wrappers and options do not look at the metric: one of each kind of system (rows, centred rows, Gram) is enough here.
WRAPPERS, KINDS = ("Nystrom", "ProjectedMomentum", "WithFallback", "KFAC reduce"), ("Energy", "Fisher-Rao", "L2")
OPTIONS = ("H2", "implicit Fisher-Rao")
PAIRS = [
    (m, s)
    for m in METRICS
    for s in SOLVERS
    if legal(m, s) and (m not in OPTIONS or s == "Normal") and (s not in WRAPPERS or m in KINDS)
]
PRODUCT = [
    (m, s, c, t)
    for m in METRICS
    for s in SOLVERS
    for c in CONTROLLERS
    for t in TRANSPORTS
    if legal(m, s, c, t) and ((m, s) not in PAIRS or (c, t) != ("Constant", "JVP"))
]


def counted(problem):
    """The problem, counting how often its functions are traced."""
    traces: list[str] = []

    def counting(name):
        def method(self, params, x):
            traces.append(name)
            return getattr(type(problem), name)(self, params, x)

        return method

    asked = [name for name in ("variation", "field", "log_density") if hasattr(problem, name)]
    return type("Counting", (type(problem),), {name: counting(name) for name in asked})(), traces


def run(opt: Any, problem: Any, batches: list[Any], params: Any) -> tuple[Any, Any, Any]:
    """Parameters, state and reports after one jitted step on each batch."""
    step, state, infos = eqx.filter_jit(opt.step), opt.init(problem, params, batches[0]), []
    for samples in batches:
        params, _, state, info = step(problem, params, samples, state)
        infos.append(info)
    return params, state, infos


def examine(metric: str, solver: str = "Normal", controller: str = "Constant", transport: str = "JVP") -> None:
    beta = 0.0 if metric == "parametric Wasserstein" else 0.05
    case, opt = METRICS[metric], optimiser(metric, solver, controller, transport, beta)
    (problem, traces), start, step = counted(case.problem), draw_params(), eqx.filter_jit(opt.step)
    ends, once, at_rest = [], 0, opt.init(problem, start, case.batch())
    for seeds in ((0,) * STEPS, range(STEPS)):
        params, state = start, at_rest
        untraced = len(traces)
        for k, seed in enumerate(seeds):
            params, _, state, info = step(problem, params, case.batch(seed), state)
            assert k > 0 or info.slope < 0 or not case.descends, "the direction from rest climbs"
            once = once or len(traces) - untraced
            assert bool(info.accepted) or info.result == angd.RESULTS.rejected
        assert len(traces) - untraced in (once, 0), "a step after the first one was traced again"
        assert int(state.k) == STEPS
        assert bool(all_finite(params))
        assert jax.tree.structure(params) == jax.tree.structure(start)
        ends.append(params)
    fixed, fresh = ends
    assert once > 0
    assert _distance(fixed, fresh) > 1e-6


def _distance(a: Any, b: Any) -> float:
    return max(float(jnp.abs(x - y).max()) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True))


@pytest.mark.parametrize(("metric", "solver"), PAIRS)
def test_every_metric_with_every_solver(metric, solver):
    examine(metric, solver)


@pytest.mark.parametrize("controller", CONTROLLERS)
def test_every_controller(controller):
    examine("Energy", controller=controller)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_every_transport(transport):
    examine("L2", transport=transport)


@pytest.mark.slow
@pytest.mark.parametrize(("metric", "solver", "controller", "transport"), PRODUCT)
def test_the_full_product(metric, solver, controller, transport):
    examine(metric, solver, controller, transport)


@functools.cache
def plain(metric: str, solver: str = "Normal") -> Any:
    """Two steps in double precision on one device: what the two tests below compare with."""
    batches = [METRICS[metric].batch(seed) for seed in range(2)]
    return run(optimiser(metric, solver), METRICS[metric].problem, batches, draw_params())[0]


def quick(metric: str, *rest: str) -> Any:
    """One metric of each family in `make test`, the others in `make test-slow`."""
    return pytest.param(metric, *rest, marks=[] if metric in (*KINDS, "Wasserstein", "GGN") else pytest.mark.slow)


@pytest.mark.parametrize("metric", [*map(quick, METRICS)])
def test_single_precision_gives_the_same_step(metric):
    a, narrow = plain(metric), [METRICS[metric].batch(seed, jnp.float32) for seed in range(2)]
    b, _, _ = run(optimiser(metric), METRICS[metric].problem, narrow, draw_params(jnp.float32))
    assert all(leaf.dtype == jnp.float32 for leaf in jax.tree.leaves(b))
    assert _distance(a, b) < 2e-2 * _distance(a, draw_params()) + 1e-5


@pytest.mark.parametrize(
    ("metric", "solver"), [*((m, "Normal") for m in METRICS), ("Energy", "Kernel"), ("L2", "KFAC")]
)
def test_a_batch_over_two_devices_gives_the_same_result(metric, solver):
    case, opt = METRICS[metric], optimiser(metric, solver)
    batches, start = [case.batch(seed) for seed in range(2)], draw_params()
    one = plain(metric, solver)
    devices = angd.parallel.mesh(jax.devices()[:2])
    assert devices.size == 2
    spread = [angd.split(samples, devices) for samples in batches]
    two, _, _ = run(opt, case.problem, spread, angd.replicate(start, devices))
    assert len(jax.tree.leaves(spread[0])[0].sharding.device_set) == 2
    assert _distance(one, two) < 1e-9


def test_kernel_is_refused_where_the_right_hand_side_is_not_known():
    for metric in METRICS:
        if not legal(metric, "Kernel"):
            with pytest.raises(ValueError, match="use Normal"):
                optimiser(metric, "Kernel")
        if not legal(metric, transport="Printed"):
            with pytest.raises(ValueError, match="use JVP"):
                optimiser(metric, transport="Printed")
    assert np.sum([not legal(m, "Kernel") for m in METRICS]) == 8
