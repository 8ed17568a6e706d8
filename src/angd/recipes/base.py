"""What can be chosen about an optimiser: one frozen dataclass per family. Imports nothing heavy.

Every field says its range and what it means; `check` refuses a bad value in one sentence.
"""

import math
from dataclasses import Field, dataclass, field, fields, replace
from difflib import get_close_matches
from typing import Any

INFINITE = float("inf")
POINTS = "new points in every step (random or Sobol), the same in all, or adaptive ones that serve ten steps"


def number(default: float, low: float, high: float, about: str) -> Any:
    """A number with its range."""
    return field(default=default, metadata={"low": low, "high": high, "about": about})


def one_of(*choices: str, about: str) -> Any:
    """One of several words, the first by default."""
    return field(default=choices[0], metadata={"choices": choices, "about": about})


def switch(default: bool, about: str) -> Any:
    """Yes or no."""
    return field(default=default, metadata={"choices": (True, False), "about": about})


def unknown(kind: str, name: str, known: Any) -> str:
    """A sentence about a name that nobody knows, with the nearest one."""
    near = get_close_matches(str(name), [str(k) for k in known], 1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(map(str, sorted(known)))}."
    return f"There is no {kind} called {name!r}; {hint}"


@dataclass(frozen=True)
class Options:
    """What all families can do."""

    def changed(self, family: str, changes: dict[str, Any]) -> "Options":
        """With other values, given as numbers or as text; bad ones are refused."""
        known = {spec.name: spec for spec in fields(self)}
        for name in changes:
            if name not in known:
                raise ValueError(unknown(f"option of {family}", name, known))
        typed = {name: _typed(known[name].type, value) for name, value in changes.items()}
        for name, value in typed.items():
            _check(f"{family}: {name}", known[name], value)
        found = replace(self, **typed)
        found.check_together(family)
        return found

    def check_together(self, family: str) -> None:
        """Refuse options that contradict each other."""


def _check(name: str, spec: Field[Any], value: Any) -> None:
    """Refuse a value out of its range."""
    about = spec.metadata
    if "choices" in about and value not in about["choices"]:
        raise ValueError(f"{name} must be one of {', '.join(map(str, about['choices']))}, got {value!r}.")
    if "low" in about and not (_is_number(value) and about["low"] <= value <= about["high"]):
        raise ValueError(f"{name} must be a number from {about['low']:g} to {about['high']:g}, got {value!r}.")
    if spec.type is int and value != int(value):
        raise ValueError(f"{name} must be a whole number, got {value!r}.")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and not math.isnan(value)


def _typed(kind: Any, value: Any) -> Any:
    """The value in the type of its option, or as it is where that cannot be."""
    if kind is bool:
        return {"true": True, "yes": True, "false": False, "no": False}.get(str(value).lower(), value)
    if kind is str:
        return value
    try:
        found = float(value)
    except (TypeError, ValueError):
        return value
    return int(found) if kind is int and math.isfinite(found) and found == int(found) else found


@dataclass(frozen=True)
class GaussNewton(Options):
    """The energy metric with Levenberg–Marquardt damping, at first of λI, then in the units of each parameter.

    Uniform points for `warm_steps` or until the loss is below `warm` (adaptive ones would chase the front of a solution
    that is not there yet), `fresh` steps on adaptive points, new in each, then ones that serve `keep` steps: less
    noise.
    """

    interior: int = number(3000, 1, 1e7, "points inside the domain")
    condition: int = number(300, 1, 1e7, "points of each initial or boundary condition")
    warm: float = number(1e-3, 0, 1e6, "loss at which uniform points end")
    warm_steps: int = number(150, 1, 1e9, "steps after which uniform points end")
    fresh: float = number(500, 1, INFINITE, "steps on points that are new in each")
    keep: int = number(20, 1, 1e9, "steps that later points serve")
    damping: float = number(1e-2, 1e-12, 1e6, "λ at the start")
    scaling: float = number(0.5, 0, 1, "power of diag G in the damping after the first phase, for normal; 0 is λI")
    solver: str = one_of("normal", "iterative", "kfac", about="how the linear systems are solved")
    controller: str = one_of("levenberg-marquardt", "trust-region", about="how damping follows success")
    momentum: float = number(0, 0, 0.999, "η of projected momentum; 0 is none")
    mu: float = number(0, 0, 0.999, "μ of the accelerated flow; 0 is none")
    rate: float = number(1, 1e-6, 10, "h² γ")
    transport: str = one_of("jvp", "current", about="how the momentum of the flow crosses to the next step")
    restart: bool = switch(False, "drop the momentum of the flow when it points uphill")
    geodesic: bool = switch(False, "second-order correction of the step")
    balance: float = number(0, 0, 1, "power by which conditions are weighed against the equation; 0 is not at all")
    single_steps: int = number(0, 0, 1e9, "first steps in single precision")

    def check_together(self, family: str) -> None:
        if self.geodesic and self.controller == "trust-region":
            raise ValueError(f"{family}: geodesic goes with levenberg-marquardt; leave out one of the two.")
        if self.mu == 0 and (self.restart or self.transport != "jvp"):
            raise ValueError(f"{family}: restart and transport are about the flow's momentum: set mu > 0 as well.")


