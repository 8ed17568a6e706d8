"""Momentum never grows from step to step by itself, whatever inverse the solver applies.

An exact solver solves for the momentum again; an approximate inverse K ≈ G takes it over in coordinates,

    d = a + (K + λI)⁻¹ (f + λ (c − a)),

with a the momentum that the metric hands over, f the force and c what damping pulls towards.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest
from catalogue import METRICS, Case, draw_params
from jax import lax
from jax.flatten_util import ravel_pytree

import angd
from angd import ANGD, KFAC, ARGFlow, Iterative, Kernel, Normal, ProjectedMomentum, Scaled, WithFallback
from angd.method.solvers.base import AbstractSolver, Solution
from angd.method.system import gram_like
from angd.tree import combine, zeros_like

STEPS, MU, ETA, FROZEN = 80, 0.8, 0.99, 1e-10
SOLVERS = {
    "Normal": Normal(1e-3),
    "Kernel": Kernel(1e-3),
    "Scaled": Scaled(Normal(1e-3)),
    "Iterative": Iterative(1e-3, rtol=1e-8),
    "KFAC": KFAC(1e-3),
    "KFAC, factored": KFAC(1e-3, factored=True),
    "KFAC with fallback": WithFallback(KFAC(1e-3), Normal(1e-3)),
}
CASES = {
    **METRICS,
    # Velocities stay on their particles, so that nothing but the scheme can damp them.
    "Wasserstein": Case(angd.Wasserstein(refit=None), METRICS["Wasserstein"].problem),
}
PAIRS = [(m, s) for m in CASES for s in SOLVERS if CASES[m].metric.rows or not SOLVERS[s].needs_rows]
# KFAC's factors are the same whatever wraps them: one metric of each kind of system shows that a wrapper passes it on.
QUICK = [(m, s) for m, s in PAIRS if s == "KFAC" or m in ("Energy", "Fisher-Rao", "L2")]


def quick(pairs: list[tuple[str, str]]) -> list[Any]:
    return [pytest.param(*pair, marks=[] if pair in QUICK else pytest.mark.slow) for pair in pairs]


def lengths(opt: ANGD, case: Case) -> Any:
    """‖d_k‖ of steps that hardly move the parameters, on samples that stay (or that the metric hardly moves)."""
    problem, params, samples = case.problem, draw_params(), case.batch()

    def step(carry, _):
        params, samples, state = carry
        params, samples, state, info = opt.step(problem, params, samples, state)
        return (params, samples, state), (info.norm, info.accepted)

    start = (params, samples, opt.init(problem, params, samples))
    return lax.scan(step, start, None, length=STEPS)[1]


def momenta(metric: str, solver: str) -> dict[tuple[float, float | None], Any]:
    """Lengths for momentum of the flow, projected momentum, and both."""
    case = CASES[metric]

    def run(mu, solver):
        return lengths(ANGD(ARGFlow.momentum(mu, FROZEN), case.metric, solver), case)

    flow = jax.jit(lambda: run(MU, SOLVERS[solver]))()
    mus = jnp.array([0.0, MU])
    projected = jax.jit(jax.vmap(lambda mu: run(mu, ProjectedMomentum(ETA, SOLVERS[solver]))))(mus)
    alone, both = (jax.tree.map(lambda leaf, i=i: leaf[i], projected) for i in range(2))
    return {(MU, None): flow, (0.0, ETA): alone, (MU, ETA): both}


def bound(metric: str, mu: float, eta: float | None) -> float:
    """By how much ‖d‖ may grow beyond that of the first step."""
    c = mu if eta is None else eta
    if metric == "Wasserstein":  # velocities and λc both accumulate
        return 1.05 / ((1 - mu) * (1 - c))
    return 1.05 / (1 - max(mu, c))


@pytest.mark.parametrize(("metric", "solver"), quick(PAIRS))
def test_with_frozen_parameters_momentum_stays_bounded(metric, solver):
    allowed = 1.0 if SOLVERS[solver].approximate else 10.0
    for (mu, eta), (length, accepted) in momenta(metric, solver).items():
        assert bool(jnp.all(accepted)), (mu, eta)
        growth = float(jnp.max(length) / length[0])
        assert growth <= allowed * bound(metric, mu, eta), (mu, eta)
        assert mu == 0 or growth > 0.99 / (1 - mu), "there is no momentum"


class Regression(eqx.Module):
    """A 2–6–1 network fitted to sin 2x₀ cos x₁, and the same as a log-density, which is known up to a constant."""

    def field(self, params, x):
        return jnp.tanh(x @ params["W"] + params["b"]) @ params["a"]

    log_density = field

    def variation(self, params, x):
        return self.field(params, x) - jnp.sin(2 * x[0]) * jnp.cos(x[1])

    residual = variation

    def cost(self, z, x):
        return jnp.sum(jnp.cosh(z - jnp.sin(2 * x[0]) * jnp.cos(x[1]))) - 1


def draw(key):
    """Parameters and samples of one start."""
    keys = jax.random.split(key, 4)
    W, a = jax.random.normal(keys[0], (2, 6)), jax.random.normal(keys[1], (6,)) / 2
    params = {"W": W, "b": jax.random.normal(keys[2], (6,)), "a": a}
    return params, angd.Samples(jax.random.normal(keys[3], (32, 2)))


def spread(params, samples):
    """½ Var(u − f): what Fisher–Rao lowers, and a part of what the others do."""
    f = samples.centre(jax.vmap(Regression().variation, (None, 0))(params, samples.x))
    return samples.mean(f**2) / 2


FREE = {"Energy": angd.Energy(), "Fisher-Rao": angd.FisherRao(), "L2 by rows": angd.L2Pointwise(), "GGN": angd.GGN()}


@pytest.mark.parametrize("metric", FREE)
def test_with_free_parameters_kronecker_factors_and_momentum_descend_from_every_start(metric):
    opt, problem = ANGD(ARGFlow.momentum(0.7, 0.05), FREE[metric], KFAC(1e-3)), Regression()

    def run(key):
        params, samples = draw(key)

        def step(carry, _):
            params, _, state, info = opt.step(problem, carry[0], samples, carry[1])
            return (params, state), (spread(params, samples), info.accepted)

        losses, accepted = lax.scan(step, (params, opt.init(problem, params, samples)), None, length=60)[1]
        return spread(params, samples), losses, accepted

    first, losses, accepted = jax.jit(jax.vmap(run))(jax.random.split(jax.random.key(0), 8))
    assert bool(jnp.all(accepted))
    assert float(jnp.max(jnp.max(losses, axis=1) / first)) < 2
    assert float(jnp.max(losses[:, -1] / first)) < 0.5


class Claimed(AbstractSolver):
    """An exact inverse that is used as if it were an approximate one: K = G."""

    damping: Any
    inner: AbstractSolver

    @property
    def approximate(self) -> bool:
        return True

    def prepare(self, system, state, damping, many=False):
        return self.inner.prepare(system, state, damping, many)

    def solve(self, prepared, damping, system, c) -> Solution:
        v = combine((1.0, system.right_side()), (damping, c))
        return self.inner.solve(prepared, damping, gram_like(system, v), zeros_like(c))


# The parts of momentum that no direction in coordinates has: an approximate inverse drops them.
STRAIGHT = {
    "Fisher-Rao": angd.FisherRao(limit=None, correction=False),
    "implicit Fisher-Rao": angd.FisherRao(limit=None, correction=False),
    "GGN": angd.GGN(correction=False),
}


@pytest.mark.parametrize("projected", [False, True], ids=["flow", "projected"])
@pytest.mark.parametrize("metric", CASES)
def test_an_inverse_that_happens_to_be_exact_solves_the_damped_system(metric, projected):
    """(G + λI) d = v + λ c, with momentum of the flow and Hessian damping, while the tangent space stays."""
    case, beta = CASES[metric], 0.0 if metric == "parametric Wasserstein" else 5e-6
    exact = Normal(1e-2)

    def direction(solver):
        solver = ProjectedMomentum(0.9, solver) if projected else solver
        flow = ARGFlow.momentum(MU, FROZEN, beta)
        opt = ANGD(flow, STRAIGHT.get(metric, case.metric), solver, transport=angd.CurrentJVP())
        params, samples = draw_params(), case.batch()
        state = opt.init(case.problem, params, samples)
        step = eqx.filter_jit(opt.step)
        for _ in range(4):
            params, samples, state, _ = step(case.problem, params, samples, state)
        return ravel_pytree(state.previous.d)[0]

    solved, handed = direction(exact), direction(Claimed(1e-2, exact))
    assert jnp.linalg.norm(solved - handed) < 1e-6 * jnp.linalg.norm(solved)
