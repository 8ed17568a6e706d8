"""Controllers that compare losses at the samples of the step: line search, Levenberg–Marquardt, trust region."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, PyTree

from angd.method.controllers.base import AbstractController, Proposal, Trial, resolution
from angd.tree import scale


class AbstractSearch(AbstractController):
    """A controller that needs L at other parameters."""

    @property
    def compares_losses(self) -> bool:
        return True


class AbstractDamper(AbstractSearch):
    """A search that carries λ from step to step, between `floor` and `cap`; the first one is the solver's."""

    floor: eqx.AbstractVar[float]
    cap: eqx.AbstractVar[float]

    def init(self, damping: Float[Array, ""]) -> PyTree:
        return jnp.maximum(damping, self.floor)

    def damping(self, state: PyTree, damping: Float[Array, ""]) -> Float[Array, ""]:
        return state


def _at_the_floor(proposal: Proposal, trial: Trial, before: Float[Array, ""]) -> Bool[Array, ""]:
    """Was a trial refused whose promise is too small to be seen in the loss? Then more damping would not help."""
    return ~trial.accepted & (jnp.abs(proposal.predicted(proposal.step(trial))) <= resolution(before))


class LineSearch(AbstractSearch):
    """The best of the steps h d · 2⁰, 2⁻¹, …, 2^(1−points), at the samples of the step.

    If none lowers the loss, the direction from rest is searched, which is downhill, and further down, by quarters; if
    that does not help either, the step is rejected.

    **Arguments:**

    - `points`: how many steps are tried; each costs one loss. 12 reaches 1/2048.

    **Example:** `angd.ANGD(angd.ARGFlow.gradient(1.0), angd.Energy(), angd.Normal(1e-8), angd.LineSearch())`
    """

    points: int = eqx.field(static=True, default=12)

    def __check_init__(self):
        if self.points < 1:
            raise ValueError(f"LineSearch: points must be at least 1, got {self.points}.")

    def adjust(self, proposal: Proposal, trial: Trial, state: PyTree) -> tuple[Trial, PyTree]:
        before = proposal.present()
        first = self._best(proposal, trial, before, 1 / 2)

        def again() -> Trial:
            return self._best(proposal, proposal.from_rest(trial.damping), before, 1 / 4)

        return lax.cond(first.accepted, lambda: first, again), state

    def _best(self, proposal: Proposal, trial: Trial, before: Float[Array, ""], factor: float) -> Trial:
        step, grid = proposal.step(trial), factor ** jnp.arange(self.points)
        losses = lax.map(lambda s: proposal.loss(scale(s, step)), grid)
        losses = jnp.where(jnp.isfinite(losses), losses, jnp.inf)
        best = jnp.argmin(losses)
        length = (trial.scale * grid[best]).astype(trial.scale.dtype)
        return eqx.tree_at(lambda t: (t.scale, t.accepted), trial, (length, trial.ok & (losses[best] < before)))


class LevenbergMarquardt(AbstractDamper):
    """Damping by success: λ falls where actual over predicted decrease is good, and grows where it is poor.

    A step that does not lower the loss by more than rounding can is tried again with more damping and from rest, on
    the same matrix; if all tries fail, it is rejected, and λ stays raised. Where nothing is left to gain, λ stays as it
    was, for samples to come. The first λ is the solver's.

    **Arguments:**

    - `up`, `down`: factors > 1 by which λ grows and falls.
    - `good`, `poor`: ratios above and below which it does, 0 < poor < good.
    - `tries`: how often a step is tried before it is rejected.
    - `floor`, `cap`: bounds of λ.
    - `geodesic`: with 0 < geodesic (¾ is usual) each step is bent along the second derivative of the
      residuals, if that changes it by no more than this share (Transtrum and Sethna 2012); 0 is off.

    **Example:** `angd.ANGD(flow, angd.Energy(), angd.Normal(1e-3), angd.LevenbergMarquardt())`
    """

    up: float = 3.0
    down: float = 2.0
    good: float = 0.75
    poor: float = 0.25
    tries: int = 4
    floor: float = 1e-14
    cap: float = 1e6
    geodesic: float = eqx.field(static=True, default=0.0)

    def __check_init__(self):
        if not self.geodesic >= 0:
            raise ValueError(f"LevenbergMarquardt: geodesic must be ≥ 0, got {self.geodesic}.")
        if not (self.up > 1 and self.down > 1 and 0 < self.poor < self.good and self.tries >= 1):
            raise ValueError("LevenbergMarquardt: it takes up > 1, down > 1, 0 < poor < good and tries ≥ 1.")

    def adjust(self, proposal: Proposal, trial: Trial, state: PyTree) -> tuple[Trial, PyTree]:
        before = proposal.present()

        def judged(straight: Trial) -> Trial:
            trial = proposal.geodesic(straight, self.geodesic) if self.geodesic else straight
            ratio = proposal.gain(proposal.step(trial), before, proposal.step(straight))
            return eqx.tree_at(lambda t: (t.ratio, t.accepted), trial, (ratio, trial.ok & (ratio > 0)))

        def again(carry: tuple[Array, Trial]) -> tuple[Array, Trial]:
            count, last = carry
            return count + 1, judged(proposal.from_rest(last.damping * self.up))

        def unfinished(carry: tuple[Array, Trial]) -> Bool[Array, ""]:
            count, last = carry
            return ~last.accepted & (count < self.tries)

        _, found = lax.while_loop(unfinished, again, (jnp.ones((), int), judged(trial)))
        return found, jnp.where(_at_the_floor(proposal, found, before), state, self._next(found))

    def _next(self, trial: Trial) -> Float[Array, ""]:
        factor = jnp.where(trial.ratio > self.good, 1 / self.down, jnp.where(trial.ratio < self.poor, self.up, 1.0))
        return jnp.clip(trial.damping * factor, self.floor, self.cap).astype(trial.damping.dtype)


