"""Neural spline flows: one half is moved by monotone rational-quadratic splines (Durkan et al. 2019)."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from angd.problems.inference.coupling import AbstractCouplingFlow, Number, check_flow

LEAST = 1e-3  # share of the width and height of a bin, and slope at a knot


class SplineFlow(AbstractCouplingFlow):
    """A normalising flow whose layers move one half of the coordinates by splines that depend on the other.

    Within ±`bound` a spline has as many bins as one likes, outside it is the identity: it can part one mode into
    several, at about three times the cost of `RealNVP`.

    **Arguments:**

    - `dimension`: d, at least 2.
    - `layers`: how many; 2 to 6.
    - `widths`: of the hidden layers of each network.
    - `bins`: of each spline; 8 is usual.
    - `bound`: of the interval on which the splines act, in standard deviations of the noise.

    **Reference:** Durkan, Bekasov, Murray and Papamakarios (2019).
    """

    dimension: int = eqx.field(static=True)
    layers: int = eqx.field(static=True, default=4)
    widths: tuple[int, ...] = eqx.field(static=True, default=(16,))
    bins: int = eqx.field(static=True, default=8)
    bound: float = eqx.field(static=True, default=4.0)

    def __check_init__(self):
        check_flow(self)
        if self.bins < 2 or not self.bound > 0:
            raise ValueError(f"SplineFlow: it takes bins ≥ 2 and bound > 0, got {self.bins} and {self.bound}.")

    @property
    def numbers(self) -> int:
        return 3 * self.bins - 1

    def forward(self, numbers: Float[Array, " k"], x: Number) -> tuple[Number, Number]:
        knots = self._knots(numbers)
        cell = _Cell.at(knots, jnp.searchsorted(knots.x, jnp.clip(x, -self.bound, self.bound)))
        t = jnp.clip((x - cell.x) / cell.width, 0.0, 1.0)
        return self._inside(x, cell.value(t), cell.log_slope(t), x)

    def backward(self, numbers: Float[Array, " k"], y: Number) -> tuple[Number, Number]:
        knots = self._knots(numbers)
        cell = _Cell.at(knots, jnp.searchsorted(knots.y, jnp.clip(y, -self.bound, self.bound)))
        t = cell.place(jnp.clip(y, cell.y, cell.y + cell.height))
        return self._inside(y, cell.x + t * cell.width, cell.log_slope(t), y)

    def _inside(self, at: Number, moved: Number, log: Number, same: Number) -> tuple[Number, Number]:
        inside = jnp.abs(at) < self.bound
        return jnp.where(inside, moved, same), jnp.where(inside, log, 0.0)

    def _knots(self, numbers: Float[Array, " k"]) -> "_Knots":
        """Knots on both axes from −bound to bound, and slopes there: 1 at the ends, and everywhere for zeros."""
        widths, heights, slopes = jnp.split(numbers, [self.bins, 2 * self.bins])
        inner = LEAST + jax.nn.softplus(slopes + jnp.log(jnp.expm1(1 - LEAST)))
        one = jnp.ones(1, numbers.dtype)
        return _Knots(self._axis(widths), self._axis(heights), jnp.concatenate([one, inner, one]))

    def _axis(self, raw: Float[Array, " b"]) -> Float[Array, " b1"]:
        shares = LEAST + (1 - LEAST * self.bins) * jax.nn.softmax(raw)
        inner = self.bound * (2 * jnp.cumsum(shares)[:-1] - 1)
        end = jnp.full(1, self.bound, raw.dtype)
        return jnp.concatenate([-end, inner, end])


class _Knots(NamedTuple):
    x: Array
    y: Array
    slope: Array


class _Cell(NamedTuple):
    """One bin, [x, x + width] to [y, y + height], with the slopes at its ends; t in [0, 1] is the place in it."""

    x: Array
    y: Array
    width: Array
    height: Array
    left: Array
    right: Array

    @classmethod
    def at(cls, knots: _Knots, i: Array) -> "_Cell":
        i = jnp.clip(i, 1, knots.x.shape[0] - 1)
        x, y, slope = knots
        return cls(x[i - 1], y[i - 1], x[i] - x[i - 1], y[i] - y[i - 1], slope[i - 1], slope[i])

    @property
    def mean(self) -> Array:
        """The mean slope."""
        return self.height / self.width

    @property
    def excess(self) -> Array:
        return self.left + self.right - 2 * self.mean

    def value(self, t: Array) -> Array:
        top = self.height * (self.mean * t**2 + self.left * t * (1 - t))
        return self.y + top / (self.mean + self.excess * t * (1 - t))

    def log_slope(self, t: Array) -> Array:
        top = self.right * t**2 + 2 * self.mean * t * (1 - t) + self.left * (1 - t) ** 2
        return 2 * jnp.log(self.mean) + jnp.log(top) - 2 * jnp.log(self.mean + self.excess * t * (1 - t))

    def place(self, y: Array) -> Array:
        """The t that `value` takes to y: the root of a quadratic in its stable form."""
        rise = y - self.y
        a = self.height * (self.mean - self.left) + rise * self.excess
        b = self.height * self.left - rise * self.excess
        c = -self.mean * rise
        return 2 * c / (-b - jnp.sqrt(jnp.maximum(b**2 - 4 * a * c, 1e-30)))
