"""Physics-informed experiments by name: what is solved (`PROBLEMS`) and with what (`METHODS`).

A method builds the phases of a training run for any problem; its keyword arguments are what one tunes, and `grid` is
what a sweep tries for each of them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import PyTree

import angd
from angd import baselines
from angd.experiments.runner import INFINITE, Phase
from angd.problems.pinn import Adaptive, Network, Problem, Renewed, Sampler, Uniform, burgers, euler


@dataclass(frozen=True)
class Experiment:
    """A problem with its exact solution on a grid, field by field."""

    about: str
    make: Callable[[Any], Problem]
    exact: Callable[[], tuple[np.ndarray, dict[str, np.ndarray]]]
    paper: Network

    def problem(self, network: str = "small") -> Problem:
        """With the small default network, or with the paper's."""
        if network not in ("small", "paper"):
            raise ValueError(f"network must be 'small' or 'paper', got {network!r}.")
        return self.make(None if network == "small" else self.paper)

    def errors(self, problem: Problem) -> Callable[[PyTree], dict[str, float]]:
        """Relative L² errors of parameters, by field."""
        z, exact = self.exact()
        on_grid = jax.jit(lambda params: jax.vmap(problem.field, (None, 0))(params, jnp.asarray(z)).reshape(len(z), -1))

        def errors(params: PyTree) -> dict[str, float]:
            found = np.asarray(on_grid(params))
            pairs = zip(exact.items(), found.T, strict=True)
            return {name: float(np.linalg.norm(u - e) / np.linalg.norm(e)) for (name, e), u in pairs}

        return errors


def _burgers(initial: str, about: str) -> Experiment:
    def exact() -> tuple[np.ndarray, dict[str, np.ndarray]]:
        z, u = burgers.reference(initial)
        return z, {"u": u}

    return Experiment(about, lambda network: burgers.burgers(initial, network), exact, Network(burgers.PAPER))


def _euler_exact() -> tuple[np.ndarray, dict[str, np.ndarray]]:
    z, states = euler.reference()
    return z, dict(zip(euler.FIELDS, states.T, strict=True))


PROBLEMS: Mapping[str, Experiment] = {
    "burgers": _burgers("-sin", "Burgers from −sin(πx): a shock at rest in the middle"),
    "burgers-sin": _burgers("sin", "Burgers from sin(πx): a rarefaction, and layers at the walls"),
    "burgers-cos": _burgers("1-cos", "Burgers from 1 − cos(2πx): a moving shock that meets the wall"),
    "euler": Experiment(
        "Euler's equations: two rarefactions that leave almost a vacuum (Toro's test 123)",
        euler.euler,
        _euler_exact,
        Network(burgers.PAPER, outputs=3),
    ),
}


@dataclass(frozen=True)
class Method:
    """`build(problem, **options)` → phases; `grid` lists what a sweep tries for each option."""

    about: str
    build: Callable[..., list[Phase]]
    grid: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)


def spread(problem: Problem, interior: int, condition: int) -> dict[str, int]:
    """How many points each term gets."""
    return {name: interior if name == "interior" else condition for name in problem.places()}


def gauss_newton(
    problem: Problem,
    interior: int = 3000,
    condition: int = 300,
    warm: float = 1e-3,
    warm_steps: int = 150,
    fresh: float = 500,
    keep: int = 20,
    damping: float = 1e-2,
    scaling: float | None = 0.5,
    controller: Any = None,
    flow: Any = None,
    momentum: float | None = None,
) -> list[Phase]:
    """The energy metric with Levenberg–Marquardt damping, at first of λI, then in the units of each parameter.

    Uniform points for `warm_steps` or until the loss is below `warm` (adaptive ones would chase the front of a solution
    that is not there yet), `fresh` steps on adaptive points, new in each, then ones that serve `keep` steps: less
    noise.
    """

    def optimiser(solver: Any) -> angd.ANGD:
        solver = solver if momentum is None else angd.ProjectedMomentum(momentum, solver)
        flow_, control = flow or angd.ARGFlow.gradient(1.0), controller or angd.LevenbergMarquardt()
        return angd.ANGD(flow_, angd.Energy(), solver, control)

    counts = spread(problem, interior, condition)
    adaptive, plain = Adaptive(**counts), angd.Normal(damping)
    first = optimiser(plain)
    second = first if scaling is None else optimiser(angd.Scaled(angd.Normal(damping / 10), scaling))
    return [
        Phase(first, Uniform(**counts), steps=warm_steps, below=warm),
        Phase(second, adaptive, fresh),
        Phase(second, Renewed(adaptive, keep)),
    ]


def large(problem: Problem, interior: int = 1000, condition: int = 125, **options: Any) -> list[Phase]:
    """The energy metric for more parameters than residuals: the kernel's form, and new points in every step."""
    settings = {"warm_steps": 30, "fresh": INFINITE, "scaling": None} | options
    return gauss_newton(problem, interior, condition, **settings)


