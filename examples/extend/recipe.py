"""A recipe of your own: natural gradients with constant damping and a line search, in one of two metrics.

    angd run heat examples/extend/recipe.py:Steady --damping 1e-4 --steps 20
    angd sweep heat examples/extend/recipe.py:Steady --steps 30

Fields are options with range and text: checked, shown by --help, tried by sweeps (`grid`). `phases` says what is done.
"""

from dataclasses import dataclass
from typing import ClassVar

import angd
from angd.recipes import number, one_of


@dataclass(frozen=True)
class Steady(angd.Recipe):
    """Constant damping and a line search."""

    grid: ClassVar = {"damping": (1e-5, 1e-4, 1e-3)}

    damping: float = number(1e-3, 1e-12, 1e6, "λ")
    metric: str = one_of("energy", "l2", about="what is small: residuals, or the change of u")
    interior: int = number(200, 1, 1e7, "points inside the domain, and a quarter of them for each condition")

    def phases(self, task, seed=0):
        from angd.problems.pinn import Uniform

        metric = angd.Energy() if self.metric == "energy" else angd.L2()
        opt = angd.ANGD(angd.ARGFlow.gradient(1.0), metric, angd.Normal(self.damping), angd.LineSearch())
        return [angd.Phase(opt, Uniform(**task.counts(self.interior, max(1, self.interior // 4))))]
