"""Unknown coefficients and functions of an inverse problem, trained beside the field.

    Problem(network, box, equation, conditions, unknowns={"nu": Coefficient(0.1, lower=0), "source": Network((10,))})

The equation then reads `equation(u, z, c)`: `c["nu"]` is a number, `c["source"]` a function of a point.
"""

import inspect
import math
import zlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from angd.problems.models import as_model
from angd.problems.pinn.networks import Model

FIELD, UNKNOWNS = "field", "unknowns"


class Coefficient(eqx.Module):
    """An unknown number, or array of numbers, in an equation.

    Bounds are kept by a change of variables: an exponential for one bound, a sigmoid for two.

    **Arguments:**

    - `first`: where training starts, a number or an array, between the bounds. The right order of magnitude is enough.
    - `lower`: the coefficient stays above it; `lower=0` keeps it positive.
    - `upper`: the coefficient stays below it.

    **Returns:** an entry of `Problem(..., unknowns={"nu": Coefficient(0.1, lower=0)})`.
    """

    first: Float[Array, "*m"] = eqx.field(converter=lambda value: jnp.asarray(value, float))
    lower: float = eqx.field(static=True, default=-math.inf)
    upper: float = eqx.field(static=True, default=math.inf)

    def __check_init__(self):
        if not self.lower < self.upper:
            raise ValueError(f"Coefficient: lower must be below upper, got {self.lower} and {self.upper}.")
        inside = (self.first > self.lower) & (self.first < self.upper)
        if not bool(jnp.all(inside & jnp.isfinite(self.first))):
            raise ValueError(
                f"Coefficient: the first value must be finite and between {self.lower} and {self.upper}, got "
                f"{self.first}."
            )

    def init(self) -> Float[Array, "*m"]:
        """The trained number that belongs to the first value."""
        if self.lower == -math.inf and self.upper == math.inf:
            return self.first
        if self.upper == math.inf:
            return jnp.log(self.first - self.lower)
        if self.lower == -math.inf:
            return jnp.log(self.upper - self.first)
        return jnp.log(self.first - self.lower) - jnp.log(self.upper - self.first)

    def value(self, trained: Float[Array, "*m"]) -> Float[Array, "*m"]:
        """The coefficient that belongs to a trained number."""
        if self.lower == -math.inf and self.upper == math.inf:
            return trained
        if self.upper == math.inf:
            return self.lower + jnp.exp(trained)
        if self.lower == -math.inf:
            return self.upper - jnp.exp(trained)
        return self.lower + (self.upper - self.lower) * jax.nn.sigmoid(trained)


Unknown = Coefficient | Model


def as_unknowns(given: Any) -> dict[str, Unknown]:
    """A dictionary of coefficients and models; other things are refused by name."""
    if not isinstance(given, Mapping):
        raise ValueError(
            f'Problem: unknowns must be a dictionary, {{"nu": Coefficient(0.1)}}, got {type(given).__name__}.'
        )
    return {name: _as_unknown(name, value) for name, value in given.items()}


def _as_unknown(name: str, value: Any) -> Unknown:
    found = value if isinstance(value, Coefficient | type) else as_model(value)
    if isinstance(found, type) or not isinstance(found, Coefficient | Model):
        kind = found.__name__ if isinstance(found, type) else type(found).__name__
        raise ValueError(
            f"Problem: the unknown {name!r} must be a Coefficient, {name}=Coefficient(0.1), or, for a function of the "
            f"point, a Network; got {kind}."
        )
    return found


def first_values(unknowns: Mapping[str, Unknown], key: Array, dimension: int) -> dict[str, PyTree]:
    """Trained numbers and parameters of all unknowns, at the start."""
    return {
        name: unknown.init()
        if isinstance(unknown, Coefficient)
        else unknown.init(jax.random.fold_in(key, zlib.crc32(name.encode())), dimension)
        for name, unknown in unknowns.items()
    }


def present(unknowns: Mapping[str, Unknown], trained: Mapping[str, PyTree]) -> dict[str, Any]:
    """c as equations read it: numbers, and functions of a point."""
    return {
        name: unknown.value(trained[name]) if isinstance(unknown, Coefficient) else partial(unknown, trained[name])
        for name, unknown in unknowns.items()
    }


def reads_unknowns(equation: Callable[..., Any]) -> bool:
    """Is it `equation(u, z, c)` rather than `equation(u, z)`?"""
    try:
        signature = inspect.signature(equation)
    except (TypeError, ValueError):
        return False
    required = [p for p in signature.parameters.values() if p.default is p.empty and p.kind in (0, 1)]
    return len(required) == 3
