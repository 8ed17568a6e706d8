"""A step that is called bad never reaches the parameters: each case stays where it was and names what went wrong."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import angd
from angd import ANGD, KFAC, RESULTS, ARGFlow, Energy, FisherRao, Kernel, L2Pointwise, Normal, Samples, Wasserstein
from angd.tree import all_finite

PLACES = np.linspace(-1, 1, 6)


class Line(eqx.Module):
    """u = a x + b fitted to data that come with the samples: x = (place, value)."""

    def field(self, params, x):
        return params["a"] * x[0] + params["b"]

    def residual(self, params, x):
        return self.field(params, x) - x[1]

    variation = residual

    def cost(self, z, x):
        return jnp.sum((z - x[1]) ** 2) / 2


class Knownless(Line):
    """A model that does not depend on its parameters."""

    def field(self, params, x):
        return x[0] + 0 * params["a"]


class Normalised(eqx.Module):
    """N(m, 1) against a quadratic potential."""

    def log_density(self, params, x):
        return -((x - params["m"]) ** 2) / 2

    def variation(self, params, x):
        return x**2


class Rigid(Normalised):
    def log_density(self, params, x):
        return -(x**2) / 2 + 0 * params["m"]


def line(dtype: Any = float) -> dict:
    return {"a": jnp.asarray(0.5, dtype), "b": jnp.asarray(-1.0, dtype)}


def data(values: Any = None, dtype: Any = float, omega: Any = None) -> Samples:
    values = np.sin(PLACES) if values is None else values
    return Samples(jnp.asarray(np.stack([PLACES, values], axis=1), dtype), omega)


def two_steps(opt: ANGD, problem: Any, params: Any, batches: tuple[Samples, Samples]) -> tuple[Any, Any, Any, Any]:
    """Parameters before and after the second step, the state then, and its report."""
    step, state = eqx.filter_jit(opt.step), opt.init(problem, params, batches[0])
    before, _, state, first = step(problem, params, batches[0], state)
    after, _, state, info = step(problem, before, batches[1], state)
    assert bool(first.accepted)
    return before, after, state, info


def refused(before: Any, after: Any, state: Any, info: Any, result: Any) -> None:
    """The step was not taken, nothing moved, and nothing that is kept is spoilt."""
    assert info.result == result, RESULTS[info.result]
    assert not bool(info.accepted)
    assert float(info.moved) == 0
    assert jax.tree.all(jax.tree.map(jnp.array_equal, before, after))
    assert bool(all_finite((after, state)))


CONTROLLERS = [angd.Constant(), angd.Restart(), angd.LineSearch(), angd.LevenbergMarquardt(), angd.TrustRegion()]
FLOW = ARGFlow.heavy_ball(0.8, 0.1)


@pytest.mark.parametrize("controller", CONTROLLERS, ids=lambda c: type(c).__name__)
def test_residuals_whose_square_overflows_are_refused_by_every_controller(controller):
    batches = (data(), data(np.full(6, 1e200)))
    refused(
        *two_steps(ANGD(FLOW, Energy(), Normal(1e-3), controller), Line(), line(), batches), RESULTS.loss_not_finite
    )


@pytest.mark.parametrize("solver", [Normal(1e-3), Kernel(1e-3), KFAC(1e-3)], ids=lambda s: type(s).__name__)
@pytest.mark.parametrize(("dtype", "size"), [(jnp.float64, 1e200), (jnp.float32, 1e20)], ids=["double", "single"])
@pytest.mark.parametrize("metric", [Energy(), L2Pointwise(), angd.GGN()], ids=lambda m: type(m).__name__)
def test_residuals_whose_square_overflows_reach_no_parameter(metric, dtype, size, solver):
    """Where the loss is not known the step itself is too long for its length to be a number."""
    result = RESULTS.step_not_finite if isinstance(metric, L2Pointwise) else RESULTS.loss_not_finite
    batches = (data(dtype=dtype), data(np.full(6, size), dtype))
    refused(*two_steps(ANGD(FLOW, metric, solver), Line(), line(dtype), batches), result)


def test_the_step_after_a_refused_one_is_a_first_step():
    opt, problem = ANGD(FLOW, Energy(), KFAC(1e-3)), Line()
    before, after, state, _ = two_steps(opt, problem, line(), (data(), data(np.full(6, 1e200))))
    assert not bool(state.previous.started)
    moved, _, _, info = eqx.filter_jit(opt.step)(problem, after, data(), state)
    assert info.result == RESULTS.successful
    assert not jax.tree.all(jax.tree.map(jnp.array_equal, moved, before))


def later(first: float, then: float) -> Any:
    return lambda k, t: jnp.where(jnp.asarray(k) < 1, first, then)


@pytest.mark.parametrize("metric", [Energy(), L2Pointwise()], ids=lambda m: type(m).__name__)
def test_a_step_size_that_explodes_is_refused(metric):
    flow = ARGFlow(alpha=0.0, h=later(0.1, 1e200))
    found = two_steps(ANGD(flow, metric, Normal(1e-3)), Line(), line(), (data(), data()))
    refused(*found, RESULTS.step_not_finite)


OUT_OF_RANGE = {
    "negative gamma": {"gamma": later(1.0, -1.0)},
    "negative beta": {"beta": later(0.1, -0.1)},
    "negative alpha": {"alpha": later(1.0, -1.0)},
    "negative h": {"h": later(0.1, -0.1)},
    "h alpha beyond one": {"alpha": later(1.0, 11.0)},
    "gamma that is no number": {"gamma": later(1.0, np.nan)},
    "infinite h": {"h": later(0.1, np.inf), "alpha": 0.0},
}


@pytest.mark.parametrize("name", OUT_OF_RANGE)
def test_coefficients_that_leave_their_range_later_are_reported(name):
    flow = ARGFlow(**{"alpha": 1.0, "h": 0.1, **OUT_OF_RANGE[name]})
    found = two_steps(ANGD(flow, Energy(), Normal(1e-3)), Line(), line(), (data(), data()))
    refused(*found, RESULTS.coefficients_out_of_range)
    assert "schedules" in RESULTS[found[-1].result]


NOTHING = jnp.zeros(6)


@pytest.mark.parametrize(
    ("metric", "problem", "params", "samples"),
    [
        (Energy(), Line(), line(), data(omega=NOTHING)),
        (L2Pointwise(), Line(), line(), data(omega=NOTHING)),
        (FisherRao(), Normalised(), {"m": jnp.ones(())}, Samples(jnp.linspace(-1, 2, 6), NOTHING)),
        (Wasserstein(), Normalised(), {"m": jnp.ones(())}, Samples(jnp.linspace(-1, 2, 6), NOTHING)),
        (Energy(), Knownless(), line(), data()),
        (L2Pointwise(), Knownless(), line(), data()),
        (FisherRao(), Rigid(), {"m": jnp.ones(())}, Samples(jnp.linspace(-1, 2, 6))),
        (Wasserstein(), Rigid(), {"m": jnp.ones(())}, Samples(jnp.linspace(-1, 2, 6))),
    ],
)
@pytest.mark.parametrize("solver", [Normal(1e-3), KFAC(1e-3)], ids=lambda s: type(s).__name__)
def test_a_force_without_a_direction_is_reported(metric, problem, params, samples, solver):
    opt = ANGD(FLOW, metric, solver)
    state = opt.init(problem, params, samples)
    after, moved, state, info = eqx.filter_jit(opt.step)(problem, params, samples, state)
    refused(params, after, state, info, RESULTS.no_direction)
    assert jnp.array_equal(moved.x, samples.x)
    assert "weights" in RESULTS[info.result]


def test_where_there_is_no_force_a_step_that_moves_nothing_is_a_step():
    values = np.asarray(jax.vmap(Line().field, (None, 0))(line(), data().x))
    opt = ANGD(FLOW, Energy(), Normal(1e-3))
    state = opt.init(Line(), line(), data(values))
    _, _, _, info = eqx.filter_jit(opt.step)(Line(), line(), data(values), state)
    assert info.result == RESULTS.successful
