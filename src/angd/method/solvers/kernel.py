"""The kernel trick: δ = OᵀW^½ (W^½ O Oᵀ W^½ + λI)⁻¹ W^½ (b − O c), cheap when there are fewer rows than parameters.

Where only v is known the same N × N matrix serves by Woodbury's identity, δ = (r − ÔᵀK⁻¹Ô r)/λ with r = v − G c.
"""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from angd.flow.schedules import is_concrete
from angd.method.solvers.base import AbstractInverse, AbstractPrepared, AbstractSolver, Solution, check_damping
from angd.method.solvers.positive import Cholesky, Matrix, Shifted, Spectrum, positive
from angd.method.system import AbstractSystem, Rows
from angd.tree import combine


class Kernel(AbstractSolver):
    """The N × N form for systems whose right-hand side is known at the samples."""

    damping: Any = 1e-6

    def __check_init__(self):
        check_damping(self.damping, "Kernel")

    @property
    def needs_rows(self) -> bool:
        return True

    def prepare(self, system: AbstractSystem, memory: PyTree, many: bool = False) -> tuple["PreparedKernel", PyTree]:
        return PreparedKernel.of(system, many), memory


class PreparedKernel(AbstractPrepared):
    """W^½ O Oᵀ W^½; a centred one has its null vector √ω filled, which changes no direction and keeps it regular."""

    kernel: Matrix | Spectrum

    @classmethod
    def of(cls, system: AbstractSystem, many: bool) -> "PreparedKernel":
        kernel = system.kernel()
        if system.centred:
            unit = system.root / jnp.linalg.norm(system.root)
            kernel = kernel + unit[:, None] * unit[None, :]
        return cls(positive(kernel, many))

    def at(self, damping: Any) -> "KernelInverse":
        return KernelInverse(self.kernel.at(damping), damping)


class KernelInverse(AbstractInverse):
    """Directions from the N × N factor."""

    factor: Cholesky | Shifted
    damping: Any

    def direction(self, system: AbstractSystem, c: PyTree) -> Solution:
        delta = self._trick(system, c) if isinstance(system, Rows) else self._woodbury(system, c)
        return Solution.of(c, delta)

    def _trick(self, system: Rows, c: PyTree) -> PyTree:
        rest = system.root * system.centre(system.b - system.push(c))
        return system.pull(_unweigh(self.factor.solve(rest), system.root))

    def _woodbury(self, system: AbstractSystem, c: PyTree) -> PyTree:
        if is_concrete(self.damping) and self.damping == 0:
            raise ValueError("With more parameters than rows the matrix is singular: give damping > 0.")
        r = combine((1.0, system.right_side()), (-1.0, system.apply(c)))
        inside = system.pull(_unweigh(self.factor.solve(system.root * system.push(r)), system.root))
        return combine((1 / self.damping, r), (-1 / self.damping, inside))


def _unweigh(y: Float[Array, "N"], root: Float[Array, "N"]) -> Float[Array, "N"]:
    """y/√ω, zero where a sample has no weight: `pull` multiplies by ω."""
    return jnp.where(root > 0, y / jnp.where(root > 0, root, 1.0), 0.0)
