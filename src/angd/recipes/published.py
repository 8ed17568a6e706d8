"""Published methods, each once: a function that gives the optimiser, and a recipe with the published settings.

| function | recipe | flow | metric | solver |
|---|---|---|---|---|
| `ngd` | `Sobolev(mu=0)` | μ = 0, β = 0 | any | any |
| `heavy_ball` | `HeavyBall` | β = 0, constant μ | any | any |
| `nesterov` | `Nesterov` | α = 3/t, β the look-ahead | any | any |
| `minsr` | `MinSR` | μ = 0 | Fisher–Rao without correction | kernel |
| `spring` | `Spring` | μ = 0 | Fisher–Rao without correction | kernel with projected momentum, norm constraint |
| `engd` | `ENGD` | μ = 0, full step | energy | normal equations, line search |
| `wqmc` | `WQMC` | μ = 0 | Wasserstein-2 | KFAC, norm constraint |

`rate` is always the learning rate of the published method. For wave functions ρ = ψ², so ∂ log ρ = 2 ∂ log|ψ|, and what
the VMC literature writes for log|ψ| becomes twice the rate and four times the damping here; recipes, which are about ρ,
have these numbers. Imports nothing heavy.
"""

from dataclasses import dataclass
from typing import Any

from angd.recipes.base import number, one_of
from angd.recipes.pinn import DECAYS, Sobolev
from angd.recipes.pinn import solver as solver_of
from angd.recipes.vmc import Vmc

FLOW = ("alpha", *DECAYS)


def ngd(rate: Any, metric: Any, solver: Any, controller: Any = None) -> Any:
    """Natural gradient descent, θ ← θ − rate · (M + λI)⁻¹ ∂L.

    **Arguments:** `rate`, a number or a schedule `(k, t) -> value`; any `metric`, `solver` and `controller`.

    **Returns:** an `ANGD`.
    """
    import angd

    return angd.ANGD(_unaccelerated(rate), metric, solver, controller or angd.Constant())


def heavy_ball(mu: float, rate: float, metric: Any, solver: Any, controller: Any = None) -> Any:
    """Polyak's heavy ball, θ_{k+1} − θ_k = μ (θ_k − θ_{k−1}) − rate · (M + λI)⁻¹ ∂L, momentum kept in coordinates.

    **Arguments:** `mu`, 0.9 is usual; `rate`; any `metric`, `solver` and `controller`.

    **Returns:** an `ANGD`.
    """
    import angd

    flow = angd.ARGFlow.heavy_ball(mu, rate)
    return angd.ANGD(flow, metric, solver, controller or angd.Constant(), transport=angd.CurrentJVP())


def nesterov(rate: float, metric: Any, solver: Any, controller: Any = None) -> Any:
    """Nesterov's method with momentum k/(k + 3), transported along the manifold.

    **Arguments:** `rate`; any `metric`, `solver` and `controller`.

    **Returns:** an `ANGD`.
    """
    import angd

    return angd.ANGD(angd.ARGFlow.nesterov(rate), metric, solver, controller or angd.Constant())


def minsr(rate: Any, damping: Any = 1e-3, solver: Any = None, controller: Any = None, metric: Any = None) -> Any:
    """Stochastic reconfiguration through the n × n kernel (Chen and Heyl 2024), for log_density = 2 log|ψ|.

    **Arguments:** `rate` and `damping` as published, for log|ψ|; `solver` instead of `Kernel(4 damping)`; `metric`, by
    default `FisherRao`, for amplitudes with a phase `FubiniStudy(limit=None, correction=False)`.

    **Returns:** an `ANGD`.
    """
    import angd

    metric = metric or angd.FisherRao(limit=None, correction=False)
    return ngd_of_density(rate, metric, solver or angd.Kernel(4 * damping), controller)


def spring(rate: Any, damping: Any = 1e-3, mu: Any = 0.99, C: Any = 1e-3) -> Any:
    """SPRING (Goldshlager, Abrahamsen and Lin 2024): minSR with projected momentum, for log_density = 2 log|ψ|.

    **Arguments:** `rate` and `damping` as published, for log|ψ|; `mu` of the projected momentum; `C` bounds the squared
    step (None: no bound).

    **Returns:** an `ANGD`.
    """
    import angd

    return minsr(rate, solver=angd.ProjectedMomentum(mu, angd.Kernel(4 * damping)), controller=_bounded(C))


def engd(damping: Any = 1e-8, controller: Any = None) -> Any:
    """Energy natural gradient descent (Müller and Zeinhofer 2023): Gauss–Newton steps with a grid line search.

    **Arguments:** `damping`, small: 1e-8 in double precision; `controller` instead of the line search.

    **Returns:** an `ANGD`.
    """
    import angd

    return angd.ANGD(_unaccelerated(1.0), angd.Energy(), angd.Normal(damping), controller or angd.LineSearch())


