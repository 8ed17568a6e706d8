"""Fully connected networks as plain functions of their parameters."""

from collections.abc import Callable, Iterable
from itertools import pairwise
from numbers import Integral
from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

ACTIVATIONS: dict[str, Callable[[Array], Array]] = {"tanh": jnp.tanh, "sin": jnp.sin}


@runtime_checkable
class Model(Protocol):
    """What a problem asks of a network, `Network` or one of your own: parameters, and the field at one point."""

    def init(self, key: Array, dimension: int) -> PyTree:
        """First parameters, for points with so many coordinates."""
        ...

    def __call__(self, params: PyTree, z: Float[Array, " D"]) -> Float[Array, "*m"]:
        """u(z)."""
        ...


def _widths(widths: int | Iterable[int]) -> tuple[int, ...]:
    """One layer may be given by its width alone."""
    return tuple(widths) if isinstance(widths, Iterable) else (widths,)


class Network(eqx.Module):
    """A fully connected network: z ↦ embed(z) → layers → a number or a vector.

    **Arguments:**

    - `widths`: of the hidden layers, (20, 20); one number is one layer.
    - `outputs`: components of the field; None, the default, is a scalar field.
    - `activation`: "tanh", or "sin" for fields that oscillate.
    - `embed`: maps a point (D,) to features (F,), such as `Periodic`; a function known by name or a
      module, so that the network is the same object in every step.

    **Returns:** called as `network(params, z)`, u(z); `network.init(key, dimension)` makes parameters.

    **Example:** `Network((20, 20), embed=Periodic(axis=1, period=2.0))`
    """

    widths: tuple[int, ...] = eqx.field(static=True, converter=_widths)
    outputs: int | None = eqx.field(static=True, default=None)
    activation: str = eqx.field(static=True, default="tanh")
    embed: Callable[[Array], Array] | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        if self.activation not in ACTIVATIONS:
            raise ValueError(f"Network: activation must be one of {sorted(ACTIVATIONS)}, got {self.activation!r}.")
        if not self.widths or not all(isinstance(width, Integral) and width >= 1 for width in self.widths):
            raise ValueError(f"Network: widths must be positive whole numbers, (20, 20), got {self.widths}.")
        if self.outputs is not None and self.outputs < 1:
            raise ValueError(f"Network: outputs must be None, for a scalar field, or at least 1, got {self.outputs}.")

    def init(self, key: Array, dimension: int) -> PyTree:
        """Weights of variance 1/fan-in (Glorot for tanh), biases zero."""
        features = self.features(jnp.zeros(dimension)).shape[0]
        sizes = list(pairwise([features, *self.widths, self.outputs or 1]))
        keys = jax.random.split(key, len(sizes))
        return [_layer(k, i, o, self.activation) for k, (i, o) in zip(keys, sizes, strict=True)]

    def features(self, z: Float[Array, " D"]) -> Float[Array, " F"]:
        return z if self.embed is None else self.embed(z)

    def __call__(self, params: PyTree, z: Float[Array, " D"]) -> Float[Array, "*m"]:
        y, activate = self.features(z), ACTIVATIONS[self.activation]
        for W, b in params[:-1]:
            y = activate(y @ W + b)
        W, b = params[-1]
        y = y @ W + b
        return y[0] if self.outputs is None else y


class Periodic(eqx.Module):
    """Features of a field that repeats along one coordinate.

    The coordinate z is replaced by cos 2πz/period and sin 2πz/period, behind the others.

    **Arguments:**

    - `axis`: the coordinate.
    - `period`: > 0.

    **Returns:** called with a point of shape (D,), features of shape (D + 1,).
    """

    axis: int = eqx.field(static=True)
    period: float = eqx.field(static=True)

    def __check_init__(self):
        if self.axis < 0 or not self.period > 0:
            raise ValueError(f"Periodic: it takes axis ≥ 0 and period > 0, got {self.axis} and {self.period}.")

    def __call__(self, z: Float[Array, " D"]) -> Float[Array, " F"]:
        if self.axis >= z.shape[0]:
            raise ValueError(f"Periodic: there is no coordinate {self.axis} in a domain of dimension {z.shape[0]}.")
        angle = 2 * jnp.pi / self.period * z[self.axis]
        rest = [z[i] for i in range(z.shape[0]) if i != self.axis]
        return jnp.stack([*rest, jnp.cos(angle), jnp.sin(angle)])


def _signs(parity: Any) -> tuple[int, ...] | int:
    return parity if isinstance(parity, int) else tuple(parity)


class Mirrored(eqx.Module):
    """A field with a mirror: u(z) = N(z) + s N(z̃), z̃ the image of z in a plane across one coordinate.

    One half of the domain then says everything: an equation with this symmetry needs half the points.

    **Arguments:**

    - `network`: N, a `Network`.
    - `axis`: the coordinate that is mirrored.
    - `parity`: s, −1 for an odd field, 1 for an even one, or one sign for each component.
    - `about`: where the mirror stands on that coordinate.

    **Example:** `Mirrored(Network((20, 20)), axis=1)`
    """

    network: Network
    axis: int = eqx.field(static=True)
    parity: tuple[int, ...] | int = eqx.field(static=True, default=-1, converter=_signs)
    about: float = eqx.field(static=True, default=0.0)

    def __check_init__(self):
        signs = self.parity if isinstance(self.parity, tuple) else (self.parity,)
        if not set(signs) <= {-1, 1} or (isinstance(self.parity, tuple) and len(signs) != self.network.outputs):
            raise ValueError(f"Mirrored: parity must be 1 or −1, one for each component, got {self.parity}.")

    @property
    def outputs(self) -> int | None:
        return self.network.outputs

    @property
    def embed(self) -> Callable[[Array], Array] | None:
        return self.network.embed

    def init(self, key: Array, dimension: int) -> PyTree:
        if not 0 <= self.axis < dimension:
            raise ValueError(f"Mirrored: there is no coordinate {self.axis} in a domain of dimension {dimension}.")
        return self.network.init(key, dimension)

    def __call__(self, params: PyTree, z: Float[Array, " D"]) -> Float[Array, "*m"]:
        image = z.at[self.axis].set(2 * self.about - z[self.axis])
        return self.network(params, z) + jnp.asarray(self.parity) * self.network(params, image)


def _layer(key: Array, ins: int, outs: int, activation: str) -> tuple[Array, Array]:
    if activation == "sin":
        bound = (6 / ins) ** 0.5
        return jax.random.uniform(key, (ins, outs), minval=-bound, maxval=bound), jnp.zeros(outs)
    return jax.random.normal(key, (ins, outs)) * (2 / (ins + outs)) ** 0.5, jnp.zeros(outs)
