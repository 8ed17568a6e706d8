"""Wasserstein-2: samples are particles that move with the flow, and the model follows them.

    V_k = μ V_{k−1} − β_{k−1} (∇f_k − ∇f_{k−1} along the particle) − hγ ∇f_k(x_k),
    v_k = Σ_i ω_i ∂_θ ⟨∇_x log ρ_θ(x_i), V_i⟩,        x̃ = x_k + h V_k,

∂_θ meeting log ρ_θ only, neither x, nor V, nor the law of the samples. If a Markov chain moves the walkers between two
steps, the velocities are fitted to a field and read where the walkers are now. The model is projected in L²(ρ) of
∂_t log ρ, another metric than the flow's: the direction need not descend, pair it with `Restart()`.
"""

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PyTree

from angd.method.metrics.base import AbstractMetric, Draft, Invert, Setting, Taken, gram_like, known_loss, require
from angd.method.metrics.pointwise import forces, pull
from angd.method.metrics.refit import AbstractRefit, AffineRefit
from angd.method.samples import Samples
from angd.method.system import Gram, Rows, row_weights
from angd.tree import combine, scale, where, zeros_like


class Kept(eqx.Module):
    """Where the particles went, with which velocity, and the force they felt before: x̃, V, ∇f."""

    x: PyTree
    V: PyTree
    F: PyTree


class _Kicked(eqx.Module):
    """The samples, fit for this step, their velocities, with and without momentum, and the force."""

    samples: Samples
    V: PyTree
    V_rest: PyTree
    F: PyTree


class Wasserstein(AbstractMetric):
    """The metric of optimal transport, for problems with `log_density(params, x)` and `variation(params, x)`.

    `step` returns the moved samples. `refit` says how velocities are carried over when other samples come back; None
    leaves them on their particles, for flows without a Markov chain. `clip` bounds each coordinate of ∇f; velocities
    with a coordinate beyond `reset` lose that coordinate.
    """

    refit: AbstractRefit | None = AffineRefit()
    clip: float | None = None
    reset: float | None = None
    rows: ClassVar[bool] = False

    def __check_init__(self):
        for name in ("clip", "reset"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"Wasserstein: {name} must be positive (or None), got {value}.")

    def start(self, problem: Any, params: PyTree, samples: Samples) -> Kept:
        zero = zeros_like(samples.x)
        return Kept(samples.x, zero, zero)

    def draft(self, setting: Setting) -> Draft:
        require(setting.problem, self, "log_density", "variation")
        check_points(setting.samples.x, self)
        setting, f, _ = setting.vetted()
        F = field_force(setting, setting.params, setting.samples.x, self.clip)
        rest = scale(-setting.kick, F)
        V = self._limited(combine((1.0, rest), (1.0, self._carried(setting, F))))
        O, omega = score(setting)
        system = Gram(O=O, v=transported(setting, V), omega=omega, centred=True)
        at_rest = gram_like(system, transported(setting, rest))
        return Draft(system, at_rest, *slope_and_loss(setting, system, f), _Kicked(setting.samples, V, rest, F))

    def remember(self, setting: Setting, draft: Draft, taken: Taken, invert: Invert) -> Kept:
        V = where(taken.restarted, draft.note.V_rest, draft.note.V)
        return Kept(self.move(setting, draft, taken).x, V, draft.note.F)

    def move(self, setting: Setting, draft: Draft, taken: Taken) -> Samples:
        V = where(taken.restarted, draft.note.V_rest, draft.note.V)
        before = draft.note.samples.weighed_as(setting.samples)
        return eqx.tree_at(lambda samples: samples.x, before, combine((1.0, before.x), (taken.stride, V)))

    def _carried(self, setting: Setting, F: PyTree) -> PyTree:
        """μV − βΔ of the old particles, at the present ones."""
        kept: Kept = setting.memory.kept
        old = scale(setting.c.mu, kept.V)
        if setting.hessian:
            here = F if self.refit is None else field_force(setting, setting.params, kept.x, self.clip)
            old = combine((1.0, old), (-setting.beta_prev, here), (setting.beta_prev, kept.F))
        return old if self.refit is None else self._refitted(setting, self.refit, kept.x, old)

    def _refitted(self, setting: Setting, refit: AbstractRefit, x_old: PyTree, V: PyTree) -> PyTree:
        """V where the walkers are now; where they were left, V itself."""
        samples = setting.samples
        x, x_old, V_old = (_matrix(tree) for tree in (samples.x, x_old, V))
        new = lax.cond(jnp.all(x == x_old), lambda: V_old, lambda: refit(x_old, V_old, samples.omega, x))
        return jax.vmap(ravel_pytree(jax.tree.map(lambda leaf: leaf[0], samples.x))[1])(new)

    def _limited(self, V: PyTree) -> PyTree:
        reset = self.reset
        return V if reset is None else jax.tree.map(lambda leaf: jnp.where(jnp.abs(leaf) > reset, 0.0, leaf), V)


