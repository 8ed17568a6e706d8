"""Domains that are not boxes: balls, polygons, signed distances, and what is made of them with `|`, `&` and `-`.

    domain = Box((-1, 1), (-1, 1)) - Ball((0, 0), 0.5)
    conditions = {"hole": Condition(domain.boundary.where(lambda z: jnp.linalg.norm(z) < 0.9), lambda u, z: u(z) - 1)}

A region is known by its signed distance, negative inside. Points are drawn from a pool of some ten thousand that is
made once: even ones inside, and on the boundary those that a thin shell around it is projected onto.
"""

import abc
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

POOL = 2**14  # points of a pool
SHELL = 0.02  # thickness on either side of the boundary, in units of the largest side of the box
NEWTON = 8  # projections
THINNEST = 1e-3  # share of its box that a region must fill
ROUNDING = 1e-5  # of the largest side: a point so far out still lies in a region
TRIES = 64  # batches of candidates, at most


class Region(abc.ABC):
    """A part of space, known by its signed distance.

    A subclass defines `distance(z)`, negative inside, a JAX function of one point, and `intervals`, a box around it.
    """

    intervals: tuple[tuple[float, float], ...]

    @abc.abstractmethod
    def distance(self, z: Float[Array, " D"]) -> Float[Array, ""]:
        """How far z is from the boundary, negative inside."""

    @property
    def dimension(self) -> int:
        return len(self.intervals)

    @cached_property
    def boundary(self) -> "Boundary":
        """All of its boundary, as a place for conditions."""
        return Boundary(self)

    def normal(self, z: Float[Array, " D"]) -> Float[Array, " D"]:
        """The outward unit normal, at a point of the boundary.

        **Arguments:** `z`, a point of shape (D,).

        **Returns:** shape (D,). For a flux: `lambda u, z: jax.jvp(u, (z,), (region.normal(z),))[1]`.
        """
        gradient = jax.grad(self.distance)(z)
        return gradient / jnp.linalg.norm(gradient)

    def place(self, unit: Float[Array, "n D"]) -> Float[Array, "n D"]:
        """Points of the unit cube, each as one of the region."""
        return _chosen(self._pool, unit)

    def within(self, other: Any) -> bool:
        """Do its points lie in another region?"""
        return contains(other, self._pool[:256])

    @cached_property
    def _pool(self) -> np.ndarray:
        """Even points inside."""
        found: list[np.ndarray] = []
        for candidates in _candidates(self.intervals):
            found.append(candidates[_values(self, candidates) < 0])
            if sum(map(len, found)) >= POOL:
                break
        points = np.concatenate(found)
        if len(points) < THINNEST * TRIES * POOL:
            raise ValueError(
                f"{type(self).__name__}: it fills less than {THINNEST:g} of the box {self.intervals}, or nothing at "
                "all: give a tighter box, or check that the distance is negative inside."
            )
        return points[:POOL]

    def __or__(self, other: Any) -> "Combined":
        return Combined("union", self, other)

    def __and__(self, other: Any) -> "Combined":
        return Combined("intersection", self, other)

    def __sub__(self, other: Any) -> "Combined":
        return Combined("difference", self, other)


@dataclass(frozen=True)
class Combined(Region):
    """What `a | b`, `a & b` and `a - b` make.

    **Arguments:**

    - `kind`: "union", "intersection" or "difference".
    - `first`, `second`: regions of one dimension.
    """

    kind: str
    first: Any
    second: Any

    def __post_init__(self):
        if not isinstance(self.second, Region):
            raise ValueError(f"A region is combined with another region, got {type(self.second).__name__}.")
        if self.first.dimension != self.second.dimension:
            raise ValueError(
                f"Regions of {self.first.dimension} and {self.second.dimension} dimensions cannot be combined."
            )
        _ = self._pool  # empty ones are refused at once

    @property
    def intervals(self) -> tuple[tuple[float, float], ...]:  # type: ignore[override]
        first = self.first.intervals
        pairs = list(zip(first, self.second.intervals, strict=True))
        if self.kind == "union":
            return tuple((min(a, c), max(b, d)) for (a, b), (c, d) in pairs)
        if self.kind == "intersection":
            return tuple((max(a, c), max(min(b, d), max(a, c))) for (a, b), (c, d) in pairs)
        return first

    def distance(self, z: Float[Array, " D"]) -> Float[Array, ""]:
        a, b = self.first.distance(z), self.second.distance(z)
        if self.kind == "union":
            return jnp.minimum(a, b)
        return jnp.maximum(a, b if self.kind == "intersection" else -b)