class TrustRegion(AbstractDamper):
    """The boldest of several dampings whose actual over predicted decrease of the loss meets a target.

    One factorisation serves them all. If none lowers the loss, larger dampings are tried from rest; if that fails
    too, the step is rejected and λ grows. The first λ is the solver's.

    **Arguments:**

    - `target`: the least ratio of actual to predicted decrease, in (0, 1).
    - `radii`: how many dampings are tried, at least 2; each costs one solve and one loss.
    - `decades`: they are spread geometrically over ± this many decades around the last choice.
    - `floor`, `cap`: bounds of λ.
    """

    target: float = 0.25
    radii: int = eqx.field(static=True, default=16)
    decades: float = 2.0
    floor: float = 1e-16
    cap: float = 1e6

    def __check_init__(self):
        if not (0 < self.target < 1 and self.radii >= 2 and self.decades > 0):
            raise ValueError("TrustRegion: it takes 0 < target < 1, radii ≥ 2 and decades > 0.")

    @property
    def many(self) -> bool:
        return True

    def adjust(self, proposal: Proposal, trial: Trial, state: PyTree) -> tuple[Trial, PyTree]:
        before = proposal.present()
        grid = self._grid(state, -1, trial)
        first = self._boldest(proposal.direction, proposal, grid, before)

        def again() -> Trial:
            return self._boldest(proposal.from_rest, proposal, self._grid(state, 0, trial), before)

        found = lax.cond(first.accepted, lambda: first, again)
        raised = jnp.minimum(state * 10.0**self.decades, self.cap)
        refused = jnp.where(_at_the_floor(proposal, found, before), state, raised)
        return found, jnp.where(found.accepted, found.damping, refused).astype(trial.damping.dtype)

    def _grid(self, middle: Float[Array, ""], low: float, like: Trial) -> Float[Array, "k"]:
        """Dampings from `low` to `low` + 2 times `decades` above the last choice."""
        powers = self.decades * jnp.linspace(low, low + 2, self.radii)
        return jnp.clip(middle * 10.0**powers, self.floor, self.cap).astype(like.damping.dtype)

    def _boldest(self, solve: Any, proposal: Proposal, grid: Float[Array, "k"], before: Float[Array, ""]) -> Trial:
        """The trial with the smallest λ that meets the target, or else the one with the best ratio."""

        def ratio(damping: Float[Array, ""]) -> Float[Array, ""]:
            trial = solve(damping)
            return jnp.where(trial.ok, proposal.gain(proposal.step(trial), before), -jnp.inf)

        ratios = lax.map(ratio, grid)
        meets = ratios >= self.target
        pick = jnp.where(jnp.any(meets), jnp.argmax(meets), jnp.argmax(ratios))
        trial = solve(grid[pick])
        accepted = trial.ok & (ratios[pick] > 0)
        return eqx.tree_at(lambda t: (t.ratio, t.accepted), trial, (ratios[pick], accepted))
