"""Physics-informed experiments: the problems of the catalogue with their exact solutions, and phases from options."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

import angd
from angd.method import baselines
from angd.problems.pinn import (
    Adaptive,
    Balanced,
    Fixed,
    Network,
    Problem,
    Renewed,
    Sampler,
    Sobol,
    Uniform,
    burgers,
    euler,
    heat,
)
from angd.problems.solution import Solution, together
from angd.recipes.base import INFINITE, FirstOrder, GaussNewton, Options, QuasiNewton, Sobolev
from angd.recipes.tuned import falling
from angd.train.loop import Phase

TEST_POINTS = 4096
ADAPT_EVERY = 10  # choosing adaptive points costs as much as three steps of a first-order method


@dataclass(frozen=True)
class Case:
    """A problem with its exact solution on a grid, field by field."""

    make: Callable[[Any], Problem]
    exact: Callable[[], tuple[np.ndarray, dict[str, np.ndarray]]]
    paper: Network

    def problem(self, network: str = "small") -> Problem:
        """With the small default network, or with the paper's."""
        return self.make(None if network == "small" else self.paper)

    def solution(self, problem: Problem) -> Callable[[PyTree], Solution]:
        """The fields of parameters beside the exact ones, on the grid of these."""
        z, exact = self.exact()
        on_grid = self.on_grid(problem)
        return lambda params: together(z, dict(zip(exact, on_grid(params).T, strict=True)), exact)

    def on_grid(self, problem: Problem) -> Callable[[PyTree], np.ndarray]:
        """The field at the points of the exact solution, one column for each component."""
        z = jnp.asarray(self.exact()[0])
        compiled = jax.jit(lambda params: jax.vmap(problem.field, (None, 0))(params, z).reshape(len(z), -1))
        return lambda params: np.asarray(compiled(params))


