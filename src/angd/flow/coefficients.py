"""The accelerated Riemannian gradient (ARG) flow, as coefficients.

    ∇_ρ̇ ρ̇ + α ρ̇ + β ∇_ρ̇ grad L + γ grad L = 0,      ρ(t₀) = ρ₀,  ρ̇(t₀) = 0.

An `ARGFlow` holds h, α, β, γ as schedules. In continuous time it answers with α(t), β(t), γ(t), β̇(t) and the weight
w = γ − β̇ − β/t of the convergence theorem; for the discrete method it answers with the coefficients of step k, where
only μ = 1 − hα, the rate s = h²γ and hβ matter. A `GradientFlow` is ρ̇ = −γ grad L, for continuous time alone.
"""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

from angd.flow.schedules import (
    ConstantSchedule,
    LookAhead,
    OnePlusOverTime,
    OverTime,
    Reciprocal,
    Schedule,
    as_schedule,
    check_at_start,
    is_concrete,
    show,
)

MOMENTUM_SLACK = -1e-6  # single precision rounds 1 − hα of a gradient flow to this


class Coefficients(eqx.Module):
    """What one step of the discrete method needs to know of the flow.

    **Attributes:**

    - `h`: step size, a scalar > 0.
    - `alpha`, `beta`, `gamma`: α, β and γ of this step, scalars ≥ 0.
    - `beta_prev`: β of the step before.
    """

    h: Array
    alpha: Array
    beta: Array
    gamma: Array
    beta_prev: Array

    @property
    def mu(self) -> Array:
        """Momentum factor μ = 1 − hα."""
        return 1 - self.h * self.alpha

    @property
    def in_range(self) -> Bool[Array, ""]:
        """h > 0, α, β, γ ≥ 0, all finite, and hα ≤ 1 (up to rounding)."""
        finite = jnp.isfinite(self.h) & jnp.isfinite(self.alpha) & jnp.isfinite(self.beta) & jnp.isfinite(self.gamma)
        signs = (self.h > 0) & (self.alpha >= 0) & (self.beta >= 0) & (self.gamma >= 0)
        return finite & signs & (self.mu >= MOMENTUM_SLACK)

    @property
    def rate(self) -> Array:
        """Learning rate of the unaccelerated method, s = h²γ."""
        return self.h**2 * self.gamma

    @property
    def beta_dot(self) -> Array:
        """Backward difference β̇ = (β − β_prev)/h."""
        return (self.beta - self.beta_prev) / self.h


class Moment(eqx.Module):
    """The coefficients of the continuous flow at one time."""

    t: Array
    alpha: Array
    beta: Array
    gamma: Array
    beta_dot: Array

    @property
    def w(self) -> Array:
        """w = γ − β̇ − β/t, the weight of the loss in the Lyapunov function."""
        return self.gamma - self.beta_dot - self.beta / self.t


