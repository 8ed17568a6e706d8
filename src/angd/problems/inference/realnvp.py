"""RealNVP: one half is scaled and shifted by what a network says about the other (Dinh et al. 2017)."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from angd.problems.inference.coupling import AbstractCouplingFlow, Number, check_flow


class RealNVP(AbstractCouplingFlow):
    """A normalising flow whose layers scale and shift one half of the coordinates by functions of the other.

    Every layer is a smooth map of the whole space: good for curved and skewed targets with one mode. Modes that are
    far apart stay joined by a thread: take `SplineFlow` or `Mixture` there.

    **Arguments:**

    - `dimension`: d, at least 2.
    - `layers`: how many; 4 to 8.
    - `widths`: of the hidden layers of each network.
    - `bound`: of the logarithm of a layer's scale, which keeps a step that goes wrong from overflowing.

    **Reference:** Dinh, Sohl-Dickstein and Bengio (2017).
    """

    dimension: int = eqx.field(static=True)
    layers: int = eqx.field(static=True, default=6)
    widths: tuple[int, ...] = eqx.field(static=True, default=(16,))
    bound: float = eqx.field(static=True, default=2.0)

    def __check_init__(self):
        check_flow(self)
        if not self.bound > 0:
            raise ValueError(f"RealNVP: bound must be positive, got {self.bound}.")

    @property
    def numbers(self) -> int:
        return 2

    def forward(self, numbers: Float[Array, " k"], x: Number) -> tuple[Number, Number]:
        log = self._log_scale(numbers)
        return jnp.exp(log) * x + numbers[1], log

    def backward(self, numbers: Float[Array, " k"], y: Number) -> tuple[Number, Number]:
        log = self._log_scale(numbers)
        return jnp.exp(-log) * (y - numbers[1]), log

    def _log_scale(self, numbers: Float[Array, " k"]) -> Number:
        return self.bound * jnp.tanh(numbers[0] / self.bound)