def test_loss(problem: Problem) -> Callable[[PyTree], float]:
    """The loss at points that no optimiser sees."""
    counts = spread(problem, TEST_POINTS, TEST_POINTS // 4)
    samples = Sobol(**counts)(jax.random.key(20261116), problem, None)
    compiled = jax.jit(lambda params: problem.loss(params, samples))
    return lambda params: float(compiled(params))


def _burgers(initial: str) -> Case:
    def exact() -> tuple[np.ndarray, dict[str, np.ndarray]]:
        z, u = burgers.reference(initial)
        return z, {"u": u}

    return Case(lambda network: burgers.burgers(initial, network), exact, Network(burgers.PAPER))


def _euler_exact() -> tuple[np.ndarray, dict[str, np.ndarray]]:
    z, states = euler.reference()
    return z, dict(zip(euler.FIELDS, states.T, strict=True))


def _heat_exact() -> tuple[np.ndarray, dict[str, np.ndarray]]:
    z, u = heat.reference()
    return z, {"u": u}


CASES: Mapping[str, Case] = {
    "burgers": _burgers("-sin"),
    "burgers-sin": _burgers("sin"),
    "burgers-cos": _burgers("1-cos"),
    "euler": Case(euler.euler, _euler_exact, Network(burgers.PAPER, outputs=3)),
    "heat": Case(heat.heat, _heat_exact, Network(burgers.PAPER)),
}


def spread(problem: Problem, interior: int, condition: int) -> dict[str, int]:
    """How many points each term gets."""
    return {name: interior if name == "interior" else condition for name in problem.places()}


@singledispatch
def phases(options: Options, problem: Problem, seed: int = 0) -> list[Phase]:
    """The phases of a training run."""
    raise ValueError(f"No differential equation is solved with {type(options).__name__}.")


@phases.register
def _(options: GaussNewton, problem: Problem, seed: int = 0) -> list[Phase]:
    counts = spread(problem, options.interior, options.condition)
    uniform, adaptive = _balanced(options, Uniform(**counts)), _balanced(options, Adaptive(**counts))
    first = _gauss_newton(options, _solver(options.solver, options.damping))
    second = first
    if options.scaling > 0 and options.solver == "normal":
        second = _gauss_newton(options, angd.Scaled(angd.Normal(options.damping / 10), options.scaling))
    warm = Phase(first, uniform, options.warm_steps, options.warm)
    single = [Phase(first, uniform, options.single_steps, options.warm, single=True)] if options.single_steps else []
    kept = Phase(second, Renewed(adaptive, options.keep) if options.keep > 1 else adaptive)
    fresh = Phase(second, adaptive, options.fresh)
    return [*single, warm, fresh, *([kept] if options.fresh < INFINITE else [])]


def _balanced(options: GaussNewton, sampler: Sampler) -> Sampler:
    return Balanced(sampler, options.balance) if options.balance > 0 else sampler


def _gauss_newton(options: GaussNewton, solver: Any) -> angd.ANGD:
    if options.momentum > 0:
        solver = angd.ProjectedMomentum(options.momentum, solver)
    flow = angd.ARGFlow.momentum(options.mu, options.rate) if options.mu > 0 else angd.ARGFlow.gradient(options.rate)
    damper = angd.TrustRegion() if options.controller == "trust-region" else _marquardt(options)
    controller = angd.in_turn([angd.Restart(), damper]) if options.restart else damper
    return angd.ANGD(flow, angd.Energy(), solver, controller, TRANSPORTS[options.transport]())


def _marquardt(options: GaussNewton) -> angd.LevenbergMarquardt:
    return angd.LevenbergMarquardt(geodesic=0.75) if options.geodesic else angd.LevenbergMarquardt()


TRANSPORTS = {"jvp": angd.JVP, "current": angd.CurrentJVP, "covector": angd.Printed}


def _solver(name: str, damping: Any) -> Any:
    solvers = {"normal": angd.Normal, "iterative": angd.Iterative, "kfac": angd.KFAC}
    return solvers[name](damping)


@phases.register
def _(options: Sobolev, problem: Problem, seed: int = 0) -> list[Phase]:
    order = {"l2": 0, "h1": 1, "h2": 2}[options.metric]
    # What is tuned enters as arrays, so that a sweep compiles once.
    rate, damping = jnp.asarray(options.rate), jnp.asarray(options.damping)
    h = options.rate**0.5
    optimiser = angd.ANGD(
        angd.ARGFlow(
            alpha=falling((1 - options.mu) / h, options.decay),
            beta=falling(options.beta * h, options.decay) if options.beta else 0.0,
            h=jnp.sqrt(rate),
        ),
        angd.Hs(order) if order else angd.L2(),
        _solver(options.solver, damping),
        angd.LineSearch() if options.search else angd.Constant(),
        TRANSPORTS[options.transport](),
    )
    if options.weight_decay > 0:
        optimiser = baselines.Decayed(optimiser, jnp.asarray(options.weight_decay * options.rate))
    return [Phase(optimiser, _points(options, problem, seed))]


def _points(options: Sobolev | FirstOrder, problem: Problem, seed: int) -> Sampler:
    counts = spread(problem, options.interior, options.condition)
    if options.points == "adaptive":
        return Renewed(Adaptive(**counts), ADAPT_EVERY)
    if options.points == "fixed":
        return Fixed(Uniform(**counts), jax.random.key(seed))
    return Sobol(**counts) if options.points == "sobol" else Uniform(**counts)


@phases.register
def _(options: FirstOrder, problem: Problem, seed: int = 0) -> list[Phase]:
    rate, halving = jnp.asarray(options.rate), jnp.asarray(options.halving, float)
    momentum, decay = jnp.asarray(options.momentum), jnp.asarray(options.weight_decay)
    second = jnp.asarray(options.second) if options.kind == "adam" else None
    optimiser = baselines.FirstOrder(rate, halving, momentum, second, decay)
    return [Phase(optimiser, _points(options, problem, seed))]


@phases.register
def _(options: QuasiNewton, problem: Problem, seed: int = 0) -> list[Phase]:
    points = Renewed(Adaptive(**spread(problem, options.interior, options.condition)), options.keep)
    optimiser = baselines.lbfgs(options.memory) if options.kind == "lbfgs" else baselines.SelfScaledBroyden()
    return [Phase(optimiser, points)]
