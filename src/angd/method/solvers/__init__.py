"""Solvers: how δ of (G + λI) δ = v − G c is found. Each picks the cheaper algebraic form by shape."""

from angd.method.solvers.base import AbstractSolver, Solution
from angd.method.solvers.iterative import Iterative
from angd.method.solvers.kernel import Kernel
from angd.method.solvers.kfac import KFAC
from angd.method.solvers.normal import Normal
from angd.method.solvers.scaled import Scaled
from angd.method.solvers.wrappers import ProjectedMomentum, WithFallback

__all__ = [
    "KFAC",
    "AbstractSolver",
    "Iterative",
    "Kernel",
    "Normal",
    "ProjectedMomentum",
    "Scaled",
    "Solution",
    "WithFallback",
]
