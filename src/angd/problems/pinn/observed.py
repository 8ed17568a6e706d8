"""Residuals of measurements, and what measurements of several kinds weigh against each other."""

from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from angd.problems.pinn.domains import Data

ONE_SIGMA = 1e-3


class Misfit(eqx.Module):
    """The residual of a measurement: (what the field says − its value), over its noise where that is known.

    **Arguments:**

    - `of`: what is measured: None for the field, the number of a component, or a function `of(u, z)`.
    """

    of: Any = eqx.field(static=True, default=None)

    def __check_init__(self):
        if not (self.of is None or isinstance(self.of, int) or callable(self.of)):
            raise ValueError(f"observed: of must be the number of a component or a function of(u, z), got {self.of!r}.")

    def __call__(self, u: Callable[[Array], Array], data: Data) -> Float[Array, "*m"]:
        found = self._measured(u, data.z)
        if found.shape != data.values.shape:
            raise ValueError(
                f"observed: the field has values of shape {found.shape} at a point, but the data {data.values.shape}."
            )
        missed = found - data.values
        return missed if data.noise is None else missed / data.noise

    def _measured(self, u: Callable[[Array], Array], z: Array) -> Array:
        of = self.of
        if callable(of):
            return jnp.asarray(of(u, z))
        value = u(z)
        if of is None:
            return value
        if value.ndim == 0 or not 0 <= of < value.shape[0]:
            raise ValueError(f"observed: there is no component {of} in a field of shape {value.shape}.")
        return value[of]


def noise_weights(conditions: Mapping[str, Any]) -> dict[str, float]:
    """Weights of measurements that were given none.

    The log-likelihood of whitened residuals wants weights in proportion to the numbers of measurements. The common
    factor leaves the equation, which holds exactly, the upper hand: one σ off weighs as much as an equation that is
    missed by √`ONE_SIGMA`.

    **Arguments:** the conditions of a problem, by name.

    **Returns:** weights by name, 1 where no noise is known.
    """
    known = {
        name: data.count
        for name, condition in conditions.items()
        if isinstance(data := condition.on, Data) and data.noise is not None
    }
    return {name: ONE_SIGMA * known[name] / max(known.values()) if name in known else 1.0 for name in conditions}
