"""Recipes of what one would use instead: Adam, gradient descent, L-BFGS, self-scaled Broyden. Imports nothing heavy."""

from dataclasses import dataclass
from typing import Any

from angd.recipes.base import INFINITE, Phase, Recipe, number, one_of
from angd.recipes.pinn import POINTS, points

HALVING = "steps in which the rate halves"
INSIDE, AT_CONDITIONS = "points inside the domain", "points of each initial or boundary condition"


@dataclass(frozen=True)
class _FirstOrder(Recipe):
    """A rate that halves every `halving` steps, and points."""

    rate: float = number(5e-3, 1e-12, 100, "learning rate at the start")
    halving: float = number(4000, 1, INFINITE, HALVING)
    momentum: float = number(0.9, 0, 0.9999, "β₁ of Adam, momentum of gradient descent")
    weight_decay: float = number(0, 0, 1, "decoupled weight decay")
    points: str = one_of("fresh", "sobol", "fixed", "adaptive", about=POINTS)
    interior: int = number(1000, 1, 1e7, INSIDE)
    condition: int = number(250, 1, 1e7, AT_CONDITIONS)

    def phases(self, task: Any, seed: int = 0) -> list[Phase]:
        return [Phase(self.optimiser(None), points(self, task, seed))]

    def optimiser(self, second: Any) -> Any:
        """Its numbers are arrays, so that a sweep compiles once."""
        import jax.numpy as jnp

        from angd.method import baselines

        numbers = (jnp.asarray(self.rate), jnp.asarray(self.halving, float), jnp.asarray(self.momentum))
        return baselines.FirstOrder(*numbers, second, jnp.asarray(self.weight_decay))


@dataclass(frozen=True)
class SGD(_FirstOrder):
    """Gradient descent with momentum; the rate halves every `halving` steps.

    **Arguments:** see `angd run burgers sgd --help`; tune `rate` first.
    """

    momentum: float = number(0.9, 0, 0.9999, "momentum")


@dataclass(frozen=True)
class Adam(_FirstOrder):
    """Adam (Kingma and Ba 2015); the rate halves every `halving` steps.

    **Arguments:** see `angd run burgers adam --help`; tune `rate` and `halving`.
    """

    momentum: float = number(0.9, 0, 0.9999, "β₁")
    second: float = number(0.999, 0, 0.999999, "β₂")

    def phases(self, task: Any, seed: int = 0) -> list[Phase]:
        import jax.numpy as jnp

        return [Phase(self.optimiser(jnp.asarray(self.second)), points(self, task, seed))]


@dataclass(frozen=True)
class SSBroyden(Recipe):
    """Self-scaled Broyden (Al-Baali and Khalfan 2005) on adaptive points that serve `keep` steps."""

    keep: int = number(500, 1, 1e9, "steps that points serve")
    interior: int = number(1000, 1, 1e7, INSIDE)
    condition: int = number(250, 1, 1e7, AT_CONDITIONS)

    def phases(self, task: Any, seed: int = 0) -> list[Phase]:
        return [Phase(self.optimiser(), self._sampler(task))]

    def optimiser(self) -> Any:
        """The quasi-Newton method."""
        from angd.method import baselines

        return baselines.SelfScaledBroyden()

    def _sampler(self, task: Any) -> Any:
        if task.samples is not None:
            return task.sampler()
        from angd.problems.pinn import Adaptive, Renewed

        return Renewed(Adaptive(**task.counts(self.interior, self.condition)), self.keep)


@dataclass(frozen=True)
class LBFGS(SSBroyden):
    """L-BFGS with a zoom line search on adaptive points that serve `keep` steps."""

    memory: int = number(50, 1, 10000, "pairs that it remembers")

    def optimiser(self) -> Any:
        from angd.method import baselines

        return baselines.lbfgs(self.memory)
