"""What networks of electrons are made of."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array


def dense(key: Array, ins: int, outs: int, size: float = 1.0) -> tuple[Array, Array]:
    """Weights and biases at the start."""
    return size * jax.random.normal(key, (ins, outs)) / np.sqrt(ins), jnp.zeros(outs)


def affine(layer: tuple[Array, Array], h: Array) -> Array:
    """h W + b."""
    W, b = layer
    return h @ W + jnp.broadcast_to(b, (*h.shape[:-1], b.shape[0]))


def residual(before: Array, after: Array) -> Array:
    """Their sum, where a layer leaves the width as it is."""
    return before + after if before.shape == after.shape else after