@dataclass(frozen=True)
class Boundary:
    """The boundary of a region, or a part of it: `region.boundary`, `region.boundary.where(test)`.

    **Arguments:**

    - `region`: the region.
    - `test`: a function of one point to a boolean; None is all of the boundary.
    """

    region: Region
    test: Callable[[Array], Any] | None = field(default=None)

    @property
    def dimension(self) -> int:
        return self.region.dimension

    def where(self, test: Callable[[Array], Any]) -> "Boundary":
        """The part where a test of one point holds.

        **Arguments:** `test`, `z` → boolean, a JAX function.
        """
        return Boundary(self.region, test)

    def within(self, other: Any) -> bool:
        return contains(other, self._pool[:256])

    def place(self, unit: Float[Array, "n D"]) -> Float[Array, "n D"]:
        """Points of the unit cube, each as one of the boundary."""
        return _chosen(self._pool, unit)

    @cached_property
    def _shell(self) -> np.ndarray:
        """Points near the boundary: as dense, on either side, as the boundary is large."""
        width = SHELL * max(upper - lower for lower, upper in self.region.intervals)
        box = tuple((lower - width, upper + width) for lower, upper in self.region.intervals)
        found: list[np.ndarray] = []
        for candidates in _candidates(box):
            found.append(candidates[np.abs(_values(self.region, candidates)) < width])
            if sum(map(len, found)) >= POOL:
                break
        return np.concatenate(found)[:POOL]

    @property
    def slopes(self) -> np.ndarray:
        """Lengths of the gradient of the distance near the boundary."""
        gradients = _at(jax.grad(self.region.distance), self._shell)
        return np.linalg.norm(gradients, axis=1) if len(gradients) else np.zeros(1)

    @cached_property
    def _pool(self) -> np.ndarray:
        """Points of the boundary; a part's are those of the whole that pass its test."""
        points = self._projected() if self.test is None else self._passing(self.test)
        if not len(points):
            raise ValueError("Boundary: there is no point of the boundary where the test holds.")
        return points

    def _passing(self, test: Callable[[Array], Any]) -> np.ndarray:
        points = self.region.boundary._pool
        return points[_at(lambda z: jnp.asarray(test(z), bool), points)]

    def _projected(self) -> np.ndarray:
        """The shell, moved onto the boundary; points that do not arrive are left out."""
        scale = max(upper - lower for lower, upper in self.region.intervals)

        def moved(z: Array) -> Array:
            for _ in range(NEWTON):
                value, gradient = jax.value_and_grad(self.region.distance)(z)
                z = z - value * gradient / jnp.maximum(jnp.sum(gradient**2), 1e-30)
            return z

        points = _at(moved, self._shell)
        return points[np.abs(_values(self.region, points)) < np.sqrt(np.finfo(points.dtype).eps) * scale]


def contains(region: Any, points: Any) -> bool:
    """Do all points lie in a region, up to rounding?"""
    return not outside(region, points).any()


def outside(region: Any, points: Any) -> np.ndarray:
    """Which points do not lie in a region, up to rounding."""
    scale = max(upper - lower for lower, upper in region.intervals)
    return _values(region, np.asarray(points)) > ROUNDING * scale


def _values(region: Any, points: np.ndarray) -> np.ndarray:
    return _at(region.distance, points)


def _at(f: Callable[[Array], Array], points: np.ndarray) -> np.ndarray:
    """f at every point, in numbers, even if somebody's sampler is being traced when a pool is first asked for."""
    with jax.ensure_compile_time_eval():
        return np.asarray(jax.jit(jax.vmap(f))(jnp.asarray(points)))


def _candidates(intervals: tuple[tuple[float, float], ...]) -> Iterator[np.ndarray]:
    """Batches of even points of a box, the same in every process: an additive recurrence (Roberts' sequence)."""
    lower, upper = np.transpose(intervals)
    dimension = len(lower)
    root = 2.0
    for _ in range(64):  # the root of x^(D+1) = x + 1
        root = (1 + root) ** (1 / (dimension + 1))
    steps = root ** -np.arange(1.0, dimension + 1)
    for batch in range(TRIES):
        k = np.arange(batch * POOL, (batch + 1) * POOL)[:, None]
        yield lower + (upper - lower) * ((0.5 + k * steps) % 1)


def _chosen(pool: np.ndarray, unit: Float[Array, "n D"]) -> Float[Array, "n D"]:
    index = jnp.floor(unit[:, 0] * len(pool)).astype(int).clip(0, len(pool) - 1)
    return jnp.asarray(pool)[index]
