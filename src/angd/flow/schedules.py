"""Schedules: how h, α, β and γ depend on the step k and on the time t = t₀ + Σ h.

A schedule is any function `(k, t) -> value`, or `k -> value` as optax's are. A plain number is the constant schedule;
`InverseTime` and `OverTime` are the two decays that the method uses: `x / (1 + ε k)` for step sizes and `a / t` for
Nesterov's damping. They are objects rather than closures, so that two flows which differ in numbers only are compiled
once.
"""

import inspect
import math
from collections.abc import Callable
from numbers import Real
from typing import Any

import equinox as eqx
from jax.core import Tracer

Schedule = Callable[[Any, Any], Any]
Number = Any  # a float or a scalar array


class ConstantSchedule(eqx.Module):
    """The same value at every step."""

    value: Number

    def __call__(self, k, t):
        return self.value

    def __str__(self):
        return f"{self.value:g}"


class InverseTime(eqx.Module):
    """`value / (1 + decay k)`, the usual decay of a step size.

    **Arguments:**

    - `value`: at the first step.
    - `decay`: ε ≥ 0; 1e-4 for 10⁵ steps (SPRING), 1e-3 for 10⁴.

    **Returns:** called as `(k, t)`, a number.
    """

    value: Number
    decay: Number

    def __check_init__(self):
        if is_concrete(self.decay) and not self.decay >= 0:
            raise ValueError(f"InverseTime: decay must be ≥ 0, got {self.decay}.")

    def __call__(self, k, t):
        return self.value / (1 + self.decay * k)

    def __str__(self):
        return f"{self.value:g}/(1+{self.decay:g}k)"


class OfStep(eqx.Module):
    """A function of the step k alone, such as an optax schedule."""

    function: Callable[[Any], Any]

    def __call__(self, k, t):
        return self.function(k)

    def __str__(self):
        return "f(k)"


class Reciprocal(eqx.Module):
    """One over a schedule."""

    schedule: Any

    def __call__(self, k, t):
        return 1 / self.schedule(k, t)

    def __str__(self):
        return f"1/({show(self.schedule)})"


class Times(eqx.Module):
    """A multiple of a schedule."""

    factor: Number
    schedule: Any

    def __call__(self, k, t):
        return self.factor * self.schedule(k, t)

    def __str__(self):
        return f"{self.factor:g}·{show(self.schedule)}"


class OverTime(eqx.Module):
    """`value / t`: vanishing damping, for which the O(1/t²) rate is proved.

    **Arguments:**

    - `value`: α of α/t; 3 is Nesterov's, and the least that the theorem allows.

    **Returns:** called as `(k, t)`, a number.
    """

    value: Number

    def __call__(self, k, t):
        return self.value / t

    def __str__(self):
        return f"{self.value:g}/t"


class OnePlusOverTime(eqx.Module):
    """`1 + value / t`: the gain γ for which a constant β = `value` leaves w = 1 in the theorem."""

    value: Number

    def __call__(self, k, t):
        return 1 + self.value / t

    def __str__(self):
        return f"1+{self.value:g}/t"


class LookAhead(eqx.Module):
    """β = h (1 − hα/(t + h)), i.e. βₖ₋₁ = μₖ h for friction α/t: the Hessian damping that is Nesterov's look-ahead."""

    h: Number
    alpha: Number

    def __call__(self, k, t):
        return self.h * (1 - self.h * self.alpha / (t + self.h))

    def __str__(self):
        return f"{self.h:g}(1-{self.h * self.alpha:g}/(t+{self.h:g}))"


def show(schedule: Schedule) -> str:
    """How a schedule is printed."""
    return str(schedule) if isinstance(schedule, eqx.Module) else "f(k,t)"


def is_concrete(x: Any) -> bool:
    """Whether `x` is a number that can be looked at now (not a tracer)."""
    return isinstance(x, Real) or (eqx.is_array(x) and not isinstance(x, Tracer))


def as_schedule(value: Any, name: str) -> Schedule:
    """A number becomes a constant schedule, a function of `(k, t)` or of `k` a schedule; anything else is refused."""
    if callable(value):
        return _of_two(value, name)
    if isinstance(value, bool) or not (isinstance(value, Real) or eqx.is_array(value)):
        raise ValueError(f"{name} must be a number or a function (k, t) -> number, got {value!r}.")
    return ConstantSchedule(value)


def _of_two(function: Callable[..., Any], name: str) -> Schedule:
    """A function of (k, t) as it is, one of k alone with t ignored."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # some compiled functions have no signature
        return function
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return function
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    required = sum(p.default is p.empty for p in positional)
    if not positional or required > 2:
        raise ValueError(f"{name} must be a function of (k, t) or of k alone, got one of {required} arguments.")
    return function if len(positional) > 1 else OfStep(function)


def check_at_start(schedule: Schedule, name: str, t0: float, *, positive: bool = False) -> None:
    """Refuse a schedule whose value at the first step is out of range, in one sentence."""
    try:
        value = schedule(0, t0)
    except ZeroDivisionError:
        value = math.inf
    if not is_concrete(value):
        return
    bound = "> 0" if positive else "≥ 0"
    if not math.isfinite(value) or value < 0 or (positive and value == 0):
        at = "" if isinstance(schedule, ConstantSchedule) else f" at the start (k = 0, t = {t0:g})"
        hint = "; a schedule a/t needs t0 > 0" if math.isinf(value) and t0 == 0 else ""
        raise ValueError(f"{name} must be finite and {bound}, got {float(value):g}{at}{hint}.")
