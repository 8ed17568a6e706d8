"""The energy metric: L = ½ Σ ω r², and the pull-back of the flat metric of residuals, G = (∂r)*(∂r): Gauss–Newton.

    b = μ ∂_θ r(θ_{k−1}) d_{k−1} − β (r_k − r_{k−1}) − hγ r_k        (all at the new points)

There is no Riemannian correction in these variables, and β only adds to the friction.
"""

import jax
from jaxtyping import Array, Float, PyTree

from angd.jacobian import jacobian
from angd.metrics.base import AbstractMetric, Inverse, Keepsakes, Setting, nothing, scaled
from angd.system import AbstractSystem, Rows, row_weights


class Energy(AbstractMetric):
    """Gauss–Newton in function space, for problems with `residual(params, x)` (a scalar or a vector at one point)."""

    def centre(self, setting: Setting) -> PyTree:
        return scaled(setting.c.mu, setting.memory.d)

    def system(self, setting: Setting) -> AbstractSystem:
        O = jacobian(setting.problem.residual, setting.params, setting.samples.x)
        return Rows(O=O, b=self._right_side(setting).reshape(-1), omega=row_weights(setting.samples.omega, O))

    def _right_side(self, setting: Setting) -> Float[Array, "n *m"]:
        c, memory, samples = setting.c, setting.memory, setting.samples
        y = setting.transport.push(setting.problem.residual, setting.params, memory.params, samples.x, memory.d)
        r = _residuals(setting, setting.params)
        b = c.mu * y - c.h * c.gamma * r
        return b - setting.beta_prev * (r - _residuals(setting, memory.params)) if setting.hessian else b

    def remember(self, setting: Setting, system: AbstractSystem, invert: Inverse) -> Keepsakes:
        return nothing(setting)


def _residuals(setting: Setting, params: PyTree) -> Float[Array, "n *m"]:
    return jax.vmap(setting.problem.residual, (None, 0))(params, setting.samples.x)
