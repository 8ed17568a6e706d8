"""Solvers: how δ of (G + λI) δ = v − G c is found. Each picks the cheaper algebraic form by shape."""

from angd.solvers.base import AbstractInverse, AbstractPrepared, AbstractSolver, Solution
from angd.solvers.iterative import Iterative
from angd.solvers.kernel import Kernel
from angd.solvers.kfac import KFAC
from angd.solvers.normal import Normal
from angd.solvers.scaled import Scaled
from angd.solvers.wrappers import ProjectedMomentum, WithFallback

__all__ = [
    "KFAC",
    "AbstractInverse",
    "AbstractPrepared",
    "AbstractSolver",
    "Iterative",
    "Kernel",
    "Normal",
    "ProjectedMomentum",
    "Scaled",
    "Solution",
    "WithFallback",
]