@dataclass(frozen=True)
class Sobolev(Options):
    """H^s as the metric (L² for s = 0), accelerated where μ > 0; `beta` in units of the step, β = `beta` √rate."""

    metric: str = one_of("l2", "h1", "h2", about="the Sobolev space")
    rate: float = number(1e-2, 1e-9, 1e6, "h² γ")
    mu: float = number(0, 0, 0.9999, "momentum μ = 1 − hα at the start; 0 is plain natural gradient descent")
    beta: float = number(0, 0, 100, "Hessian-driven damping β / h at the start")
    decay: float = number(0, 0, 10, "α and β fall as 1/(1 + decay k)")
    damping: float = number(1e-3, 1e-12, 1e6, "λ")
    solver: str = one_of("normal", "iterative", "kfac", about="how the linear systems are solved")
    transport: str = one_of("jvp", "current", "covector", about="how momentum crosses; covector is as printed")
    search: bool = switch(True, "line search; constant steps diverge on fresh points at rates fine on fixed ones")
    points: str = one_of("fresh", "sobol", "fixed", "adaptive", about=POINTS)
    weight_decay: float = number(0, 0, 1, "θ shrinks by weight_decay × rate in every step")
    interior: int = number(1000, 1, 1e7, "points inside the domain")
    condition: int = number(250, 1, 1e7, "points of each initial or boundary condition")


@dataclass(frozen=True)
class FirstOrder(Options):
    """Adam or gradient descent with momentum; the rate halves every `halving` steps."""

    kind: str = one_of("adam", "sgd", about="which")
    rate: float = number(5e-3, 1e-12, 100, "learning rate at the start")
    halving: float = number(4000, 1, INFINITE, "steps in which the rate halves")
    momentum: float = number(0.9, 0, 0.9999, "β₁ of Adam, momentum of gradient descent")
    second: float = number(0.999, 0, 0.999999, "β₂ of Adam")
    weight_decay: float = number(0, 0, 1, "decoupled weight decay")
    points: str = one_of("fresh", "sobol", "fixed", "adaptive", about=POINTS)
    interior: int = number(1000, 1, 1e7, "points inside the domain")
    condition: int = number(250, 1, 1e7, "points of each initial or boundary condition")


@dataclass(frozen=True)
class QuasiNewton(Options):
    """L-BFGS or self-scaled Broyden on adaptive points that serve `keep` steps."""

    kind: str = one_of("lbfgs", "ssbroyden", about="which")
    memory: int = number(50, 1, 10000, "pairs that L-BFGS remembers")
    keep: int = number(500, 1, 1e9, "steps that points serve")
    interior: int = number(1000, 1, 1e7, "points inside the domain")
    condition: int = number(250, 1, 1e7, "points of each initial or boundary condition")


@dataclass(frozen=True)
class Vmc(Options):
    """Ground states: Fisher–Rao or Wasserstein-2, plain or accelerated, or Adam, after pretraining to Hartree–Fock.

    Rates and damping are those of ρ = ψ²: twice and four times what the literature writes for log|ψ|. Safety options
    (clipping, norm, restart) mean the same for every metric.
    """

    metric: str = one_of("fisher-rao", "wasserstein", "parametric-wasserstein", "none", about="none is Adam")
    rate: float = number(0.01, 1e-9, 10, "h² γ at the start")
    mu: float = number(0, 0, 0.9999, "momentum μ = 1 − hα; 0 is plain natural gradient descent")
    beta: float = number(0, 0, 10, "Hessian-driven damping β at the start")
    decay: float = number(1e-3, 0, 10, "the rate, and β with it, falls as 1/(1 + decay k)")
    damping: float = number(4e-3, 1e-12, 1e6, "λ")
    eta: float = number(0.99, 0, 0.9999, "projected momentum η; 0 is none")
    solver: str = one_of("kernel", "kfac", about="how the linear systems are solved")
    norm: float = number(0.05, 1e-12, 1e12, "C of the norm constraint ‖h d‖² ≤ C")
    restart: bool = switch(False, "drop the momentum when it points uphill")
    restart_above: float = number(INFINITE, 1e-9, INFINITE, "drop the momentum when ‖d‖ is larger")
    limit: float = number(0.5, 1e-6, INFINITE, "bound of h|φ| in the quadratic term of Fisher–Rao")
    clip: float = number(5, 0.1, INFINITE, "local energies within centre ± clip × mean absolute deviation")
    centre: str = one_of("median", "mean", about="centre of the clipping")
    force_clip: float = number(1, 1e-3, INFINITE, "bound of each coordinate of ∇E_L, for Wasserstein-2")
    velocity_reset: float = number(INFINITE, 1e-3, INFINITE, "coordinates of V beyond this are set to 0")
    refit: str = one_of("electrons", "affine", about="how velocities are carried to moved walkers, for Wasserstein-2")
    walkers: int = number(512, 1, 10**7, "walkers")
    moves: int = number(10, 1, 10**6, "moves of the chain between steps")
    burn_in: int = number(200, 0, 10**7, "moves before the first step")
    chain: str = one_of("graded", "metropolis", "one-electron", "langevin", about="which Markov chain")
    pretrain: int = number(400, 1, 10**9, "steps of pretraining to Hartree–Fock")
    measurements: int = number(200, 4, 10**7, "measurements of the final evaluation")

    def check_together(self, family: str) -> None:
        usual = Vmc()
        idle = [name for name in self._idle() if getattr(self, name) != getattr(usual, name)]
        if idle:
            raise ValueError(f"{family}: {idle[0]} has no effect on this method; leave it out.")

    def _idle(self) -> tuple[str, ...]:
        """Options that the method does not have."""
        if self.metric == "none":
            flow = ("mu", "beta", "damping", "solver", "norm", "restart", "restart_above", "limit")
            return (*flow, "force_clip", "velocity_reset", "refit")
        other = ("force_clip", "velocity_reset") if self.metric == "fisher-rao" else ("limit",)
        other = other if self.metric == "wasserstein" else (*other, "refit")
        return (*other, "beta", "limit", "refit") if self.mu == 0 else other
