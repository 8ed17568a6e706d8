"""Boxes and their faces."""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float


@dataclass(frozen=True)
class Box:
    """A product of intervals, `Box((0, 1), (-1, 1))` for t and x."""

    intervals: tuple[tuple[float, float], ...]

    def __init__(self, *intervals: Any):
        object.__setattr__(self, "intervals", tuple((float(a), float(b)) for a, b in intervals))
        if not self.intervals or not all(a < b for a, b in self.intervals):
            raise ValueError(f"Box: every interval needs lower < upper, got {self.intervals}.")

    @property
    def dimension(self) -> int:
        return len(self.intervals)

    def place(self, unit: Float[Array, "n D"]) -> Float[Array, "n D"]:
        """Points of the unit cube, moved into the box."""
        lower, upper = (jnp.asarray(side)[None, :] for side in np.transpose(self.intervals))
        return lower + (upper - lower) * unit

    def face(self, axis: int, side: str) -> "Face":
        """Where coordinate `axis` is at its 'lower' or 'upper' end."""
        if side not in ("lower", "upper") or not 0 <= axis < self.dimension:
            raise ValueError(f"Box.face: there is no {side!r} side of coordinate {axis}; use 'lower' or 'upper'.")
        return Face(self, axis, side)


@dataclass(frozen=True)
class Face:
    """One side of a box."""

    box: Box
    axis: int
    side: str

    @property
    def dimension(self) -> int:
        return self.box.dimension

    def place(self, unit: Float[Array, "n D"]) -> Float[Array, "n D"]:
        """Points of the unit cube, moved onto the face."""
        value = self.box.intervals[self.axis][self.side == "upper"]
        return self.box.place(unit).at[:, self.axis].set(value)


@dataclass(frozen=True)
class Faces:
    """Several faces, each with an equal share of the points."""

    parts: tuple[Face, ...]

    @property
    def dimension(self) -> int:
        return self.parts[0].dimension

    def place(self, unit: Float[Array, "n D"]) -> Float[Array, "n D"]:
        pieces = jnp.array_split(unit, len(self.parts))
        return jnp.concatenate([part.place(piece) for part, piece in zip(self.parts, pieces, strict=True)])