class ARGFlow(eqx.Module):
    """The accelerated Riemannian gradient flow with Hessian-driven damping,

        ∇_ρ̇ ρ̇ + α ρ̇ + β ∇_ρ̇ grad L + γ grad L = 0.

    α, β, γ and h are numbers, schedules `(k, t) -> value`, or schedules `k -> value` such as optax's.
    `ARGFlow.momentum(mu, rate, beta)` says the same in the units in which optimisers are tuned.

    **Arguments:**

    - `alpha`: friction α. `OverTime(3.0)`, i.e. 3/t, is Nesterov's (Su, Boyd and Candès 2014); a
      constant suits strongly convex losses.
    - `beta`: Hessian-driven damping β, which calms oscillation; keep it of the order of `h * gamma`.
    - `gamma`: gain γ of the gradient, normally 1.
    - `h`: step of the discrete method; leave it out for continuous time. At most 1/α.
    - `t0`: time of the first step, ≥ 0; > 0 for schedules a/t.

    **Example:** `angd.ARGFlow(alpha=angd.OverTime(3.0), beta=0.1, h=0.1)`
    """

    alpha: Schedule
    beta: Schedule
    gamma: Schedule
    h: Schedule | None
    t0: float = eqx.field(static=True)

    def __init__(self, alpha: Any = 0.0, beta: Any = 0.0, gamma: Any = 1.0, h: Any = None, t0: float = 1.0):
        if not (math.isfinite(t0) and t0 >= 0):
            raise ValueError(f"t0 must be finite and ≥ 0, got {t0}.")
        self.alpha, self.beta, self.gamma = (
            as_schedule(alpha, "alpha"),
            as_schedule(beta, "beta"),
            as_schedule(gamma, "gamma"),
        )
        self.h = None if h is None else as_schedule(h, "h")
        self.t0 = float(t0)

    def __check_init__(self):
        for name in ("alpha", "beta", "gamma"):
            check_at_start(getattr(self, name), name, self.t0)
        if self.h is not None:
            check_at_start(self.h, "h", self.t0, positive=True)
            _check_momentum(1 - self.h(0, self.t0) * self.alpha(0, self.t0))

    @classmethod
    def momentum(cls, mu: Any, rate: Any, beta: Any = 0.0, t0: float = 1.0) -> "ARGFlow":
        """The flow with a momentum factor and a learning rate: γ = 1, h = √rate, α = (1 − μ)/h.

        **Arguments:**

        - `mu`: momentum factor μ of a step, in [0, 1), or a schedule; 0.8 is a good first try, 0.95 is bold.
        - `rate`: learning rate s = h² > 0, or a schedule; 0.01 to 1.
        - `beta`: Hessian-driven damping β; 0, or about `rate ** 0.5`.
        - `t0`: time of the first step.

        **Returns:** an `ARGFlow`.
        """
        mu, rate = as_schedule(mu, "mu"), as_schedule(rate, "rate")
        check_at_start(rate, "rate", t0, positive=True)
        check_at_start(mu, "mu", t0)

        def h(k, t):
            return rate(k, t) ** 0.5

        def alpha(k, t):
            return (1 - mu(k, t)) / h(k, t)

        constant = isinstance(mu, ConstantSchedule) and isinstance(rate, ConstantSchedule)
        return cls(alpha=alpha(0, t0) if constant else alpha, beta=beta, h=h(0, t0) if constant else h, t0=t0)

    @classmethod
    def gradient(cls, rate: Any) -> "ARGFlow":
        """Unaccelerated, h = rate and α = γ = 1/rate: natural gradient descent, whose rate may be a schedule.

        In continuous time its friction is so high that it follows ρ̇ = −grad L within O(rate); `GradientFlow` is that
        equation itself.

        **Arguments:**

        - `rate`: learning rate > 0, or a schedule; 1 is a full Gauss–Newton step.

        **Returns:** an `ARGFlow`.
        """
        schedule = as_schedule(rate, "rate")
        check_at_start(schedule, "rate", 1.0, positive=True)
        inverse = Reciprocal(schedule) if callable(rate) else 1 / rate
        return cls(alpha=inverse, gamma=inverse, h=rate)

    @classmethod
    def heavy_ball(cls, mu: float, rate: float) -> "ARGFlow":
        """Constant friction and no Hessian damping: the update `d ← μ d − s M⁻¹ ∂L` (Polyak 1964).

        **Arguments:**

        - `mu`: momentum factor μ in [0, 1); 0.9 is usual.
        - `rate`: learning rate s > 0.

        **Returns:** an `ARGFlow`.
        """
        return cls.momentum(mu, rate)

    @classmethod
    def nesterov(cls, rate: float, alpha: float = 3.0) -> "ARGFlow":
        """Nesterov's method: α/t with tₖ = (k + α)√rate and βₖ₋₁ = μₖ h, so that β is the look-ahead.

        **Arguments:**

        - `rate`: learning rate > 0.
        - `alpha`: friction times t; 3 is Nesterov's (1983), more forgets faster.

        **Returns:** an `ARGFlow`.
        """
        check_at_start(ConstantSchedule(rate), "rate", 1.0, positive=True)
        h = rate**0.5
        return cls(alpha=OverTime(alpha), beta=LookAhead(h, alpha), h=h, t0=alpha * h)

    @classmethod
    def storm(cls, mu: float, rate: float) -> "ARGFlow":
        """Momentum that is up to date: β = μh/(1 − μ), for forces from few samples.

        With π = −h/(1 − μ) m the recursion of the momentum becomes m = f + μ (T m − T f), where T f is the
        force of the old parameters at the new points: STORM (Cutkosky and Orabona 2019). The mean over steps
        removes noise, as in any momentum, and what has changed since with the parameters is made good. The
        old force is evaluated again.

        **Arguments:**

        - `mu`: momentum factor μ in [0, 1); more averages over more steps.
        - `rate`: learning rate > 0.

        **Returns:** an `ARGFlow`.
        """
        if not 0 <= mu < 1:
            raise ValueError(f"storm: mu must lie in [0, 1), got {mu}.")
        check_at_start(ConstantSchedule(rate), "rate", 1.0, positive=True)
        return cls.momentum(mu, rate, beta=mu * rate**0.5 / (1 - mu))

    @classmethod
    def hessian_damped(cls, alpha: float = 3.0, beta: float = 1.0, h: Any = None, t0: float = 1.0) -> "ARGFlow":
        """α/t, constant β and γ = 1 + β/t: then w = 1, and the theorem asks for α ≥ 3 and 4t ≥ (α − 1)κβ.

        **Arguments:**

        - `alpha`: friction times t, at least 3.
        - `beta`: Hessian-driven damping β ≥ 0.
        - `h`: step of the discrete method; None for continuous time.
        - `t0`: time of the first step, > 0.

        **Returns:** an `ARGFlow`.
        """
        return cls(alpha=OverTime(alpha), beta=beta, gamma=OnePlusOverTime(beta), h=h, t0=t0)

    def step(self, k: Any, t: Any, beta_prev: Any = None) -> Coefficients:
        """Coefficients of step `k` at time `t`; without `beta_prev` (the first step) β counts as constant."""
        if self.h is None:
            raise ValueError("This flow has no step size: give it one, ARGFlow(h=...), to use it in a discrete method.")
        h, alpha, beta, gamma = (jnp.asarray(s(k, t), dtype=float) for s in (self.h, self.alpha, self.beta, self.gamma))
        return Coefficients(h, alpha, beta, gamma, beta if beta_prev is None else jnp.asarray(beta_prev, dtype=float))

    def at(self, t: Any) -> Moment:
        """Coefficients of the continuous flow at time `t`, with β̇ by differentiation."""
        t = jnp.asarray(t, dtype=float)
        beta, beta_dot = jax.jvp(lambda s: jnp.asarray(self.beta(jnp.nan, s), dtype=float), (t,), (jnp.ones_like(t),))
        alpha, gamma = (jnp.asarray(s(jnp.nan, t), dtype=float) for s in (self.alpha, self.gamma))
        return Moment(t, alpha, beta, gamma, beta_dot)

    def check_continuous(self, t0: float) -> None:
        """Refuse a flow whose coefficients count steps, which continuous time does not have."""
        for name in ("alpha", "beta", "gamma"):
            _check_of_time(getattr(self, name), name, t0)

    def __str__(self):
        flow = f"α={show(self.alpha)} β={show(self.beta)} γ={show(self.gamma)}"
        if self.h is None:
            return f"ARGFlow({flow})"
        first = self.step(0, self.t0)
        tuned = f"μ={first.mu:.4g} s={first.rate:.4g} hβ={first.h * first.beta:.4g}"
        return f"ARGFlow(h={show(self.h)} {flow}; first step: {tuned})"


