"""Fisher–Rao: rows ∂_θ log ρ, centred over the samples; the right-hand side is known at the samples.

With φ the old momentum at the new points, e and e′ the variation of the new and the old parameters there (centred),

    b = μφ − (h/2) φ(φ + β e′) − β (e − e′) − hγ e.

Where φ is strongly negative the quadratic term drives it to −∞ in finite time (the density reaches zero), so φ is
limited to h|φ| ≤ `limit` first.
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from angd.method.metrics.base import AbstractMetric, Draft, Setting, Taken, known_loss, require
from angd.method.samples import Samples
from angd.method.system import Rows, row_weights


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

    def draft(self, setting: Setting) -> Draft:
        require(setting.problem, self, "log_density", "variation")
        setting, f, f_old = setting.vetted(setting.hessian)
        O = setting.jacobian(setting.problem.log_density, setting.samples.x)
        omega = row_weights(setting.samples.omega, O)
        e, old = setting.samples.centre(f), setting.samples.centre(f_old)

        def rows(b: Float[Array, "n"]) -> Rows:
            return Rows(O=O, b=b, omega=omega, centred=True)

        b = setting.samples.centre(self._momentum(setting, e, old) - setting.kick * e)
        return Draft(rows(b), rows(-setting.kick * e), rows(e).right_side(), known_loss(setting, f), setting.samples)

    def move(self, setting: Setting, draft: Draft, taken: Taken) -> Samples:
        """Where they were, bad ones replaced."""
        return draft.note.weighed_as(setting.samples)

    def _momentum(self, setting: Setting, e: Float[Array, "n"], old: Float[Array, "n"]) -> Float[Array, "n"]:
        c, phi = setting.c, self._velocity(setting)
        bend = c.h / 2 * phi * (phi + setting.beta_prev * old) if self.correction else jnp.zeros_like(phi)
        return c.mu * phi - bend - setting.beta_prev * (e - old)

    def _velocity(self, setting: Setting) -> Float[Array, "n"]:
        samples, h = setting.samples, setting.c.h
        phi = samples.centre(setting.carried(setting.problem.log_density, samples.x, setting.memory.d))
        return phi if self.limit is None else jnp.clip(phi, -self.limit / h, self.limit / h)
