"""Targets by name, for examples and measurements: log densities at one point, normalised."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float

from angd.problems.inference.base import DensityModel
from angd.problems.inference.judge import weighed
from angd.problems.inference.problems import ReverseKL

CENTRES, WIDTH = jnp.array([[-2.5, 0.0], [2.0, 2.0], [2.0, -2.0]]), 0.7
LOOKS = 4000  # samples that observables are measured on, always the same noise


def three_modes(x: Float[Array, "2"]) -> Float[Array, ""]:
    """Three round Gaussians of equal weight."""
    logs = -jnp.sum((x[None] - CENTRES) ** 2, axis=1) / (2 * WIDTH**2)
    return logsumexp(logs) - jnp.log(3 * 2 * jnp.pi * WIDTH**2)


def neals_funnel(x: Float[Array, " d"], width: float = 1.5) -> Float[Array, ""]:
    """x₀ ~ N(0, width²), the others N(0, exp x₀) (Neal 2003, whose width is 3)."""
    v, rest = x[0], x[1:]
    first = -0.5 * (v / width) ** 2 - jnp.log(width)
    return first - 0.5 * jnp.sum(rest**2) * jnp.exp(-v) - 0.5 * rest.shape[0] * v - x.shape[0] * jnp.log(2 * jnp.pi) / 2


def known(model: DensityModel, target: Callable[[Array], Array]) -> dict[str, Any]:
    """What a task of a normalised target says: the problem, KL and the share of samples that count."""
    problem = ReverseKL(model, target)
    key = jax.random.key(20261118)
    return {
        "problem": problem,
        "observables": {
            "KL": lambda params: -weighed(problem, params, key, LOOKS)[0],
            "effective": lambda params: weighed(problem, params, key, LOOKS)[2],
        },
    }
