"""Controllers that look at the direction only: they need no loss, so they serve densities as well."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import PyTree

from angd.flow.schedules import is_concrete
from angd.method.controllers.base import AbstractController, Proposal, Trial
from angd.tree import norm


class StepNorm(AbstractController):
    """Bound the length of a step: ‖h d‖² ≤ C, or in the metric h² dᵀGd ≤ C.

    Use it where losses are noisy (Monte Carlo) and one bad batch could undo many good steps. The momentum keeps the
    unbounded direction, as in SPRING (Goldshlager, Abrahamsen and Lin 2024), which bounds the Euclidean length.

    G = OᵀWO is the matrix of the sampled system, without damping and whatever the solver inverts. On Fisher–Rao
    h² dᵀGd/2 is to leading order the Kullback–Leibler divergence of a step. Codes of KFAC bound the same with K + λI,
    their damped approximation, in place of G (Ba, Grosse and Martens 2017).

    **Arguments:**

    - `C`: the bound of the squared length. 1e-3 for published FermiNet sizes, 0.05 for small ones; above the usual
      step it does nothing.
    - `in_metric`: measure the step in the metric, which no change of parameters alters. It costs one forward pass. For
      `Wasserstein` and `Hs` with s < 0, G is that of the projection, Fisher–Rao or L².

    **Example:** `angd.ANGD(flow, angd.FisherRao(), solver, angd.StepNorm(1e-2))`
    """

    C: Any
    in_metric: bool = eqx.field(static=True, default=False)

    def __check_init__(self):
        if is_concrete(self.C) and not self.C > 0:
            raise ValueError(f"StepNorm: C must be positive, got {self.C}.")

    def adjust(self, proposal: Proposal, trial: Trial, state: PyTree) -> tuple[Trial, PyTree]:
        step, bound = proposal.step(trial), jnp.sqrt(self.C)
        length = jnp.sqrt(proposal.system.square_length(step)) if self.in_metric else norm(step)
        shorter = jnp.where(length > bound, bound / length, 1.0)
        return eqx.tree_at(lambda t: t.scale, trial, trial.scale * shorter.astype(trial.scale.dtype)), state


class Restart(AbstractController):
    """Drop the momentum and step from rest where d would climb, ⟨∂L, d⟩ > 0, or where ‖d‖ is too large.

    The sign test does not depend on coordinates (O'Donoghue and Candès 2015). If the step from rest climbs too
    (Wasserstein-2 and H^s with s < 0 project in a metric that is not their own), the natural gradient of the
    projection's metric is taken instead.

    **Arguments:**

    - `above`: restart where ‖d‖ exceeds this number; None, the default, is the sign test.

    **Example:** `angd.ANGD(flow, angd.Wasserstein(), solver, angd.Restart())`
    """

    above: float | None = None

    def __check_init__(self):
        if self.above is not None and not self.above > 0:
            raise ValueError(f"Restart: above must be positive, got {self.above}.")

    def adjust(self, proposal: Proposal, trial: Trial, state: PyTree) -> tuple[Trial, PyTree]:
        if self.above is not None:
            return lax.cond(norm(trial.d) > self.above, lambda: proposal.from_rest(trial.damping), lambda: trial), state
        return lax.cond(proposal.slope(trial.d) > 0, lambda: _descend(proposal, trial), lambda: trial), state


def _descend(proposal: Proposal, trial: Trial) -> Trial:
    """From rest; and if that climbs as well, downhill."""
    rest = proposal.from_rest(trial.damping)
    return lax.cond(proposal.slope(rest.d) > 0, lambda: proposal.downhill(trial.damping), lambda: rest)
