"""ANGD as a driver of NetKet: the parameters of VMC_SR step by step, flows of its own, loggers, and mistakes."""

import contextlib
import io
import json
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

nk = pytest.importorskip("netket")
linen = pytest.importorskip("flax.linen")

import angd
from angd.compat.netket import VMC_ANGD, vmc_sr
from angd.method.metrics import FubiniStudy

# NetKet casts and shards as it likes, and what taps do not follow is told once.
pytestmark = [pytest.mark.filterwarnings("default")]
RATE, SHIFT, L = 0.02, 1e-3, 4


@pytest.fixture(autouse=True)
def _broadcasting():
    """NetKet relies on rank promotion."""
    with jax.numpy_rank_promotion("allow"):
        yield


@cache
def spins():
    return nk.hilbert.Spin(0.5, L)


@cache
def ising(kind: Any = None):
    return (kind or nk.operator.IsingJax)(spins(), nk.graph.Chain(L), h=1.0)


def sampled(dtype: Any = float, **options: Any):
    model = nk.models.RBM(alpha=1, param_dtype=dtype)
    sampler = nk.sampler.MetropolisLocal(spins(), n_chains=8)
    return nk.vqs.MCState(sampler, model, **{"n_samples": 64, "seed": 1, "sampler_seed": 2} | options)


def summed(dtype: Any = float):
    return nk.vqs.FullSumState(spins(), nk.models.RBM(alpha=1, param_dtype=dtype), seed=1)


def far(x, y):
    return max(float(jnp.max(jnp.abs(a - b))) for a, b in zip(*map(jax.tree.leaves, (x, y)), strict=True))


def run(driver, steps, **options: Any):
    with contextlib.redirect_stdout(io.StringIO()):
        driver.run(steps, show_progress=False, **options)


def published(state, momentum=None, rate: Any = RATE, **options: Any):
    with contextlib.redirect_stdout(io.StringIO()):
        return nk.driver.VMC_SR(
            ising(), optax.sgd(rate), variational_state=state, diag_shift=SHIFT, momentum=momentum, **options
        )


def largest_difference(theirs, ours, steps=5):
    """Of the parameters, over some steps."""
    found = []
    for _ in range(steps):
        run(theirs, 1)
        run(ours, 1)
        found.append(far(theirs.state.parameters, ours.state.parameters))
    return max(found)


@pytest.mark.matrix
@pytest.mark.parametrize("make", [sampled, summed])
@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("momentum", [None, 0.8])
def test_vmc_sr_is_one_of_ours_step_by_step(make, dtype, momentum):
    theirs = published(make(dtype), momentum, use_ntk=False)
    ours = VMC_ANGD(ising(), vmc_sr(RATE, SHIFT, momentum or 0.0), variational_state=make(dtype))
    start = ours.state.parameters
    assert largest_difference(theirs, ours) < 1e-8
    assert far(ours.state.parameters, start) > 1e-3
    assert abs(theirs._loss_stats.mean - ours._loss_stats.mean) < 1e-8


@pytest.mark.slow
def test_it_is_vmc_sr_by_the_kernel_with_momentum_and_a_schedule():
    """n = 16 samples and p = 24 parameters: minSR and SPRING, with a rate that falls."""

    def rate(k):
        """In double precision, whatever k is; optax's own schedules may stay single."""
        return RATE * 0.7 ** jnp.asarray(k, jnp.float64)

    theirs = published(sampled(n_samples=16), 0.8, rate, use_ntk=True, on_the_fly=True)
    ours = VMC_ANGD(ising(), vmc_sr(rate, SHIFT, 0.8), variational_state=sampled(n_samples=16))
    assert largest_difference(theirs, ours) < 1e-8


@pytest.mark.slow
def test_operators_of_numba_and_chunks_change_nothing():
    opt = vmc_sr(RATE, SHIFT)
    one = VMC_ANGD(ising(), opt, variational_state=sampled())
    two = VMC_ANGD(ising(nk.operator.Ising), opt, variational_state=sampled(chunk_size=16))
    assert largest_difference(one, two, 2) < 1e-10


@pytest.mark.slow
def test_metrics_agree_where_there_is_no_phase():
    """Fisher–Rao and Fubini–Study, accelerated, with the local energies of the step before."""
    flow, solver = angd.ARGFlow.momentum(0.8, 0.05, beta=0.05), angd.Normal(1e-3)
    one, two = (
        VMC_ANGD(ising(), angd.ANGD(flow, metric, solver), variational_state=sampled())
        for metric in (angd.FisherRao(limit=None), FubiniStudy(limit=None))
    )
    assert largest_difference(one, two, 4) < 1e-10


