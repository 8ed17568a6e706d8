"""What a step says to those who give it something else than it takes: one sentence, before any work."""

import subprocess
import sys

import jax.numpy as jnp
import optax
import pytest
from catalogue import METRICS, DensityProblem, FieldProblem, batch, draw_params

import angd
from angd import ANGD, ARGFlow, Normal
from angd.method import baselines

FLOW = ARGFlow(h=0.1)
OPTIMISER = ANGD(FLOW, angd.Energy(), Normal(1e-2))


class Column(DensityProblem):
    """A variation that is a vector of one number."""

    def variation(self, params, x):
        return super().variation(params, x)[None]


def start(opt, problem=None, samples=None):
    return opt.init(problem or FieldProblem(), draw_params(), batch() if samples is None else samples)


def step(opt, state, problem=None, samples=None):
    return opt.step(problem or FieldProblem(), draw_params(), batch() if samples is None else samples, state)


def moved(opt, problem, samples):
    return step(opt, start(opt, problem, samples), problem, samples)


DENSITIES = [angd.FisherRao(), angd.Wasserstein(), angd.ParametricWasserstein()]
NAMED = {"inside": batch(), "walls": batch()}
MISUSES = {
    "an array to init": (lambda: start(OPTIMISER, samples=batch().x), r"samples must be angd.Samples\(x\).*wrap it"),
    "an array to step": (lambda: step(OPTIMISER, start(OPTIMISER), samples=batch().x), "samples must be angd.Samples"),
    "arrays in a dictionary": (lambda: start(OPTIMISER, samples={"a": batch().x}), "samples must be.* in it"),
    "an empty dictionary": (lambda: start(OPTIMISER, samples={}), "samples must be.* an empty dictionary"),
    "terms to GGN": (lambda: start(ANGD(FLOW, angd.GGN(), Normal()), samples=NAMED), "GGN takes one batch"),
    "the state of another controller": (
        lambda: step(OPTIMISER, start(ANGD(FLOW, angd.Energy(), Normal(), angd.LevenbergMarquardt()))),
        "state that init",
    ),
    "the state of another metric": (lambda: step(OPTIMISER, start(ANGD(FLOW, angd.L2(), Normal()))), "state that init"),
    "parameters to Adam": (lambda: step(baselines.adam(), draw_params()), "Baseline: the last argument of step"),
    "the state of L-BFGS to Adam": (lambda: step(baselines.adam(), start(baselines.lbfgs())), "state that init"),
    "an exact tolerance": (lambda: angd.Iterative(rtol=0.0), "rtol and max_steps must be positive"),
    "a schedule of three": (lambda: ARGFlow(h=lambda a, b, c: a), r"h must be a function of \(k, t\) or of k alone"),
    "a schedule of none": (lambda: ARGFlow(h=lambda: 0.1), r"h must be a function of \(k, t\) or of k alone"),
}
for metric in DENSITIES:
    name, opt = type(metric).__name__, ANGD(FLOW, metric, Normal(1e-2))
    MISUSES[f"terms to {name}"] = (
        lambda opt=opt: start(opt, DensityProblem(), NAMED),
        f"{name} takes one batch of Samples, not one for each term, got 'inside', 'walls'",
    )
    MISUSES[f"a vector as variation to {name}"] = (
        lambda opt=opt: moved(opt, Column(), batch()),
        r"variation of Column must be one number at a point, got an array of shape \(1,\)",
    )


@pytest.mark.parametrize("misuse", MISUSES)
def test_misuse_is_one_sentence(misuse):
    make, words = MISUSES[misuse]
    with pytest.raises(ValueError, match=words) as refusal:
        make()
    assert "\n" not in str(refusal.value)


UNTYPED = """
import jax.numpy as jnp
import angd
from angd import ANGD, ARGFlow, Samples

class Line:
    def residual(self, params, x): return params["a"] * x - 1
    def loss(self, params, samples): return samples.mean(params["a"] * samples.x)

params, samples = {"a": jnp.ones(())}, Samples(jnp.ones(3))
opt = ANGD(ARGFlow(h=0.1), angd.Energy(), angd.Normal(1e-2))
for other in (opt, angd.baselines.adam(), angd.baselines.SelfScaledBroyden()):
    try:
        other.step(Line(), params, samples, params)
    except ValueError as refusal:
        print(refusal)
"""


def test_parameters_in_place_of_a_state_are_one_sentence():
    """In a process of its own, without the type checks that the tests switch on."""
    said = subprocess.run([sys.executable, "-c", UNTYPED], capture_output=True, text=True, check=True).stdout
    owners = [line.split(":")[0] for line in said.splitlines()]
    assert owners == ["ANGD", "Baseline", "SelfScaledBroyden"]
    assert said.count("the last argument of step is the state that init") == 3


def test_every_state_of_the_catalogue_is_its_own():
    for case in METRICS.values():
        opt = ANGD(FLOW, case.metric, Normal(1e-2), angd.Restart())
        samples = case.batch()
        opt._check_state(case.problem, draw_params(), samples, start(opt, case.problem, samples))


def test_an_optax_schedule_is_a_schedule():
    flow = ARGFlow(h=optax.exponential_decay(0.1, 10, 0.5), alpha=1.0)
    assert jnp.isclose(flow.step(10, 3.0).h, 0.05)
    assert "h=f(k)" in str(flow)
    assert jnp.isclose(ARGFlow.gradient(optax.linear_schedule(0.2, 0.1, 2)).step(1, 0.0).rate, 0.15)
    published = angd.published.minsr(optax.constant_schedule(0.3))
    assert jnp.isclose(published.flow.step(5, 1.0).rate, 0.6)


def test_functions_of_two_arguments_stay_functions_of_step_and_time():
    flow = ARGFlow(h=lambda k, t=1.0: 0.1 * t, alpha=lambda *args: args[1])
    assert jnp.isclose(flow.step(7, 2.0).h, 0.2)
    assert jnp.isclose(flow.step(7, 2.0).alpha, 2.0)