class GradientFlow(eqx.Module):
    """The gradient flow ρ̇ = −γ grad L, of first order: no momentum, so neither friction nor Hessian damping.

    Only for continuous time; the method of steps has `ARGFlow.gradient(rate)`.

    **Arguments:**

    - `gamma`: gain γ of the gradient, a number or a function of `(k, t)` that ignores k; normally 1.
    - `t0`: first time, ≥ 0.

    **Example:** `angd.solve_flow(manifold, L, angd.GradientFlow(), rho0, t1=5.0)`
    """

    gamma: Schedule
    t0: float = eqx.field(static=True)

    def __init__(self, gamma: Any = 1.0, t0: float = 0.0):
        if not (math.isfinite(t0) and t0 >= 0):
            raise ValueError(f"t0 must be finite and ≥ 0, got {t0}.")
        self.gamma, self.t0 = as_schedule(gamma, "gamma"), float(t0)

    def __check_init__(self):
        check_at_start(self.gamma, "gamma", self.t0)

    def check_continuous(self, t0: float) -> None:
        """Refuse a gain that counts steps, which continuous time does not have."""
        _check_of_time(self.gamma, "gamma", t0)

    def __str__(self):
        return f"GradientFlow(γ={show(self.gamma)})"


def _check_of_time(schedule: Schedule, name: str, t0: float) -> None:
    check_at_start(lambda k, t: schedule(0, t), name, t0)
    values = [float(schedule(k, t0)) for k in (0, 1, 10**6)]
    if len(set(values)) > 1:
        raise ValueError(
            f"{name} depends on the step number k, which continuous time has not: make it a function of t."
        )


def _check_momentum(mu: Any) -> None:
    if is_concrete(mu) and mu < MOMENTUM_SLACK:
        raise ValueError(
            f"h * alpha = {float(1 - mu):g} exceeds 1, so momentum would change sign every step: lower h or alpha."
        )
