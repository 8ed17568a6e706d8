"""Viscous Burgers, u_t + u u_x = ν u_xx on [0, 1] × [−1, 1] with u = 0 at both walls, and its exact solution.

The Cole–Hopf map φ = exp(−∫u/2ν) turns the equation into the heat equation and the walls into mirrors, so with the even
reflection H of ∫h at the walls

    u(t, x) = ∫ (x − y)/t · w dy / ∫ w dy,        w = exp(−[(x − y)²/2t + H(y)]/2ν),

which Gauss–Legendre panels between the mirrors evaluate to machine precision.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from angd.problems.pinn.derivatives import Field, d
from angd.problems.pinn.domains import Box, Faces
from angd.problems.pinn.networks import Network
from angd.problems.pinn.problem import Condition, Problem

NU = 0.01 / np.pi
DOMAIN = Box((0.0, 1.0), (-1.0, 1.0))
CHUNK = 2**23  # exponentials at a time


class Initial(NamedTuple):
    """An initial value h(x), its integral from −1, and whether it may be continued with period 2."""

    h: Callable[..., Array]
    integral: Callable[..., np.ndarray]
    periodic: bool


INITIAL = {
    "-sin": Initial(lambda x: -jnp.sin(jnp.pi * x), lambda x: (np.cos(np.pi * x) + 1) / np.pi, True),
    "sin": Initial(lambda x: jnp.sin(jnp.pi * x), lambda x: -(np.cos(np.pi * x) + 1) / np.pi, True),
    "1-cos": Initial(
        lambda x: 1 - jnp.cos(2 * jnp.pi * x), lambda x: x + 1 - np.sin(2 * np.pi * x) / (2 * np.pi), False
    ),
}


def residual(u: Field, z: Float[Array, "2"]) -> Float[Array, ""]:
    """u_t + u u_x − ν u_xx at z = (t, x)."""
    return d(u, 0)(z) + u(z) * d(u, 1)(z) - NU * d(u, 1, 1)(z)


def periodic(z: Float[Array, "2"]) -> Float[Array, "3"]:
    """(t, cos πx, sin πx): features of period 2 in x."""
    return jnp.stack([z[0], jnp.cos(jnp.pi * z[1]), jnp.sin(jnp.pi * z[1])])


def wall(u: Field, z: Float[Array, "2"]) -> Float[Array, ""]:
    """u = 0."""
    return u(z)


def burgers(initial: str = "-sin", network: Network | None = None, weight: float = 10.0) -> Problem:
    """Burgers with the initial value '-sin', 'sin' or '1-cos'; conditions weigh `weight` times the equation.

    Where the solution continues with period 2 the default network does so too, and the walls need no condition.
    """
    if initial not in INITIAL:
        raise ValueError(f"burgers: initial must be one of {sorted(INITIAL)}, got {initial!r}.")
    h, _, repeats = INITIAL[initial]

    def start(u: Field, z: Float[Array, "2"]) -> Float[Array, ""]:
        return u(z) - h(z[1])

    conditions = {"initial": Condition(DOMAIN.face(0, "lower"), start, weight)}
    if not repeats or (network is not None and network.embed is not periodic):
        conditions["walls"] = Condition(Faces((DOMAIN.face(1, "lower"), DOMAIN.face(1, "upper"))), wall, weight)
    network = network or Network((24, 24, 24), embed=periodic if repeats else None)
    return Problem(network, DOMAIN, residual, conditions)


def solution(initial: str, z: np.ndarray, panel: float = 0.02, nodes: int = 16) -> np.ndarray:
    """u at points (t, x), in float64; `panel` bounds the width of the panels, which early times make narrower."""
    u = np.asarray(INITIAL[initial].h(z[:, 1]), dtype=float).copy()
    for t in np.unique(z[z[:, 0] > 0, 0]):
        y, weights = _quadrature(min(panel, 4 * np.sqrt(2 * NU * t)), nodes)
        potential = INITIAL[initial].integral(_mirrored(y))
        here = np.flatnonzero(z[:, 0] == t)
        for part in np.array_split(here, -(-here.size * y.size // CHUNK)):
            u[part] = _cole_hopf(t, z[part, 1:], y[None, :], weights[None, :], potential[None, :])
    return u


@lru_cache(maxsize=8)
def reference(initial: str, times: int = 101, places: int = 401) -> tuple[np.ndarray, np.ndarray]:
    """Points of the evaluation grid and u there."""
    t, x = np.meshgrid(np.linspace(0, 1, times), np.linspace(-1, 1, places), indexing="ij")
    z = np.stack([t.ravel(), x.ravel()], axis=1)
    return z, solution(initial, z)


def _quadrature(panel: float, nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss–Legendre panels on [−3, 3]: three mirror images, no panel across a wall."""
    at, weight = np.polynomial.legendre.leggauss(nodes)
    count = 6 * int(np.ceil(1 / panel))
    left = -3 + 6 * np.arange(count) / count
    return (left[:, None] + (at + 1) * 3 / count).ravel(), np.tile(weight * 3 / count, count)


def _mirrored(y: np.ndarray) -> np.ndarray:
    """The point of [−1, 1] that y is an image of."""
    return np.abs((y + 1) % 4 - 2) * -1 + 1


def _cole_hopf(t: float, x: np.ndarray, y: np.ndarray, weights: np.ndarray, potential: np.ndarray) -> np.ndarray:
    """x is a column, y a row of quadrature nodes."""
    exponent = -((x - y) ** 2 / (2 * t) + potential) / (2 * NU)
    w = weights * np.exp(exponent - exponent.max(axis=1, keepdims=True))
    return np.sum((x - y) / t * w, axis=1) / np.sum(w, axis=1)
