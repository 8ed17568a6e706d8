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
from angd.problems.pinn.networks import Mirrored, Model, Network, Periodic
from angd.problems.pinn.problem import Condition, Problem

NU = 0.01 / np.pi
DOMAIN, HALF = Box((0.0, 1.0), (-1.0, 1.0)), Box((0.0, 1.0), (0.0, 1.0))
PAPER = (20, 50, 80, 80, 50, 20)  # widths of the paper's network
PERIODIC = Periodic(axis=1, period=2.0)
Values = np.ndarray
CHUNK = 2**23  # exponentials at a time


class Initial(NamedTuple):
    """An initial value h(x), its integral from −1, and whether it is odd, so that it may be continued with period 2."""

    h: Callable[..., Array]
    integral: Callable[..., np.ndarray]
    odd: bool


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


def wall(u: Field, z: Float[Array, "2"]) -> Float[Array, ""]:
    """u = 0."""
    return u(z)


def burgers(initial: str = "-sin", network: Model | None = None, weight: float = 10.0) -> Problem:
    """Burgers with the initial value '-sin', 'sin' or '1-cos'; conditions weigh `weight` times the equation.

    An odd initial value keeps the solution odd and of period 2, and so is the default network for it; then the walls
    need no condition. With a network that is `Mirrored` in x the equation is asked on [0, 1] × [0, 1] only.

    **Arguments:**

    - `initial`: "-sin", "sin" or "1-cos", the initial value.
    - `network`: a model in place of the default one.
    - `weight`: of every condition, against the equation's 1.

    **Returns:** a `Problem`.
    """
    if initial not in INITIAL:
        raise ValueError(f"burgers: initial must be one of {sorted(INITIAL)}, got {initial!r}.")
    h, _, odd = INITIAL[initial]
    network = network or small(initial)
    mirrored = isinstance(network, Mirrored)
    if mirrored and not odd:
        raise ValueError(f"burgers: the solution for {initial!r} has no mirror; give a Network, not a Mirrored one.")
    domain = HALF if mirrored else DOMAIN

    def start(u: Field, z: Float[Array, "2"]) -> Float[Array, ""]:
        return u(z) - h(z[1])

    conditions = {"initial": Condition(domain.face(0, "lower"), start, weight)}
    if getattr(network, "embed", None) != PERIODIC:
        sides = [domain.face(1, "upper")] if mirrored else [domain.face(1, side) for side in ("lower", "upper")]
        conditions["walls"] = Condition(Faces(tuple(sides)), wall, weight)
    return Problem(network, domain, residual, conditions)


def small(initial: str) -> Network | Mirrored:
    """A small network that is accurate: odd and periodic where the solution is."""
    if INITIAL[initial].odd:
        return Mirrored(Network((20, 20, 20), embed=PERIODIC), axis=1)
    return Network((24, 24, 24))


def solution(initial: str, z: np.ndarray, panel: float = 0.02, nodes: int = 16, nu: float = NU) -> np.ndarray:
    """u at points (t, x), in float64; `panel` bounds the width of the panels, which early times make narrower.

    **Arguments:**

    - `initial`: "-sin", "sin" or "1-cos".
    - `z`: points (t, x), shape (n, 2).
    - `panel`: the largest width of a panel of the quadrature; early times make panels narrower.
    - `nodes`: Gauss–Legendre nodes of a panel.
    - `nu`: the viscosity.

    **Returns:** u at the points, shape (n,), in float64.
    """
    u = np.asarray(INITIAL[initial].h(z[:, 1]), dtype=float).copy()
    for t in np.unique(z[z[:, 0] > 0, 0]):
        y, weights = _quadrature(min(panel, 4 * np.sqrt(2 * nu * t)), nodes)
        potential = INITIAL[initial].integral(_mirrored(y))
        here = np.flatnonzero(z[:, 0] == t)
        for part in np.array_split(here, -(-here.size * y.size // CHUNK)):
            u[part] = _cole_hopf(t, z[part, 1:], y[None, :], weights[None, :], potential[None, :], nu)
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


def _cole_hopf(
    t: float, x: np.ndarray, y: np.ndarray, weights: np.ndarray, potential: np.ndarray, nu: float
) -> np.ndarray:
    """x is a column, y a row of quadrature nodes."""
    exponent = -((x - y) ** 2 / (2 * t) + potential) / (2 * nu)
    w = weights * np.exp(exponent - exponent.max(axis=1, keepdims=True))
    return np.sum((x - y) / t * w, axis=1) / np.sum(w, axis=1)