class Written:
    """The same wave function and Hamiltonian, written down once more: log ψ, and 2ⁿ × 2ⁿ matrix."""

    def __init__(self, state):
        self.states, self.model, self.matrix = spins().all_states(), state.model, ising().to_dense()

    def amplitudes(self, params):
        return jnp.exp(self.model.apply({"params": params}, jnp.asarray(self.states)))

    def log_density(self, params, k):
        return 2 * self.model.apply({"params": params}, jnp.asarray(self.states)[k][None])[0]

    def variation(self, params, k):
        psi = self.amplitudes(params)
        return jnp.asarray(self.matrix)[k] @ psi / psi[k]


def test_an_accelerated_step_is_that_of_a_problem_written_by_hand():
    """Every configuration is a sample; β asks for the energies of the parameters before."""
    opt = angd.ANGD(angd.ARGFlow.momentum(0.8, 0.05, beta=0.05), angd.FisherRao(), angd.Normal(1e-3))
    driver = VMC_ANGD(ising(), opt, variational_state=summed())
    problem, params = Written(driver.state), driver.state.parameters

    def samples(params):
        psi = problem.amplitudes(params)
        return angd.Samples(jnp.arange(2**L), psi**2 / jnp.sum(psi**2))

    state, step = opt.init(problem, params, samples(params)), jax.jit(lambda *given: opt.step(problem, *given)[::2])
    for _ in range(3):
        run(driver, 1)
        params, state = step(params, samples(params), state)
        assert far(driver.state.parameters, params) < 1e-10
    assert driver.info.ok
    assert driver.optimizer_state.k == driver.step_count == 3


def test_it_finds_a_ground_state_and_logs_like_any_driver(tmp_path):
    opt = angd.ANGD(angd.ARGFlow.momentum(0.7, 0.1), angd.FisherRao(), angd.Normal(1e-3))
    driver, log = VMC_ANGD(ising(), opt, variational_state=summed()), nk.logging.RuntimeLog()
    seen = []

    def callback(step, log_data, driver):
        seen.append(float(log_data["angd"]["norm"]))
        return step < 59

    run(driver, 100, out=[log, nk.logging.JsonLog(str(tmp_path / "log"))], callback=callback)
    energy = np.real(log.data["Energy"].Mean)
    exact = np.linalg.eigvalsh(ising().to_dense())[0]
    assert len(seen) == 60  # NetKet does not log the step that a callback stops
    assert abs(energy[-1] / exact - 1) < 1e-4
    assert log.data["angd"]["accepted"].values.all()
    assert "angd" in json.loads((tmp_path / "log.log").read_text())


class Normalised(linen.Module):
    """A model with batch statistics."""

    @linen.compact
    def __call__(self, x):
        return jnp.sum(linen.BatchNorm(use_running_average=True)(x.astype(float)), axis=-1)


def driver(hamiltonian=None, opt=None, state=None):
    return VMC_ANGD(hamiltonian or ising(), opt or vmc_sr(RATE, SHIFT), variational_state=state or summed())


def with_metric(metric, controller=None):
    flow = angd.ARGFlow.momentum(0.5, 0.1)
    return angd.ANGD(flow, metric, angd.Normal(1e-3), controller or angd.Constant())


MISTAKES = {
    "variational_state must be an MCState or FullSumState, got RBM": lambda: driver(state=nk.models.RBM()),
    "opt must be an angd.ANGD, got Gradient": lambda: driver(opt=optax.sgd(0.1)),
    "must be an operator on the Hilbert space": lambda: driver(
        nk.operator.IsingJax(nk.hilbert.Spin(0.5, 5), nk.graph.Chain(5), h=1.0)
    ),
    "the hamiltonian is not Hermitian": lambda: driver(nk.operator.spin.sigmap(spins(), 0)),
    "keeps variables beside its parameters": lambda: driver(state=nk.vqs.FullSumState(spins(), Normalised())),
    "samples must be drawn from": lambda: driver(
        state=nk.vqs.MCState(nk.sampler.MetropolisLocal(spins(), n_chains=8, machine_pow=1), nk.models.RBM())
    ),
    "Wasserstein moves points a little": lambda: driver(opt=with_metric(angd.Wasserstein())),
    "FisherRao does not see its phase": lambda: driver(opt=with_metric(angd.FisherRao()), state=summed(complex)),
    "This controller compares losses": lambda: driver(opt=with_metric(angd.FisherRao(), angd.LineSearch())),
    "Energy needs residual": lambda: driver(opt=with_metric(angd.Energy())),
}


@pytest.mark.parametrize("words", MISTAKES)
def test_mistakes_are_told_in_one_sentence_before_any_sample_is_drawn(words):
    with pytest.raises(ValueError, match=words) as error:
        MISTAKES[words]()
    assert len(str(error.value).splitlines()) == 1
