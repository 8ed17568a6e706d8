"""What goes wrong in a step is refused in a sentence, or reported with its remedy; it never reaches the parameters."""

import subprocess
import sys
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import angd
from angd import ANGD, KFAC, RESULTS, ARGFlow, Energy, FisherRao, Kernel, L2Pointwise, Normal, Samples, Wasserstein
from angd.problems.vmc import GroundState
from angd.tree import all_finite


class Line(eqx.Module):
    """u = a x + b fitted to data that come with the samples: x = (place, value)."""

    def field(self, params, x):
        return params["a"] * x[0] + params["b"]

    def residual(self, params, x):
        return self.field(params, x) - x[1]

    def variation(self, params, x):
        return self.residual(params, x)


PARAMS: Any = {"a": jnp.asarray(0.5), "b": jnp.asarray(-1.0)}
PLACES = np.linspace(-1, 1, 6)
FLOW = ARGFlow.heavy_ball(0.8, 0.1)


def data(values=None):
    return Samples(jnp.stack([PLACES, np.sin(PLACES) if values is None else values], axis=1))


def step(opt, samples, params=PARAMS, problem: Any = None, state=None):
    problem = problem or Line()
    state = opt.init(problem, params, samples) if state is None else state
    return eqx.filter_jit(opt.step)(problem, params, samples, state)


@pytest.mark.parametrize("solver", [Normal(1e-3), Kernel(1e-3), KFAC(1e-3)], ids=["Normal", "Kernel", "KFAC"])
def test_not_a_number_in_the_data_is_reported_and_forgotten(solver):
    """θ stays, momentum restarts, a solver's averages are not spoilt, and the next good batch works as a first step."""
    opt = ANGD(FLOW, Energy(), solver)
    params, _, state, _ = step(opt, data())
    bad = data(np.where(PLACES > 0.5, np.nan, 0.0))
    stay, _, after, info = step(opt, bad, params, state=state)
    assert info.result == RESULTS.loss_not_finite
    assert not bool(info.accepted)
    assert jax.tree.all(jax.tree.map(jnp.array_equal, stay, params))
    assert bool(all_finite(after))
    assert not bool(after.previous.started)
    again, _, _, info = step(opt, data(), stay, state=after)
    assert info.result == RESULTS.successful
    assert bool(all_finite(again))


def test_force_that_is_not_finite_is_reported():
    class Broken(Line):
        def variation(self, params, x):
            return jnp.log(x[0])

    _, _, _, info = step(ANGD(FLOW, L2Pointwise(), Normal(1e-3)), data(), problem=Broken())
    assert info.result == RESULTS.direction_not_finite
    assert "clip" in RESULTS[info.result]


def test_duplicated_samples_without_damping_are_reported_as_singular():
    samples = Samples(jnp.array([[0.5, 1.0], [0.5, 2.0], [0.5, 3.0]]))
    _, _, _, info = step(ANGD(FLOW, Energy(), Kernel(0.0)), samples)
    assert info.result == RESULTS.singular
    assert "raise damping" in RESULTS[info.result]
    _, _, _, info = step(ANGD(FLOW, Energy(), Kernel(1e-6)), samples)
    assert info.result == RESULTS.successful


@pytest.mark.parametrize("solver", [Normal(1e-3), Kernel(1e-3), KFAC(1e-3)], ids=["Normal", "Kernel", "KFAC"])
def test_one_sample_is_enough_for_a_field(solver):
    moved, _, _, info = step(ANGD(FLOW, Energy(), solver), Samples(jnp.array([[0.5, 1.0]])))
    assert bool(info.accepted)
    assert abs(Line().residual(moved, jnp.array([0.5, 1.0]))) < abs(Line().residual(PARAMS, jnp.array([0.5, 1.0])))


class Gaussian(eqx.Module):
    def log_density(self, params, x):
        return -((x - params["m"]) ** 2) / 2

    def variation(self, params, x):
        return x**2


def test_one_sample_of_a_density_says_nothing_and_moves_nothing():
    """Centred over one sample every row is zero: the direction is zero, not a random number."""
    params = {"m": jnp.asarray(1.0)}
    moved, _, _, info = step(ANGD(FLOW, FisherRao(), Kernel(1e-3)), Samples(jnp.ones(1)), params, Gaussian())
    assert bool(info.accepted)
    assert moved["m"] == params["m"]


class Lattice(Gaussian):
    """Discrete samples: a density over integers."""


@pytest.mark.parametrize(
    ("make_it", "words"),
    [
        (lambda: ANGD(ARGFlow(), Energy(), Normal()).init(Line(), PARAMS, data()), "no step size"),
        (lambda: ANGD(FLOW, angd.L2(), Kernel()), "use Normal"),
        (lambda: ANGD(FLOW, Energy(), Normal(), transport=angd.Printed()), "use JVP"),
        (lambda: step(ANGD(FLOW, Energy(), Normal()), data(), {"a": 1, "b": 2}), "only real floating-point leaves"),
        (lambda: step(ANGD(FLOW, Energy(), Normal()), data(), {}), "no arrays"),
        (lambda: step(ANGD(FLOW, Energy(), Normal()), data(), problem=Gaussian()), "has no residual"),
        (lambda: step(ANGD(FLOW, FisherRao(), Normal()), data()), "needs log_density"),
        (lambda: step(ANGD(FLOW, angd.L2(), Normal()), data()), "has no loss"),
        (lambda: step(ANGD(FLOW, angd.GGN(), Normal()), data()), "has no cost"),
        (
            lambda: step(ANGD(FLOW, Wasserstein(), Normal()), Samples(jnp.arange(3)), {"m": jnp.ones(())}, Lattice()),
            "must be floating-point numbers",
        ),
        (lambda: Wasserstein(clip=-1.0), "clip must be positive"),
        (lambda: Samples(jnp.ones(3), jnp.array([0.5, -0.5, 1.0])), "weights must be ≥ 0"),
        (lambda: Samples(jnp.ones(3), jnp.array([0.5, jnp.nan, 1.0])), "weights must be ≥ 0"),
        (lambda: angd.split(Samples(jnp.ones(3)), angd.parallel.mesh(jax.devices()[:2])), "a multiple of 2"),
        (lambda: angd.published.spring(-1.0), "rate must be finite and > 0"),
    ],
)
def test_misuse_is_refused_with_one_sentence(make_it, words):
    with pytest.raises(ValueError, match=words) as refusal:
        make_it()
    assert "\n" not in str(refusal.value)


