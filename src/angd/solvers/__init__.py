"""Solvers: how δ of (G + λI) δ = v − G c is found. Each picks the cheaper algebraic form by shape."""

from angd.solvers.base import AbstractSolver, Solution
from angd.solvers.iterative import Iterative
from angd.solvers.kernel import Kernel
from angd.solvers.normal import Normal
from angd.solvers.projected import ProjectedMomentum

__all__ = ["AbstractSolver", "Iterative", "Kernel", "Normal", "ProjectedMomentum", "Solution"]
