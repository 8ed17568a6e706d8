"""Where terms of a loss live: boxes, their faces, and given points with data."""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from angd.problems.pinn.regions import Region, contains

PROBES = 256  # points by which it is seen whether a place lies in a domain


@dataclass(frozen=True)
class Box(Region):
    """A product of intervals. `box - Ball((0, 0), 0.5)` is one with a hole.

    **Arguments:**

    - `*intervals`: a pair (lower, upper) for each coordinate, both finite.

    **Example:** `Box((0, 1), (-1, 1))` for t and x
    """

    intervals: tuple[tuple[float, float], ...]

    def __init__(self, *intervals: Any):
        try:
            pairs = tuple((float(a), float(b)) for a, b in intervals)
        except TypeError:
            raise ValueError(f"Box takes pairs, `Box((0, 1), (-1, 1))`, got {intervals}.") from None
        if not pairs or not all(-np.inf < a < b < np.inf for a, b in pairs):
            raise ValueError(f"Box: every interval needs lower < upper, both finite, got {pairs}.")
        object.__setattr__(self, "intervals", pairs)

    def distance(self, z: Float[Array, " D"]) -> Float[Array, ""]:
        lower, upper = (jnp.asarray(side) for side in np.transpose(self.intervals))
        past = jnp.abs(z - (lower + upper) / 2) - (upper - lower) / 2
        square = jnp.sum(jnp.maximum(past, 0) ** 2)
        away = jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1)), 0)
        return away + jnp.minimum(jnp.max(past), 0)

    def place(self, unit: Float[Array, "n D"]) -> Float[Array, "n D"]:
        """Points of the unit cube, moved into the box."""
        lower, upper = (jnp.asarray(side)[None, :] for side in np.transpose(self.intervals))
        return lower + (upper - lower) * unit

    def within(self, other: Region) -> bool:
        """Is this box a part of the other region?"""
        if not isinstance(other, Box):
            return contains(other, _probes(self))
        pairs = zip(self.intervals, other.intervals, strict=True)
        return all(c <= a and b <= d for (a, b), (c, d) in pairs)

    def face(self, axis: int, side: str) -> "Face":
        """Where coordinate `axis` is at its 'lower' or 'upper' end."""
        if side not in ("lower", "upper") or not 0 <= axis < self.dimension:
            raise ValueError(f"Box.face: there is no {side!r} side of coordinate {axis}; use 'lower' or 'upper'.")
        return Face(self, axis, side)


@dataclass(frozen=True)
class Face:
    """One side of a box; `box.face(axis, side)` makes it.

    **Arguments:**

    - `box`: the `Box`.
    - `axis`: the coordinate that is constant there.
    - `side`: "lower" or "upper".
    """

    box: Box
    axis: int
    side: str

    @property
    def dimension(self) -> int:
        return self.box.dimension

    def within(self, other: Region) -> bool:
        return self.box.within(other) if isinstance(other, Box) else contains(other, _probes(self))

    def place(self, unit: Float[Array, "n D"]) -> Float[Array, "n D"]:
        """Points of the unit cube, moved onto the face."""
        value = self.box.intervals[self.axis][self.side == "upper"]
        return self.box.place(unit).at[:, self.axis].set(value)


@dataclass(frozen=True)
class Faces:
    """Several faces, each with an equal share of the points.

    **Arguments:**

    - `parts`: a sequence of at least one `Face`.

    **Example:** `Faces((box.face(1, "lower"), box.face(1, "upper")))`
    """

    parts: tuple[Face, ...]

    def __post_init__(self):
        object.__setattr__(self, "parts", tuple(self.parts))
        if not self.parts:
            raise ValueError("Faces: at least one face is needed.")

    @property
    def dimension(self) -> int:
        return self.parts[0].dimension

    def within(self, other: Region) -> bool:
        return all(part.within(other) for part in self.parts)

    def place(self, unit: Float[Array, "n D"]) -> Float[Array, "n D"]:
        pieces = jnp.array_split(unit, len(self.parts))
        return jnp.concatenate([part.place(piece) for part, piece in zip(self.parts, pieces, strict=True)])


class Data(eqx.Module):
    """Given points with measured values; asked for fewer than all, it gives some from every part of the list.

    **Arguments:**

    - `z`: the points, shape (N, D).
    - `values`: one for each point, shape (N,) or (N, m) as the field has them.
    - `noise`: their standard deviation, a number or an array that broadcasts to the shape of the values. Optional.
    """

    z: Float[Array, "N D"]
    values: Float[Array, "N *m"]
    noise: Float[Array, "N *m"] | None

    def __init__(self, z: Any, values: Any, noise: Any = None):
        self.z, self.values = jnp.asarray(z, float), jnp.asarray(values, float)
        if self.z.ndim != 2 or not len(self.z) or self.values.shape[:1] != self.z.shape[:1]:
            raise ValueError(
                f"Data: points of shape (N, dimension) with N values are needed, got {self.z.shape} and "
                f"{self.values.shape}."
            )
        if not bool(jnp.all(jnp.isfinite(self.z)) & jnp.all(jnp.isfinite(self.values))):
            raise ValueError("Data: every point and every value must be finite.")
        self.noise = None if noise is None else _noise_of(self.values, noise)

    @property
    def dimension(self) -> int:
        return self.z.shape[1]

    @property
    def count(self) -> int:
        """How many there are."""
        return self.z.shape[0]

    def within(self, other: Region) -> bool:
        """Up to rounding: 0.2 in single precision lies above 0.2."""
        z = np.asarray(self.z)
        if not isinstance(other, Box):
            return contains(other, z)
        lower, upper = np.transpose(other.intervals)
        slack = 4 * np.finfo(z.dtype).eps * np.maximum(np.abs(lower), np.abs(upper))
        return bool(np.all((z >= (lower - slack)[None, :]) & (z <= (upper + slack)[None, :])))

    def place(self, unit: Float[Array, "n D"]) -> "Data":
        n, total = unit.shape[0], self.z.shape[0]
        chosen = jnp.floor((jnp.arange(n) + unit[:, 0]) * total / n).astype(int).clip(0, total - 1)
        return jax.tree.map(lambda leaf: leaf[chosen], self)


def _probes(place: Any) -> Array:
    """A few points of a place."""
    return place.place(jnp.asarray(np.random.default_rng(0).random((PROBES, place.dimension))))


def _noise_of(values: Array, noise: Any) -> Array:
    """One standard deviation for each value."""
    try:
        found = jnp.broadcast_to(jnp.asarray(noise, float), values.shape)
    except (TypeError, ValueError):
        raise ValueError(
            f"Data: noise must be a number or an array that broadcasts to the values' shape {values.shape}, got one of "
            f"shape {jnp.shape(noise)}."
        ) from None
    if not bool(jnp.all((found > 0) & jnp.isfinite(found))):
        raise ValueError("Data: noise is a standard deviation, so it must be positive and finite.")
    return found
