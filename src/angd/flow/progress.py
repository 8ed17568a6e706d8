"""Progress of an integration, told to any Python function."""

from collections.abc import Callable
from typing import Any

import diffrax
import jax
import jax.numpy as jnp
from jaxtyping import Array


class CallbackMeter(diffrax.AbstractProgressMeter):
    """Calls `report(fraction)` each time another hundredth of the time span is done."""

    report: Callable[[float], None]

    def init(self) -> Array:
        return jnp.zeros(())

    def step(self, state: Array, progress: Any) -> Array:
        due = progress - state > 0.01
        jax.lax.cond(due, lambda p: jax.debug.callback(self._tell, p), lambda p: None, progress)
        return jnp.where(due, progress, state)

    def close(self, state: Array) -> None:
        return None

    def _tell(self, fraction) -> None:
        self.report(float(fraction))