class ParametricWasserstein(AbstractMetric):
    """Wasserstein-2 with the momentum kept in the parameters: no velocities, so a Markov chain may do what it likes.

    The force is transported as in `Wasserstein`; momentum is that of the scores (with `CurrentJVP`, of coordinates):
    cheap and not the flow's.
    """

    clip: float | None = None
    rows: ClassVar[bool] = False

    def draft(self, setting: Setting) -> Draft:
        if setting.hessian:
            raise ValueError(
                "ParametricWasserstein has no velocities for beta to act on: take beta=0 or Wasserstein()."
            )
        require(setting.problem, self, "log_density", "variation")
        check_points(setting.samples.x, self)
        setting, f, _ = setting.vetted()
        F = field_force(setting, setting.params, setting.samples.x, self.clip)
        O, omega = score(setting)
        rest = transported(setting, scale(-setting.kick, F))
        old = setting.carried(setting.problem.log_density, setting.samples.x, setting.memory.d)
        carried = Rows(O=O, b=setting.c.mu * old, omega=omega, centred=True).right_side()
        system = Gram(O=O, v=combine((1.0, rest), (1.0, carried)), omega=omega, centred=True)
        return Draft(system, gram_like(system, rest), *slope_and_loss(setting, system, f), setting.samples)

    def move(self, setting: Setting, draft: Draft, taken: Taken) -> Samples:
        """Where they were, bad ones replaced."""
        return draft.note.weighed_as(setting.samples)


def score(setting: Setting) -> tuple[Any, Array]:
    """∂_θ log ρ at the samples, with a weight per row."""
    O = setting.jacobian(setting.problem.log_density, setting.samples.x)
    return O, row_weights(setting.samples.omega, O)


def field_force(setting: Setting, params: PyTree, xs: PyTree, clip: float | None) -> PyTree:
    """∇_x f at the points, each coordinate within ±clip."""
    F = forces(setting.problem, params, xs)
    return F if clip is None else jax.tree.map(lambda leaf: jnp.clip(leaf, -clip, clip), F)


def transported(setting: Setting, V: PyTree) -> PyTree:
    """Σ ω ∂_θ ⟨∇_x log ρ_θ(x), V⟩ with x and V fixed."""

    def along(params: PyTree, sample: tuple[PyTree, PyTree]) -> Float[Array, ""]:
        x, V = sample
        return jax.jvp(lambda y: setting.problem.log_density(params, y), (x,), (V,))[1]

    return pull(along, setting.params, (setting.samples.x, V), setting.samples.omega)


def slope_and_loss(setting: Setting, system: Gram, f: Float[Array, "n"]) -> tuple[PyTree, Float[Array, ""] | None]:
    """∂_θ L = E[(f − E f) ∂_θ log ρ], and L where it is known."""
    gradient = Rows(O=system.O, b=setting.samples.centre(f), omega=system.omega, centred=True).right_side()
    return gradient, known_loss(setting, f)


def check_points(x: PyTree, metric: AbstractMetric) -> None:
    """Only points of a continuous space can be moved."""
    if not all(jnp.issubdtype(jnp.result_type(leaf), jnp.floating) for leaf in jax.tree.leaves(x)):
        raise ValueError(f"{type(metric).__name__} moves samples, so their coordinates must be floating-point numbers.")


def _matrix(tree: PyTree) -> Float[Array, "n D"]:
    return jax.vmap(lambda leaf: ravel_pytree(leaf)[0])(tree)
