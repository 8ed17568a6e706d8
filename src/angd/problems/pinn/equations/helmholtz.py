"""The Helmholtz equation Δu + k² u = q on [−1, 1]² with k = 15: three by four waves, zero at the edge.

    u = sin 3πx sin 4πy,   q = (k² − 25 π²) u

No sign is definite: k² lies between the eigenvalues of −Δ, the nearest ones one hundredth of it away. The edge is built
into the field. Sines as activations, because waves are sums of them.
"""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from angd.problems.pinn.derivatives import Field
from angd.problems.pinn.domains import Box
from angd.problems.pinn.laplacian import laplacian
from angd.problems.pinn.networks import Network
from angd.problems.pinn.problem import Problem

K = 15.0
DOMAIN = Box((-1.0, 1.0), (-1.0, 1.0))


def exact(z: Float[Array, "2"]) -> Float[Array, ""]:
    """The solution."""
    return jnp.sin(3 * jnp.pi * z[0]) * jnp.sin(4 * jnp.pi * z[1])


def residual(u: Field, z: Float[Array, "2"]) -> Float[Array, ""]:
    """(Δu − q)/k² + u, whose terms are of the size of u."""
    return (laplacian(u)(z) - (K**2 - 25 * jnp.pi**2) * exact(z)) / K**2 + u(z)


def zero_at_the_edge(z: Float[Array, "2"], value: Float[Array, ""]) -> Float[Array, ""]:
    """A field that vanishes there."""
    return (1 - z[0] ** 2) * (1 - z[1] ** 2) * value


def helmholtz(network: Any = None) -> Problem:
    """The problem, by default with two layers of sines."""
    return Problem(network or Network((28, 28), activation="sin"), DOMAIN, residual, {}, zero_at_the_edge)


def known() -> dict[str, Any]:
    """What a `Task` needs."""
    return {"problem": helmholtz(), "exact": exact, "coordinates": ("x", "y")}
