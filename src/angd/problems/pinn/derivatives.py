"""Derivatives of a field by forward passes: the value and all its derivatives share one set of Taylor channels.

`d(u, 0)` is ∂u/∂z₀ as a field again, `d(u, 0, 1)` is ∂²u/∂z₀∂z₁. Forward mode inside forward mode repeats equal
equations, which the compiler and the taps count once: u, u_x and u_xx together cost three channels through the network.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

Field = Callable[[Float[Array, " D"]], Float[Array, "*m"]]


def d(u: Field, *axes: int) -> Field:
    """A partial derivative of a field, as a field: `d(u, 0, 1)` is ∂²u/∂z₀∂z₁.

    **Arguments:**

    - `u`: a field, a function of one point of shape (D,) to a number or a vector.
    - `*axes`: the coordinates, one for each derivative.

    **Returns:** a field of the same shape.

    **Example:** `d(u, 0)(z) + u(z) * d(u, 1)(z)`
    """
    for axis in axes:
        u = _along(u, axis)
    return u


def _along(u: Field, axis: int) -> Field:
    def derivative(z: Float[Array, " D"]) -> Float[Array, "*m"]:
        if not 0 <= axis < z.shape[0]:
            raise ValueError(f"d: there is no coordinate {axis} in a domain of dimension {z.shape[0]}.")
        return jax.jvp(u, (z,), (jnp.zeros_like(z).at[axis].set(1.0),))[1]

    return derivative
