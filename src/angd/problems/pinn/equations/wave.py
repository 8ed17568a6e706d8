"""The wave equation u_tt = 4 u_xx on [0, 1]², a string with its first and its fourth harmonic.

    u = sin πx cos 2πt + ½ sin 4πx cos 8πt               (Wang, Yu & Perdikaris 2022)

Start, velocity and the fixed ends are built into the field. Sines as activations, because waves are sums of them.
"""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from angd.problems.pinn.derivatives import Field, d
from angd.problems.pinn.domains import Box
from angd.problems.pinn.networks import Network
from angd.problems.pinn.problem import Problem

DOMAIN = Box((0.0, 1.0), (0.0, 1.0))


def exact(z: Float[Array, "2"]) -> Float[Array, ""]:
    """The solution at (t, x)."""
    t, x = z
    first = jnp.sin(jnp.pi * x) * jnp.cos(2 * jnp.pi * t)
    return first + jnp.sin(4 * jnp.pi * x) * jnp.cos(8 * jnp.pi * t) / 2


def residual(u: Field, z: Float[Array, "2"]) -> Float[Array, ""]:
    """u_tt − 4 u_xx at z = (t, x)."""
    return d(u, 0, 0)(z) - 4 * d(u, 1, 1)(z)


def from_the_start(z: Float[Array, "2"], value: Float[Array, ""]) -> Float[Array, ""]:
    """A string that begins with this shape, at rest, and has fixed ends."""
    t, x = z
    shape = jnp.sin(jnp.pi * x) + jnp.sin(4 * jnp.pi * x) / 2
    return shape + t**2 * 4 * x * (1 - x) * value


def wave(network: Any = None) -> Problem:
    """The problem, by default with two layers of sines."""
    return Problem(network or Network((28, 28), activation="sin"), DOMAIN, residual, {}, from_the_start)


def known() -> dict[str, Any]:
    """What a `Task` needs."""
    return {"problem": wave(), "exact": exact, "coordinates": ("t", "x")}