def wqmc(
    rate: Any = 0.05,
    damping: Any = 1e-3,
    C: Any = 1e-2,
    clip: float | None = 1.0,
    solver: Any = None,
    metric: Any = None,
    controller: Any = None,
) -> Any:
    """The direction of Wasserstein quantum Monte Carlo (Neklyudov et al. 2023), for log_density = 2 log|ψ|.

    **Arguments:** `rate` and `damping` as published, for log|ψ|; `C` bounds the squared step; `clip` each coordinate of
    the force; `solver`, `metric` and `controller` instead of `KFAC(4 damping)`, `Wasserstein(clip=clip)` and the bound.

    **Returns:** an `ANGD`.
    """
    import angd

    metric = metric or angd.Wasserstein(clip=clip)
    return ngd_of_density(rate, metric, solver or angd.KFAC(4 * damping), controller or _bounded(C))


def ngd_of_density(rate: Any, metric: Any, solver: Any, controller: Any = None) -> Any:
    """Natural gradient descent with the rate of log|ψ| = ½ log ρ.

    **Returns:** an `ANGD`.
    """
    import angd

    return angd.ANGD(_unaccelerated(rate, factor=2.0), metric, solver, controller or angd.Constant())


def _bounded(C: Any) -> Any:
    import angd

    return None if C is None else angd.StepNorm(C)


def _unaccelerated(rate: Any, factor: float = 1.0) -> Any:
    """μ = 0 and h²γ = factor · rate, which may decay."""
    from angd.flow.coefficients import ARGFlow
    from angd.flow.schedules import Times, as_schedule, check_at_start

    schedule = as_schedule(rate, "rate")
    check_at_start(schedule, "rate", 1.0, positive=True)
    return ARGFlow.gradient(Times(factor, schedule) if callable(rate) else factor * rate)


@dataclass(frozen=True)
class Spring(Vmc):
    """SPRING as published for FermiNets of full size: rate 0.02/(1 + 10⁻⁴ k), λ = 10⁻³, C = 10⁻³ (of log|ψ|)."""

    rate: float = number(0.04, 1e-9, 10, "twice the published rate, because ρ = ψ²")
    decay: float = number(1e-4, 0, 10, "the rate falls as 1/(1 + decay k)")
    norm: float = number(1e-3, 1e-12, 1e12, "C of the norm constraint ‖h d‖² ≤ C; small networks bear 0.05")

    def contradiction(self) -> str | None:
        if self.accelerated:
            return "with mu or alpha it is not this published method any more; angd-fr has both, and beta."
        return super().contradiction()


@dataclass(frozen=True)
class MinSR(Spring):
    """minSR (Chen and Heyl 2024): SPRING without its momentum."""

    eta: float = number(0.0, 0, 0.9999, "projected momentum η; 0 is none, minSR's own")


@dataclass(frozen=True)
class WQMC(Vmc):
    """Wasserstein quantum Monte Carlo as published: Kronecker factors, C = 10⁻²."""

    metric: str = one_of("wasserstein", "parametric-wasserstein", about="where the momentum lives, if there is any")
    rate: float = number(0.1, 1e-9, 10, "twice the published rate, because ρ = ψ²")
    eta: float = number(0.0, 0, 0.9999, "projected momentum η; 0 is none, WQMC's own")
    solver: str = one_of("kfac", "kernel", about="how the linear systems are solved")
    norm: float = number(1e-2, 1e-12, 1e12, "C of the norm constraint ‖h d‖² ≤ C; small networks bear 0.05")


@dataclass(frozen=True)
class ENGD(Sobolev):
    """Energy natural gradient descent as published: full Gauss–Newton steps, line search, hardly any damping."""

    metric: str = one_of("energy", about="the metric of the residual")
    rate: float = number(1, 1, 1, "a full step")
    damping: float = number(1e-8, 1e-12, 1e6, "λ")

    def _idle(self) -> tuple[str, ...]:
        return ("mu", "beta", *FLOW)

    def optimiser(self) -> Any:
        import jax.numpy as jnp

        return engd(jnp.asarray(self.damping), self.control())


@dataclass(frozen=True)
class HeavyBall(Sobolev):
    """Polyak's heavy ball in a Sobolev metric, momentum kept in coordinates."""

    mu: float = number(0.9, 0, 0.9999, "momentum μ")

    def _idle(self) -> tuple[str, ...]:
        return ("beta", *FLOW)

    def optimiser(self) -> Any:
        import jax.numpy as jnp

        inverse = solver_of(self.solver, jnp.asarray(self.damping))
        return heavy_ball(self.mu, self.rate, self.space(), inverse, self.control())


@dataclass(frozen=True)
class Nesterov(Sobolev):
    """Nesterov's method in a Sobolev metric: momentum k/(k + 3)."""

    def _idle(self) -> tuple[str, ...]:
        return ("mu", "beta", *FLOW)

    def optimiser(self) -> Any:
        import jax.numpy as jnp

        inverse = solver_of(self.solver, jnp.asarray(self.damping))
        return nesterov(self.rate, self.space(), inverse, self.control())
