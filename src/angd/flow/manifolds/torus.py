"""Functions on a Fourier grid of the torus [0, 2π)^d: points, wave numbers, multipliers."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

Shape = tuple[int, ...]


def as_shape(shape: int | Shape, most: int, owner: str) -> Shape:
    """Grid sizes as a tuple with at most `most` entries."""
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    if not 1 <= len(shape) <= most or any(isinstance(n, bool) or not isinstance(n, int) or n < 1 for n in shape):
        words = ("one", "one or two", "one to three")[most - 1]
        raise ValueError(f"{owner}: shape must be {words} positive grid sizes, got {shape}.")
    return shape


def grid(shape: Shape) -> tuple[np.ndarray, ...]:
    """Coordinates of the grid points, one array of `shape` per axis."""
    return tuple(np.meshgrid(*(2 * np.pi * np.arange(n) / n for n in shape), indexing="ij"))


def wave_numbers(shape: Shape) -> tuple[np.ndarray, ...]:
    """Wave numbers of the discrete Fourier transform, one array of `shape` per axis."""
    return tuple(np.meshgrid(*(np.fft.fftfreq(n, 1 / n) for n in shape), indexing="ij"))


def multiply(multiplier: np.ndarray, u: Array) -> Array:
    """The real part of what a Fourier multiplier makes of u."""
    return jnp.real(jnp.fft.ifftn(multiplier * jnp.fft.fftn(u))).astype(u.dtype)
