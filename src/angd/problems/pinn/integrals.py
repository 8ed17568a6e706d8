"""Conditions on integrals: a mean value, a mass that is conserved.

Condition(Integral(box), lambda u, nodes: nodes.mean(u) - 1, 10.0)
Condition(Integral(box, over=(1,)), lambda u, nodes: nodes.integral(u) - mass, 10.0)      at every time z[0]
"""

from collections.abc import Callable, Iterable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from angd.problems.pinn.domains import Box


class Nodes(eqx.Module):
    """Points with the weights of a quadrature: what the equation of a condition on an `Integral` reads.

    **Attributes:**

    - `z`: the points, shape (N, D).
    - `weights`: shape (N,); their sum is the volume.
    """

    z: Float[Array, "*n N D"]
    weights: Float[Array, "*n N"]

    def integral(self, u: Callable[[Array], Array]) -> Float[Array, "*m"]:
        """∫ u, a number or a vector.

        **Arguments:** `u`, a function of one point: the field, a derivative, `lambda y: u(y) ** 2`.
        """
        return jnp.tensordot(self.weights, jax.vmap(u)(self.z), 1)

    def mean(self, u: Callable[[Array], Array]) -> Float[Array, "*m"]:
        """The mean of u.

        **Arguments:** `u`, a function of one point.
        """
        return self.integral(u) / jnp.sum(self.weights)


class Integral(eqx.Module):
    """A place for conditions on integrals over a box, or over some of its coordinates at every value of the others.

    The equation of such a condition is `equation(u, nodes)` with `nodes.integral(f)` and `nodes.mean(f)`, by
    Gauss–Legendre quadrature.

    **Arguments:**

    - `domain`: a `Box`.
    - `over`: the coordinates that are integrated over; all of them by default.
    - `nodes`: points along each of them; 12 integrate a smooth field to rounding, a shock wants more.

    **Example:** `Condition(Integral(box), lambda u, nodes: nodes.mean(u) - 1.0, 10.0)`
    """

    domain: Box = eqx.field(static=True)
    over: tuple[int, ...] = eqx.field(static=True)
    nodes: int = eqx.field(static=True)

    def __init__(self, domain: Any, over: Iterable[int] | None = None, nodes: int = 12):
        if not isinstance(domain, Box):
            raise ValueError(f"Integral: the domain must be a Box, got a {type(domain).__name__}.")
        axes = tuple(range(domain.dimension)) if over is None else tuple(over)
        if not axes or len(set(axes)) < len(axes) or not all(0 <= axis < domain.dimension for axis in axes):
            raise ValueError(f"Integral: over must be different coordinates below {domain.dimension}, got {axes}.")
        if not nodes >= 1:
            raise ValueError(f"Integral: nodes must be at least 1, got {nodes}.")
        self.domain, self.over, self.nodes = domain, axes, nodes

    @property
    def dimension(self) -> int:
        return self.domain.dimension

    @property
    def count(self) -> int | None:
        """How many different ones there are: 1, or as many as one likes."""
        return 1 if len(self.over) == self.dimension else None

    def within(self, other: Any) -> bool:
        return self.domain.within(other)

    def place(self, unit: Float[Array, "n D"]) -> Nodes:
        """Points of the unit cube, each as nodes with its values of the coordinates that are not integrated over."""
        at, weight = np.polynomial.legendre.leggauss(self.nodes)
        grids = np.meshgrid(*[(at + 1) / 2] * len(self.over), indexing="ij")
        shares = np.meshgrid(*[weight / 2] * len(self.over), indexing="ij")
        volume = np.prod([np.ptp(self.domain.intervals[axis]) for axis in self.over])
        weights = jnp.asarray(volume * np.prod(shares, axis=0).ravel())
        n, N = unit.shape[0], weights.shape[0]
        many = jnp.broadcast_to(unit[:, None], (n, N, self.dimension))
        for axis, part in zip(self.over, grids, strict=True):
            many = many.at[..., axis].set(jnp.asarray(part.ravel())[None])
        z = self.domain.place(many.reshape(-1, self.dimension)).reshape(n, N, self.dimension)
        return Nodes(z, jnp.broadcast_to(weights, (n, N)))