class Wave(eqx.Module):
    """log ψ = (i + 1) k x as a log-density, with the real and the complex local energy."""

    complex_density: bool
    complex_variation: bool

    def log_density(self, params, x):
        return params["k"] * x * (1 + 1j if self.complex_density else 1.0)

    field = log_density

    def variation(self, params, x):
        return params["k"] * jnp.exp(x) * (1 + 0.5j if self.complex_variation else 1.0)


REAL = [FisherRao(), Wasserstein(), angd.ParametricWasserstein(), L2Pointwise(), angd.Hs(-1)]


@pytest.mark.parametrize("metric", REAL, ids=lambda m: type(m).__name__)
@pytest.mark.parametrize(("density", "variation"), [(False, True), (True, False), (True, True)])
def test_complex_amplitudes_are_refused_in_one_sentence(metric, density, variation):
    problem, params = Wave(density, variation), {"k": jnp.ones(())}
    with pytest.raises(ValueError, match=r"complex|real") as refusal:
        step(ANGD(FLOW, metric, Normal(1e-3)), Samples(PLACES), params, problem)
    assert "\n" not in str(refusal.value)
    real = step(ANGD(FLOW, metric, Normal(1e-3)), Samples(PLACES), params, Wave(False, False))
    assert bool(real[3].accepted)


def test_a_complex_wave_function_is_refused_before_the_first_step():
    def log_psi(params, x):
        return jnp.ones(()), jnp.sum(params["k"] * x) * (1 + 1j)

    problem, params = GroundState(log_psi, lambda x: jnp.sum(x**2)), {"k": jnp.ones(())}
    with pytest.raises(ValueError, match="real sign") as refusal:
        ANGD(FLOW, FisherRao(), Normal(1e-3)).init(problem, params, Samples(jnp.ones((4, 1, 1))))
    assert "\n" not in str(refusal.value)


WRONG_TYPES = """
import angd
from angd import ANGD, ARGFlow, Energy, Normal
for make in (
    lambda: ANGD(ARGFlow(h=0.1), "L2", Normal()),
    lambda: ANGD(ARGFlow(h=0.1), Energy(), Energy()),
    lambda: ANGD(ARGFlow(h=0.1), Energy(), Normal(), angd.JVP()),
    lambda: angd.Hs(0.5),
):
    try:
        make()
    except ValueError as refusal:
        print(refusal)
"""


def test_things_of_the_wrong_kind_are_refused_by_name():
    """In a process of its own, without the type checks that the tests switch on."""
    said = subprocess.run([sys.executable, "-c", WRONG_TYPES], capture_output=True, text=True, check=True).stdout
    metric, solver, controller, order = said.splitlines()
    assert metric == "ANGD: metric must be an AbstractMetric, got 'L2'."
    assert "solver must be an AbstractSolver" in solver
    assert "controller must be an AbstractController" in controller
    assert "s must be an integer, got 0.5" in order


def test_a_residual_of_the_wrong_shape_is_refused():
    class Table(Line):
        def residual(self, params, x):
            return jnp.ones((2, 2)) * params["a"]

        def variation(self, params, x):
            return jnp.ones(2) * params["a"]

    with pytest.raises(ValueError, match="a scalar or a vector"):
        step(ANGD(FLOW, Energy(), Normal()), data(), problem=Table())
    with pytest.raises(ValueError, match="field has shape"):
        step(ANGD(FLOW, L2Pointwise(), Normal()), data(), problem=Table())


def test_vector_valued_fields_work():
    class Curve(eqx.Module):
        def field(self, params, x):
            return jnp.tanh(x * params["w"]) @ params["V"]

        def variation(self, params, x):
            return self.field(params, x) - jnp.stack([jnp.sin(x), jnp.cos(x)])

        def residual(self, params, x):
            return self.variation(params, x)

        def loss(self, params, samples):
            return jnp.sum(samples.mean(jax.vmap(self.variation, (None, 0))(params, samples.x) ** 2)) / 2

    rng = np.random.default_rng(1)
    params = {"w": jnp.asarray(rng.normal(size=4)), "V": jnp.asarray(rng.normal(size=(4, 2)))}
    samples, problem = Samples(jnp.linspace(-1, 1, 9)), Curve()
    slopes = []
    for metric in (Energy(), L2Pointwise(), angd.L2(), angd.Hs(1), angd.Hs(-1)):
        opt = ANGD(ARGFlow.gradient(0.5), metric, Normal(1e-3))
        moved, _, _, info = step(opt, samples, params, problem)
        slopes.append(float(info.slope))
        if not isinstance(metric, type(angd.Hs(-1))):
            assert problem.loss(moved, samples) < problem.loss(params, samples)
    assert np.isclose(slopes[0], slopes[1])
    assert np.isclose(slopes[1], slopes[2])
