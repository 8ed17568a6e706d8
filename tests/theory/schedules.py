"""Schedules as modules, so that the cases of a test differ in numbers only and are compiled once."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp

import angd
from angd.flow.schedules import OnePlusOverTime


class Decaying(eqx.Module):
    """`value / (1 + rate t)`."""

    value: Any
    rate: Any = 0.0

    def __call__(self, k, t):
        return self.value / (1 + self.rate * t)


class Wave(eqx.Module):
    """`1 + height sin t`."""

    height: Any = 0.0

    def __call__(self, k, t):
        return 1 + self.height * jnp.sin(t)


def theorem_flow(alpha: float, beta: float, compensated: bool) -> angd.ARGFlow:
    """α/t, constant β, and γ = 1 + β/t or γ = 1."""
    gain = OnePlusOverTime(beta if compensated else 0.0)
    return angd.ARGFlow(alpha=angd.OverTime(alpha), beta=beta, gamma=gain)