def sobolev(
    problem: Problem,
    s: int = 0,
    rate: float = 1e-2,
    mu: float = 0.0,
    beta: float = 0.0,
    damping: float = 1e-3,
    transport: str = "jvp",
    search: bool = True,
    interior: int = 1000,
    condition: int = 250,
) -> list[Phase]:
    """H^s with s ≥ 0 (L² for 0), accelerated where μ > 0; `beta` in units of the step, β = `beta` √rate.

    On fresh points constant steps diverge at rates that are fine on fixed ones, hence the line `search`. What is tuned
    enters as arrays, so that a sweep compiles once.
    """
    transports = {"jvp": angd.JVP, "current": angd.CurrentJVP, "covector": angd.Covector}
    if transport not in transports:
        raise ValueError(f"transport must be one of {sorted(transports)}, got {transport!r}.")
    opt = angd.ANGD(
        angd.ARGFlow.momentum(jnp.asarray(mu), jnp.asarray(rate), jnp.asarray(beta * rate**0.5) if beta else 0.0),
        angd.L2() if s == 0 else angd.Hs(s),
        angd.Normal(jnp.asarray(damping)),
        angd.LineSearch() if search else angd.Constant(),
        transports[transport](),
    )
    return [Phase(opt, Uniform(**spread(problem, interior, condition)))]


def rival(
    make: Callable[..., Any], sampler: Callable[..., Sampler] = Uniform, keep: int = 1
) -> Callable[..., list[Phase]]:
    """Phases of one optimiser on points that serve `keep` steps each."""

    def build(problem: Problem, interior: int = 1000, condition: int = 250, **options: Any) -> list[Phase]:
        points = sampler(**spread(problem, interior, condition))
        return [Phase(make(**options), Renewed(points, keep) if keep > 1 else points)]

    return build


def gradient_descent(rate: float = 1e-3, momentum: float = 0.9) -> Any:
    """Gradient descent with momentum."""
    return baselines.sgd(rate, momentum)


def decaying_adam(rate: float = 5e-3, halving: int = 4000) -> Any:
    """Adam whose rate halves every `halving` steps."""
    return baselines.adam(optax.exponential_decay(rate, halving, 0.5))


SOBOLEV = ((0, "l2", "L² metric"), (1, "h1", "H¹ metric"), (2, "h2", "H² metric"))
RATES = (1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1)  # two dozen configurations for every method
NGD = {"rate": RATES, "damping": (1e-4, 1e-3, 1e-2, 1e-1)}
ANGD = {"rate": RATES[:4], "damping": (1e-3, 1e-2), "mu": (0.8, 0.9, 0.95), "beta": (0.0, 1.0)}
ADAM = {"rate": (5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2), "halving": (500, 1000, 2000, 4000)}
SGD = {"rate": (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1), "momentum": (0.0, 0.9, 0.99)}


def _sobolev(s: int, **fixed: Any) -> Callable[..., list[Phase]]:
    return lambda problem, **options: sobolev(problem, s, **(fixed | options))


METHODS: Mapping[str, Method] = {
    "energy": Method("energy metric (Gauss–Newton), Levenberg–Marquardt, adaptive points", gauss_newton),
    "energy-large": Method("energy metric for large networks: the kernel's form, fresh adaptive points", large),
    "energy-trust": Method(
        "energy metric, trust region by target ratio: one factorisation, many radii",
        lambda problem, **options: gauss_newton(problem, controller=angd.TrustRegion(), **options),
    ),
    "energy-projected": Method(
        "energy metric with projected momentum",
        lambda problem, momentum=0.9, **options: gauss_newton(problem, momentum=momentum, **options),
        {"momentum": (0.5, 0.9, 0.99)},
    ),
    "energy-accelerated": Method(
        "energy metric with the accelerated flow (heavy ball, transported)",
        lambda problem, mu=0.5, rate=0.5, **options: gauss_newton(
            problem, flow=angd.ARGFlow.momentum(mu, rate), **options
        ),
        {"mu": (0.3, 0.5, 0.8), "rate": (0.3, 0.5, 1.0)},
    ),
    **{f"ngd-{name}": Method(f"natural gradient, {title}", _sobolev(s), NGD) for s, name, title in SOBOLEV},
    **{
        f"angd-{name}": Method(f"accelerated natural gradient, {title}", _sobolev(s, mu=0.8), ANGD)
        for s, name, title in SOBOLEV
    },
    "angd-l2-covector": Method(
        "as angd-l2 with the recursion as printed in the paper, for comparison",
        _sobolev(0, mu=0.8, transport="covector"),
        ANGD,
    ),
    "adam": Method("Adam with a decaying rate", rival(decaying_adam), ADAM),
    "sgd": Method("gradient descent with momentum", rival(gradient_descent), SGD),
    "lbfgs": Method("L-BFGS on points that serve 500 steps", rival(baselines.lbfgs, Adaptive, 500)),
    "ssbroyden": Method(
        "self-scaled Broyden on adaptive points that serve 500 steps",
        rival(baselines.SelfScaledBroyden, Adaptive, 500),
    ),
}


def named(catalogue: Mapping[str, Any], name: str, kind: str) -> Any:
    """An entry, or a sentence with the nearest name."""
    if name in catalogue:
        return catalogue[name]
    near = get_close_matches(name, catalogue, 1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(sorted(catalogue))}."
    raise ValueError(f"There is no {kind} called {name!r}; {hint}")
