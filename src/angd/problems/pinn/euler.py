"""The Euler equations of a gas in one dimension, in (ρ, u, p) with conservative fluxes: Toro's problem 123.

Two rarefactions run apart from x = 0.5 and leave almost a vacuum: (ρ, u, p) = (1, −2, 0.4) | (1, 2, 0.4), γ = 1.4 and
t ≤ 0.2. The gas leaves both ends faster than sound, so that there is nothing to be prescribed there; the rarefactions
reach the ends at t = 0.18. The exact solution of two rarefactions is in closed form.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from angd.problems.pinn.derivatives import Field, d
from angd.problems.pinn.domains import Box
from angd.problems.pinn.networks import Mirrored, Model, Network
from angd.problems.pinn.problem import Condition, Problem

GAMMA, MIDDLE = 1.4, 0.5
LEFT, RIGHT = (1.0, -2.0, 0.4), (1.0, 2.0, 0.4)
DOMAIN, HALF = Box((0.0, 0.2), (0.0, 1.0)), Box((0.0, 0.2), (MIDDLE, 1.0))
FIELDS, PARITY, TINY = ("ρ", "u", "p"), (1, -1, 1), 1e-10


def conserved(state: Float[Array, "3"]) -> Float[Array, "3"]:
    """(ρ, ρu, E) from (ρ, u, p)."""
    rho, u, p = state
    return jnp.stack([rho, rho * u, p / (GAMMA - 1) + 0.5 * rho * u**2])


def flux(state: Float[Array, "3"]) -> Float[Array, "3"]:
    """(ρu, ρu² + p, (E + p)u)."""
    rho, u, p = state
    energy = p / (GAMMA - 1) + 0.5 * rho * u**2
    return jnp.stack([rho * u, rho * u**2 + p, (energy + p) * u])


def residual(field: Field, z: Float[Array, "2"]) -> Float[Array, "3"]:
    """∂_t of the conserved quantities + ∂_x of their fluxes."""
    return d(lambda y: conserved(field(y)), 0)(z) + d(lambda y: flux(field(y)), 1)(z)


def initial(x: Float[Array, ""]) -> Float[Array, "3"]:
    """The state at t = 0."""
    return jnp.where(x < MIDDLE, jnp.asarray(LEFT), jnp.asarray(RIGHT))


def scale_free(field: Field, z: Float[Array, "2"]) -> Float[Array, "3"]:
    """t/T times the residual: towards the jump at t = 0 derivatives grow like 1/t, and this product does not."""
    return z[0] / DOMAIN.intervals[0][1] * residual(field, z)


def rays(z: Float[Array, "2"]) -> Float[Array, "3"]:
    """(t, x − ½, the sine of the angle that the ray from the jump to (3t, x) makes with the t axis).

    The solution depends on (x − ½)/t alone; a network that sees the angle need not invent it, nor a jump at t = 0.
    """
    x = z[1] - MIDDLE
    return jnp.stack([z[0], x, x / jnp.sqrt(x**2 + (3 * z[0]) ** 2 + TINY)])


def positive(z: Float[Array, "2"], value: Float[Array, "3"]) -> Float[Array, "3"]:
    """Density and pressure as exponentials."""
    return jnp.stack([jnp.exp(value[0]), value[1], jnp.exp(value[2])])


def euler(network: Model | None = None, weight: float = 10.0) -> Problem:
    """Problem 123 with the state at t = 0 as its only condition.

    ρ and p are even about the middle and u is odd. The default network is `Mirrored` there, so that the equations are
    asked on the right half only, sees `rays`, gives log ρ and log p, and its residual is `scale_free`. A network of
    your own gives (ρ, u, p) itself and has the plain residual.

    **Arguments:**

    - `network`: a model of (ρ, u, p) in place of the default one.
    - `weight`: of the condition, against the equation's 1.

    **Returns:** a `Problem`.
    """
    if network is None:
        small = Mirrored(Network((20, 20, 20), 3, embed=rays), axis=1, parity=PARITY, about=MIDDLE)
        return Problem(small, HALF, scale_free, _start(HALF, weight), positive)
    if isinstance(network, Network | Mirrored) and network.outputs != len(FIELDS):
        raise ValueError(f"euler: the network must have 3 outputs, ρ, u and p, got {network.outputs}.")
    domain = HALF if isinstance(network, Mirrored) else DOMAIN
    return Problem(network, domain, residual, _start(domain, weight))


def _start(domain: Box, weight: float) -> dict[str, Condition]:
    def start(field: Field, z: Float[Array, "2"]) -> Float[Array, "3"]:
        return field(z) - initial(z[1])

    return {"initial": Condition(domain.face(0, "lower"), start, weight)}


def reference(places: int = 401, t: float = 0.2) -> tuple[np.ndarray, np.ndarray]:
    """Points of an even grid at one time, and (ρ, u, p) there."""
    z = np.stack([np.full(places, t), np.linspace(0, 1, places)], axis=1)
    return z, solution(z)


def star() -> tuple[float, float, float]:
    """(ρ, u, p) between the two rarefactions."""
    (rho, u_left, p), (_, u_right, _) = LEFT, RIGHT
    sound = (GAMMA * p / rho) ** 0.5
    power = (GAMMA - 1) / (2 * GAMMA)
    p_star = p * (1 - (GAMMA - 1) / 4 * (u_right - u_left) / sound) ** (1 / power)
    return rho * (p_star / p) ** (1 / GAMMA), (u_left + u_right) / 2, p_star


def solution(z: np.ndarray) -> np.ndarray:
    """(ρ, u, p) at points (t, x): self-similar in (x − ½)/t, symmetric about the middle.

    **Arguments:**

    - `z`: points (t, x), shape (n, 2).

    **Returns:** (ρ, u, p) at the points, shape (n, 3).
    """
    t, x = z.T
    speed = np.where(t > 0, (x - MIDDLE) / np.where(t > 0, t, 1.0), np.where(x < MIDDLE, -np.inf, np.inf))
    right = np.stack(_right_half(np.abs(speed)), axis=1)
    right[:, 1] *= np.where(speed < 0, -1.0, 1.0)
    return right


def _right_half(s: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The state at speed s ≥ 0 from the middle: star, fan, or undisturbed."""
    rho, u, p = RIGHT
    sound = (GAMMA * p / rho) ** 0.5
    rho_star, u_star, p_star = star()
    tail, head = u_star + (GAMMA * p_star / rho_star) ** 0.5, u + sound
    fan = (2 - (GAMMA - 1) * (u - np.minimum(s, head)) / sound) / (GAMMA + 1)
    fan_u = 2 / (GAMMA + 1) * (-sound + (GAMMA - 1) / 2 * u + np.minimum(s, head))
    fan_rho, fan_p = rho * fan ** (2 / (GAMMA - 1)), p * fan ** (2 * GAMMA / (GAMMA - 1))
    where = [s < tail, s < head]
    return (
        np.select(where, [np.full_like(s, rho_star), fan_rho], rho),
        np.select(where, [np.full_like(s, u_star), fan_u], u),
        np.select(where, [np.full_like(s, p_star), fan_p], p),
    )
