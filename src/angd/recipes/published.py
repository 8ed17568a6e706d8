"""Named methods as configurations of one object.

| preset | flow | metric | solver |
|---|---|---|---|
| `ngd` | μ = 0, β = 0 | any | any |
| `heavy_ball` | β = 0, constant μ | any | any |
| `nesterov` | α = 3/t, β the look-ahead | any | any |
| `minsr` | μ = 0 | Fisher–Rao without correction | kernel |
| `spring` | μ = 0 | Fisher–Rao without correction | kernel with projected momentum, norm constraint |
| `engd` | μ = 0, full step | energy | normal equations, line search |
| `wqmc` | μ = 0 | Wasserstein-2 | KFAC, norm constraint |

`rate` is always the learning rate of the published method. For wave functions ρ = ψ², so ∂ log ρ = 2 ∂ log|ψ|, and what
the VMC literature writes for log|ψ| becomes twice the rate and four times the damping here.
"""

from typing import Any

from angd.flow.coefficients import ARGFlow
from angd.flow.schedules import Times, as_schedule, check_at_start
from angd.method.controllers import AbstractController, Constant, LineSearch, StepNorm
from angd.method.metrics import AbstractMetric, Energy, FisherRao, Wasserstein
from angd.method.solvers import KFAC, AbstractSolver, Kernel, Normal, ProjectedMomentum
from angd.method.step import ANGD
from angd.method.transport import CurrentJVP


def ngd(
    rate: Any, metric: AbstractMetric, solver: AbstractSolver, controller: AbstractController | None = None
) -> ANGD:
    """Natural gradient descent, θ ← θ − rate · (M + λI)⁻¹ ∂L; `rate` may be a schedule `(k, t) -> value`."""
    return ANGD(_unaccelerated(rate), metric, solver, controller or Constant())


def heavy_ball(
    mu: float, rate: float, metric: AbstractMetric, solver: AbstractSolver, controller: AbstractController | None = None
) -> ANGD:
    """Polyak's heavy ball, θ_{k+1} − θ_k = μ (θ_k − θ_{k−1}) − rate · (M + λI)⁻¹ ∂L, momentum kept in coordinates."""
    flow = ARGFlow.heavy_ball(mu, rate)
    return ANGD(flow, metric, solver, controller or Constant(), transport=CurrentJVP())


def nesterov(
    rate: float, metric: AbstractMetric, solver: AbstractSolver, controller: AbstractController | None = None
) -> ANGD:
    """Nesterov's method with momentum k/(k + 3), transported along the manifold."""
    return ANGD(ARGFlow.nesterov(rate), metric, solver, controller or Constant())


def minsr(rate: Any, damping: float = 1e-3) -> ANGD:
    """Stochastic reconfiguration through the n × n kernel (Chen and Heyl 2024), for log_density = 2 log|ψ|."""
    metric = FisherRao(limit=None, correction=False)
    return ANGD(_unaccelerated(rate, factor=2.0), metric, Kernel(4 * damping))


def spring(rate: Any, damping: float = 1e-3, mu: float = 0.99, C: float | None = 1e-3) -> ANGD:
    """SPRING (Goldshlager, Abrahamsen and Lin 2024), for log_density = 2 log|ψ|; `C` bounds the squared step."""
    metric, solver = FisherRao(limit=None, correction=False), ProjectedMomentum(mu, Kernel(4 * damping))
    return ANGD(_unaccelerated(rate, factor=2.0), metric, solver, Constant() if C is None else StepNorm(C))


def engd(damping: float = 1e-8, controller: AbstractController | None = None) -> ANGD:
    """Energy natural gradient descent (Müller and Zeinhofer 2023): Gauss–Newton steps with a grid line search."""
    return ANGD(_unaccelerated(1.0), Energy(), Normal(damping), controller or LineSearch())


def wqmc(
    rate: Any = 0.05, damping: float = 1e-3, C: float | None = 1e-2, clip: float | None = 1.0, solver: Any = None
) -> ANGD:
    """The direction of Wasserstein quantum Monte Carlo (Neklyudov et al. 2023), for log_density = 2 log|ψ|."""
    controller = Constant() if C is None else StepNorm(C)
    metric = Wasserstein(clip=clip)
    return ANGD(_unaccelerated(rate, factor=2.0), metric, solver or KFAC(4 * damping), controller)


def _unaccelerated(rate: Any, factor: float = 1.0) -> ARGFlow:
    """μ = 0 and h²γ = factor · rate, which may decay."""
    schedule = as_schedule(rate, "rate")
    check_at_start(schedule, "rate", 1.0, positive=True)
    return ARGFlow.gradient(Times(factor, schedule) if callable(rate) else factor * rate)
