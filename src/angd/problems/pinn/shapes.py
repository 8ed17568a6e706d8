"""Regions by name: balls, polygons, and whatever has a signed distance."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from angd.problems.pinn.domains import Box
from angd.problems.pinn.regions import Region

SLACK = 0.1  # how far the gradient of a signed distance may be from length 1, as a rule


@dataclass(frozen=True)
class Ball(Region):
    """A ball, a disc in the plane.

    **Arguments:**

    - `centre`: D numbers.
    - `radius`: > 0.
    """

    centre: tuple[float, ...]
    radius: float

    def __init__(self, centre: Any, radius: float):
        object.__setattr__(self, "centre", tuple(float(x) for x in np.ravel(np.asarray(centre, float))))
        object.__setattr__(self, "radius", float(radius))
        if not 0 < self.radius < np.inf or not np.all(np.isfinite(self.centre)):
            raise ValueError(f"Ball: it takes a finite centre and a radius > 0, got {self.centre} and {self.radius}.")

    @property
    def intervals(self) -> tuple[tuple[float, float], ...]:  # type: ignore[override]
        return tuple((x - self.radius, x + self.radius) for x in self.centre)

    def distance(self, z: Float[Array, " D"]) -> Float[Array, ""]:
        square = jnp.sum((z - jnp.asarray(self.centre)) ** 2)
        return jnp.sqrt(jnp.maximum(square, jnp.finfo(square.dtype).tiny)) - self.radius


@dataclass(frozen=True)
class Polygon(Region):
    """A polygon in the plane.

    **Arguments:**

    - `corners`: at least three points (x, y) in order, either way round; the last is joined to the first.
    """

    corners: tuple[tuple[float, float], ...]

    def __init__(self, corners: Any):
        corners = np.asarray(corners, float)
        if corners.ndim != 2 or corners.shape[1] != 2 or not np.all(np.isfinite(corners)):
            raise ValueError(f"Polygon: corners are points (x, y), finite ones, got shape {corners.shape}.")
        if len(corners) > 1 and np.array_equal(corners[0], corners[-1]):
            corners = corners[:-1]
        if len(corners) < 3 or _crosses_itself(corners):
            raise ValueError(
                "Polygon: it takes at least three corners in order round the outline, which must not cross or touch "
                f"itself; got {len(corners)} corners."
            )
        x, y = corners.T
        area = np.sum(x * np.roll(y, -1) - y * np.roll(x, -1))
        corners = corners if area > 0 else corners[::-1]  # counter-clockwise
        object.__setattr__(self, "corners", tuple((float(x), float(y)) for x, y in corners))

    @property
    def intervals(self) -> tuple[tuple[float, float], ...]:  # type: ignore[override]
        corners = np.asarray(self.corners)
        return tuple(zip(corners.min(0).tolist(), corners.max(0).tolist(), strict=True))

    def distance(self, z: Float[Array, " 2"]) -> Float[Array, ""]:
        a = jnp.asarray(self.corners)
        side = jnp.roll(a, -1, axis=0) - a
        to, length = z[None, :] - a, jnp.linalg.norm(side, axis=1)
        along = jnp.sum(to * side, axis=1) / length**2
        square = jnp.sum((to - jnp.clip(along, 0, 1)[:, None] * side) ** 2, axis=1)
        nearest = jnp.argmin(square)
        away = jnp.sqrt(jnp.maximum(square[nearest], jnp.finfo(square.dtype).tiny))
        outward = (to[:, 0] * side[:, 1] - to[:, 1] * side[:, 0]) / length  # smooth across a side
        beside = (along[nearest] > 0) & (along[nearest] < 1)
        return jnp.where(beside, outward[nearest], jnp.where(self._holds(z), -away, away))

    def _holds(self, z: Float[Array, " 2"]) -> Bool[Array, ""]:
        """Does a ray to the right cross the outline an odd number of times?"""
        a = jnp.asarray(self.corners)
        b = jnp.roll(a, -1, axis=0)
        crosses = (a[:, 1] <= z[1]) != (b[:, 1] <= z[1])
        rise = jnp.where(crosses, b[:, 1] - a[:, 1], 1)
        meets = a[:, 0] + (z[1] - a[:, 1]) / rise * (b[:, 0] - a[:, 0])
        return jnp.sum(crosses & (meets > z[0])) % 2 == 1


@dataclass(frozen=True)
class SignedDistance(Region):
    """A region of your own.

    **Arguments:**

    - `function`: the signed distance of one point, negative inside, a JAX function: its gradient has length 1 near the
      boundary.
    - `intervals`: a pair (lower, upper) for each coordinate, a box around the region.
    """

    function: Callable[[Array], Any]
    intervals: tuple[tuple[float, float], ...]

    def __init__(self, function: Callable[[Array], Any], intervals: Any):
        object.__setattr__(self, "function", function)
        object.__setattr__(self, "intervals", Box(*intervals).intervals)
        lengths = self.boundary.slopes
        if abs(np.median(lengths) - 1) > SLACK:
            raise ValueError(
                f"SignedDistance: the gradient of the function has length {np.median(lengths):.3g} near the boundary, "
                "and that of a distance has 1: divide the function by it."
            )

    def distance(self, z: Float[Array, " D"]) -> Float[Array, ""]:
        return jnp.asarray(self.function(z))


def _crosses_itself(corners: np.ndarray) -> bool:
    """Do two sides meet elsewhere than in the corner that they share?"""
    count = len(corners)
    sides = [(corners[i], corners[(i + 1) % count]) for i in range(count)]
    if any(np.array_equal(a, b) for a, b in sides):
        return True
    apart = [(i, j) for i, j in combinations(range(count), 2) if (j - i) % count not in (1, count - 1)]
    return any(_meet(*sides[i], *sides[j]) for i, j in apart)


def _meet(a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray) -> bool:
    def turn(p: np.ndarray, q: np.ndarray, r: np.ndarray) -> float:
        return float(np.sign((q[0] - p[0]) * (r[1] - p[1]) - (q[1] - p[1]) * (r[0] - p[0])))

    return turn(a, b, c) * turn(a, b, d) <= 0 and turn(c, d, a) * turn(c, d, b) <= 0
