"""The Helmholtz equation Δu + k² u = q on [−1, 1]² with k = 15: three by four waves, zero at the edge.

    u = sin 3πx sin 4πy,   q = (k² − 25 π²) u

No sign is definite: k² lies between the eigenvalues of −Δ, the nearest ones one hundredth of it away. One layer of
sines of kz: a field of this equation is a sum of plane waves, which are as long as k says.
"""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from angd.problems.pinn.derivatives import Field
from angd.problems.pinn.domains import Box, Faces
from angd.problems.pinn.laplacian import laplacian
from angd.problems.pinn.networks import Network
from angd.problems.pinn.problem import Condition, Problem

K = 15.0
DOMAIN = Box((-1.0, 1.0), (-1.0, 1.0))


def exact(z: Float[Array, "2"]) -> Float[Array, ""]:
    """The solution."""
    return jnp.sin(3 * jnp.pi * z[0]) * jnp.sin(4 * jnp.pi * z[1])


def residual(u: Field, z: Float[Array, "2"]) -> Float[Array, ""]:
    """(Δu − q)/k² + u, whose terms are of the size of u."""
    return (laplacian(u)(z) - (K**2 - 25 * jnp.pi**2) * exact(z)) / K**2 + u(z)


def edge(u: Field, z: Float[Array, "2"]) -> Float[Array, ""]:
    """u = 0."""
    return u(z)


def in_waves(z: Float[Array, "2"]) -> Float[Array, "2"]:
    """kz."""
    return K * z


def helmholtz(network: Any = None, weight: float = 10.0) -> Problem:
    """The problem, by default with one layer of 64 sines.

    **Arguments:**

    - `network`: a model in place of the default one.
    - `weight`: of the edge, against the equation's 1.
    """
    faces = Faces(tuple(DOMAIN.face(axis, side) for axis in (0, 1) for side in ("lower", "upper")))
    made = network or Network((64,), activation="sin", embed=in_waves)
    return Problem(made, DOMAIN, residual, {"edge": Condition(faces, edge, weight)})


def known() -> dict[str, Any]:
    """What a `Task` needs."""
    return {"problem": helmholtz(), "exact": exact, "coordinates": ("x", "y")}
