"""Poisson's equation −Δu = f on unit cubes of 2, 5 and 10 dimensions, with the exact solutions of the literature.

    2     sin πx sin 2πy, zero at the edge, which is built into the field
    5     Σ cos πx_i                                     (E & Yu 2018; Müller & Zeinhofer 2023)
    10    Σ x_{2k−1} x_{2k}, harmonic                    (E & Yu 2018)

For the last two u is given on all faces. Their networks have one wide layer: the solutions are sums of functions of few
directions, and such a layer is a sum of functions of one each. In five dimensions these are sines, because the
eigenfunctions of −Δ on a cube are products of them.
"""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from angd.problems.pinn.derivatives import Field
from angd.problems.pinn.domains import Box, Faces
from angd.problems.pinn.laplacian import laplacian
from angd.problems.pinn.networks import Network
from angd.problems.pinn.problem import Condition, Problem

NETWORKS = {
    2: Network((24, 24)),
    5: Network((64,), activation="sin"),
    10: Network((48,)),
}


def exact(z: Float[Array, " D"]) -> Float[Array, ""]:
    """The solution, by the number of coordinates."""
    if z.shape[0] == 2:
        return jnp.sin(jnp.pi * z[0]) * jnp.sin(2 * jnp.pi * z[1])
    if z.shape[0] == 5:
        return jnp.sum(jnp.cos(jnp.pi * z))
    return jnp.sum(z[::2] * z[1::2])


def source(z: Float[Array, " D"]) -> Float[Array, ""] | float:
    """f = −Δu."""
    return {2: 5 * jnp.pi**2, 5: jnp.pi**2}.get(z.shape[0], 0.0) * exact(z)


def residual(u: Field, z: Float[Array, " D"]) -> Float[Array, ""]:
    """Δu + f."""
    return laplacian(u)(z) + source(z)


def edge(u: Field, z: Float[Array, " D"]) -> Float[Array, ""]:
    """u is known on all faces."""
    return u(z) - exact(z)


def zero_at_the_edge(z: Float[Array, "2"], value: Float[Array, ""]) -> Float[Array, ""]:
    """A field that vanishes there."""
    x, y = z
    return 16 * x * (1 - x) * y * (1 - y) * value


def poisson(dimension: int, network: Any = None, weight: float = 100.0) -> Problem:
    """The problem.

    **Arguments:**

    - `dimension`: 2, 5 or 10.
    - `network`: a model in place of the default one.
    - `weight`: of the values on the faces, against the equation's 1.

    **Returns:** a `Problem`.
    """
    if dimension not in NETWORKS:
        raise ValueError(f"poisson: dimension must be one of {sorted(NETWORKS)}, got {dimension}.")
    box, network = Box(*[(0.0, 1.0)] * dimension), network or NETWORKS[dimension]
    if dimension == 2:
        return Problem(network, box, residual, {}, zero_at_the_edge)
    faces = Faces(tuple(box.face(axis, side) for axis in range(dimension) for side in ("lower", "upper")))
    return Problem(network, box, residual, {"edge": Condition(faces, edge, weight)})


def known(dimension: int) -> dict[str, Any]:
    """What a `Task` needs."""
    names = ("x", "y") if dimension == 2 else tuple(f"x{i}" for i in range(1, dimension + 1))
    return {"problem": poisson(dimension), "exact": exact, "coordinates": names}
