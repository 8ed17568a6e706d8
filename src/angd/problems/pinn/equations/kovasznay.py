"""Flow behind a grid: the steady Navier–Stokes equations at Reynolds number 40, Kovasznay's solution (1948).

    u = 1 − e^{λx} cos 2πy,  v = λ/2π e^{λx} sin 2πy,  p = (1 − e^{2λx})/2,   λ = Re/2 − (Re²/4 + 4π²)^½

on [−½, 1] × [−½, ½]. The grid repeats in y and has a mirror: the field is periodic by its features, u and p are even, v
is odd. The velocity is given where the flow enters, velocity and pressure where it leaves.
"""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from angd.problems.pinn.derivatives import Field, d
from angd.problems.pinn.domains import Box
from angd.problems.pinn.laplacian import laplacian
from angd.problems.pinn.networks import Mirrored, Network, Periodic
from angd.problems.pinn.problem import Condition, Problem

RE = 40.0
RATE = RE / 2 - (RE**2 / 4 + 4 * jnp.pi**2) ** 0.5
HALF = Box((-0.5, 1.0), (0.0, 0.5))
FIELDS, PARITY = ("u", "v", "p"), (1, -1, 1)


def exact(z: Float[Array, "2"]) -> Float[Array, "3"]:
    """(u, v, p) at (x, y)."""
    decay, angle = jnp.exp(RATE * z[0]), 2 * jnp.pi * z[1]
    u, v = 1 - decay * jnp.cos(angle), RATE / (2 * jnp.pi) * decay * jnp.sin(angle)
    return jnp.stack([u, v, (1 - decay**2) / 2])


def residual(f: Field, z: Float[Array, "2"], re: float = RE) -> Float[Array, "3"]:
    """Momentum along x and y, and mass, of a steady flow (u, v, p)."""
    (u, v, _), (u_x, v_x, p_x), (u_y, v_y, p_y) = f(z), d(f, 0)(z), d(f, 1)(z)
    bend = laplacian(f)(z) / re
    return jnp.stack([u * u_x + v * u_y + p_x - bend[0], u * v_x + v * v_y + p_y - bend[1], u_x + v_y])


def entrance(f: Field, z: Float[Array, "2"]) -> Float[Array, "2"]:
    """The velocity is known."""
    return (f(z) - exact(z))[:2]


def exit(f: Field, z: Float[Array, "2"]) -> Float[Array, "3"]:
    """Velocity and pressure are known."""
    return f(z) - exact(z)


def kovasznay(network: Any = None, weight: float = 10.0) -> Problem:
    """The problem on the upper half, by default with two layers of twenty.

    **Arguments:**

    - `network`: a model of (u, v, p) in place of the default one, with the mirror and the period.
    - `weight`: of both conditions, against the equation's 1.
    """
    inner = Network((20, 20), outputs=3, embed=Periodic(axis=1, period=1.0))
    made = network or Mirrored(inner, axis=1, parity=PARITY)
    conditions = {
        "entrance": Condition(HALF.face(0, "lower"), entrance, weight),
        "exit": Condition(HALF.face(0, "upper"), exit, weight),
    }
    return Problem(made, HALF, residual, conditions)


def known() -> dict[str, Any]:
    """What a `Task` needs."""
    return {"problem": kovasznay(), "exact": exact, "fields": FIELDS, "coordinates": ("x", "y")}
