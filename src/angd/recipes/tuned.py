"""What is tuned enters as arrays, so that a sweep compiles once."""

import jax.numpy as jnp

import angd


def falling(value: float, decay: float) -> angd.InverseTime:
    """value / (1 + decay k)."""
    return angd.InverseTime(jnp.asarray(value), jnp.asarray(decay))
