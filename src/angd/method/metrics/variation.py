"""Flat metrics whose problem knows the variation δL/δρ at a point (regression, and fields with a local energy).

L², `L2Pointwise`: rows ∂_θ u and b = μ ⟨∂_θ u_{k−1}, d_{k−1}⟩ − β (f − f′) − hγ f, so that kernels apply.

H^s with s < 0, `NegativeHs`: G⁻¹ = Σ_{i ≤ |s|} (−Δ)ⁱ = 𝐃*𝐃 acts on the force, so derivatives of f are needed,

    v = Σ ω [ μ (∂_θ u)ᵀ⟨∂_θ u_{k−1}, d_{k−1}⟩ − (∂_θ 𝐃u)ᵀ( β (𝐃f − 𝐃f′) + hγ 𝐃f ) ],

and integration by parts has assumed a boundary condition (periodic, or a field that vanishes or has no flux there). The
direction is the L²-projection of the flow; it need not descend: pair it with `Restart()`.
"""

from collections.abc import Callable
from typing import ClassVar

import equinox as eqx
from jaxtyping import Array, Float, PyTree

from angd.method.metrics.base import AbstractMetric, Draft, Setting, gram_like, known_loss, one_measure, require
from angd.method.metrics.pointwise import derivatives, over, pull
from angd.method.metrics.sobolev import PositiveHs
from angd.method.samples import Samples
from angd.method.system import Gram, Rows, row_weights
from angd.tree import combine, scale


class L2Pointwise(AbstractMetric):
    """L² for problems with `field(params, x)` and `variation(params, x)`, both scalars or vectors of one shape."""

    on: str = eqx.field(static=True, default="interior")

    def draft(self, setting: Setting) -> Draft:
        problem, samples = setting.problem, one_measure(setting.samples, self.on, self)
        require(problem, self, "field", "variation")
        O, f = setting.jacobian(problem.field, samples.x), over(problem.variation, setting.params, samples.x)
        omega = row_weights(samples.omega, O)
        check_shapes(O.shape, f.shape)
        b = setting.c.mu * setting.carried(problem.field, samples.x, setting.memory.d) - setting.kick * f
        if setting.hessian:
            b = b - setting.beta_prev * (f - over(problem.variation, setting.memory.params, samples.x))

        def rows(b: Float[Array, "n *m"]) -> Rows:
            return Rows(O=O, b=b.reshape(-1), omega=omega)

        return Draft(rows(b), rows(-setting.kick * f), rows(f).right_side(), known_loss(setting))


class NegativeHs(AbstractMetric):
    """H^s with s = −`order` < 0, for problems with `field` and `variation`, the latter differentiable in x."""

    order: int = eqx.field(static=True)
    on: str = eqx.field(static=True, default="interior")
    rows: ClassVar[bool] = False

    def draft(self, setting: Setting) -> Draft:
        problem, samples = setting.problem, one_measure(setting.samples, self.on, self)
        require(problem, self, "field", "variation")
        O = setting.jacobian(problem.field, samples.x)
        omega = row_weights(samples.omega, O)
        Df = over(self._deep(problem.variation), setting.params, samples.x)
        drive = setting.kick * Df
        if setting.hessian:
            Df_old = over(self._deep(problem.variation), setting.memory.params, samples.x)
            drive = drive + setting.beta_prev * (Df - Df_old)
        old = setting.carried(problem.field, samples.x, setting.memory.d).reshape(-1)
        carried = O.rmatvec((omega * old).reshape(O.shape))
        v = combine((setting.c.mu, carried), (-1.0, self._pull(setting, samples, drive)))
        system = Gram(O=O, v=v, omega=omega)
        at_rest = gram_like(system, scale(-setting.kick, self._pull(setting, samples, Df)))
        f = over(problem.variation, setting.params, samples.x).reshape(-1)
        return Draft(system, at_rest, Rows(O=O, b=f, omega=omega).right_side(), known_loss(setting))

    def _deep(self, f: Callable[..., Array]) -> Callable[..., Array]:
        """(θ, x) ↦ 𝐃f(x)."""
        return lambda params, x: derivatives(lambda y: f(params, y), x, self.order)

    def _pull(self, setting: Setting, samples: Samples, y: Float[Array, "n m"]) -> PyTree:
        """Σ ω (∂_θ 𝐃u)ᵀ y."""
        weighted = samples.omega.astype(y.dtype)[:, None] * y
        return pull(self._deep(setting.problem.field), setting.params, samples.x, weighted)


def Hs(s: int, on: str = "interior") -> AbstractMetric:
    """The Sobolev metric of any integer order: s > 0 smooths the gradient, s < 0 sharpens it, `Hs(0)` is L²."""
    if isinstance(s, bool) or not isinstance(s, int):
        raise ValueError(f"Hs: s must be an integer, got {s!r}.")
    return PositiveHs(s=s, on=on) if s >= 0 else NegativeHs(order=-s, on=on)


def check_shapes(field: tuple[int, ...], variation: tuple[int, ...]) -> None:
    """The variation of a field has the shape of the field."""
    if field != variation:
        raise ValueError(f"field has shape {field[1:]} at a point but variation has shape {variation[1:]}.")
