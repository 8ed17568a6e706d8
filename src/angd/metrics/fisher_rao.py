"""Fisher–Rao: rows ∂_θ log ρ, centred over the samples; the right-hand side is known at the samples.

With φ the old momentum at the new points, e and e′ the variation of the new and the old parameters there (centred),

    b = μφ − (h/2) φ(φ + β e′) − β (e − e′) − hγ e.

Where φ is strongly negative the quadratic term drives it to −∞ in finite time (the density reaches zero), so φ is
limited to h|φ| ≤ `limit` first.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from angd.jacobian import jacobian
from angd.metrics.base import AbstractMetric, Inverse, Keepsakes, Setting, nothing, scaled
from angd.system import AbstractSystem, Rows, row_weights


class FisherRao(AbstractMetric):
    """The metric of information geometry, for problems with `log_density(params, x)` and `variation(params, x)`.

    `correction=False` leaves the quadratic term out, as methods without momentum do (minSR, SPRING): with μ = 0 there
    is no momentum to correct, yet the formula would still subtract (h/2)φ².
    """

    limit: float | None = 0.5
    correction: bool = eqx.field(static=True, default=True)

    def __check_init__(self):
        if self.limit is not None and not self.limit > 0:
            raise ValueError(f"FisherRao: limit must be positive (or None for no limit), got {self.limit}.")

    def centre(self, setting: Setting) -> PyTree:
        return scaled(setting.c.mu, setting.memory.d)

    def system(self, setting: Setting) -> AbstractSystem:
        O = jacobian(setting.problem.log_density, setting.params, setting.samples.x)
        omega = row_weights(setting.samples.omega, O)
        return Rows(O=O, b=self._right_side(setting), omega=omega, centred=True)

    def _right_side(self, setting: Setting) -> Float[Array, "n"]:
        c, samples = setting.c, setting.samples
        phi, e = self._momentum(setting), self._force(setting, setting.params)
        old = self._force(setting, setting.memory.params) if setting.hessian else e
        kick = c.h * c.gamma * e + setting.beta_prev * (e - old)
        bend = c.h / 2 * phi * (phi + setting.beta_prev * old) if self.correction else jnp.zeros_like(phi)
        return samples.centre(c.mu * phi - bend - kick)

    def _momentum(self, setting: Setting) -> Float[Array, "n"]:
        memory, samples = setting.memory, setting.samples
        push = setting.transport.push
        phi = samples.centre(push(setting.problem.log_density, setting.params, memory.params, samples.x, memory.d))
        return phi if self.limit is None else jnp.clip(phi, -self.limit / setting.c.h, self.limit / setting.c.h)

    def _force(self, setting: Setting, params: PyTree) -> Float[Array, "n"]:
        return setting.samples.centre(jax.vmap(setting.problem.variation, (None, 0))(params, setting.samples.x))

    def remember(self, setting: Setting, system: AbstractSystem, invert: Inverse) -> Keepsakes:
        return nothing(setting)
