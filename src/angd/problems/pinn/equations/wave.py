"""The wave equation u_tt = 4 u_xx on [0, 1]², a string with its first and its fourth harmonic.

    u = sin πx cos 2πt + ½ sin 4πx cos 8πt               (Wang, Yu & Perdikaris 2022)

A string of length 1 and speed 2 with fixed ends repeats after the time 1, and one that begins at rest is even in time:
the network sees cos 2πt. Continued as an odd function of period 2 in x it is zero at the ends. The shape at the start
is built in.
"""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from angd.problems.pinn.derivatives import Field, d
from angd.problems.pinn.domains import Box
from angd.problems.pinn.networks import Mirrored, Network
from angd.problems.pinn.problem import Problem

DOMAIN = Box((0.0, 1.0), (0.0, 1.0))
SHARPEST = (8 * jnp.pi) ** 2  # u_tt of the fourth harmonic


def exact(z: Float[Array, "2"]) -> Float[Array, ""]:
    """The solution at (t, x)."""
    t, x = z
    first = jnp.sin(jnp.pi * x) * jnp.cos(2 * jnp.pi * t)
    return first + jnp.sin(4 * jnp.pi * x) * jnp.cos(8 * jnp.pi * t) / 2


def residual(u: Field, z: Float[Array, "2"]) -> Float[Array, ""]:
    """u_tt − 4 u_xx at z = (t, x), in units of the fourth harmonic's."""
    return (d(u, 0, 0)(z) - 4 * d(u, 1, 1)(z)) / SHARPEST


def swings(z: Float[Array, "2"]) -> Float[Array, "3"]:
    """(cos 2πt, cos πx, sin πx)."""
    t, x = z
    return jnp.stack([jnp.cos(2 * jnp.pi * t), jnp.cos(jnp.pi * x), jnp.sin(jnp.pi * x)])


def from_the_start(z: Float[Array, "2"], value: Float[Array, ""]) -> Float[Array, ""]:
    """A string that begins with this shape, at rest."""
    t, x = z
    shape = jnp.sin(jnp.pi * x) + jnp.sin(4 * jnp.pi * x) / 2
    return shape + (1 - jnp.cos(2 * jnp.pi * t)) * value


def wave(network: Any = None) -> Problem:
    """The problem, by default with two layers of twenty.

    **Arguments:**

    - `network`: a model in place of the default one, zero at both ends.
    """
    made = network or Mirrored(Network((20, 20), embed=swings), axis=1)
    return Problem(made, DOMAIN, residual, {}, from_the_start)


def known() -> dict[str, Any]:
    """What a `Task` needs."""
    return {"problem": wave(), "exact": exact, "coordinates": ("t", "x")}
