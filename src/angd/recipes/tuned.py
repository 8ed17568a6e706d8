"""What is tuned enters as arrays, so that a sweep compiles once."""

from typing import Any

import jax.numpy as jnp

import angd


def falling(value: float, decay: float) -> angd.InverseTime:
    """value / (1 + decay k)."""
    return angd.InverseTime(jnp.asarray(value), jnp.asarray(decay))


def flow_of(recipe: Any, beta: float, gamma: Any = 1.0) -> angd.ARGFlow:
    """h, α and β, each falling by itself, from `rate`, `mu` or `alpha`, and the decays of a recipe."""
    h = recipe.rate**0.5
    return angd.ARGFlow(
        alpha=falling(recipe.alpha or (1 - recipe.mu) / h, recipe.alpha_decay),
        beta=falling(beta, recipe.beta_decay) if beta else 0.0,
        gamma=gamma,
        h=falling(h, recipe.h_decay),
    )
