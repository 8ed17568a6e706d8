"""The kernel trick: δ = OᵀW^½ (W^½ O Oᵀ W^½ + λI)⁻¹ W^½ (b − O c), cheap when there are fewer rows than parameters."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from angd.flow.tree import combine
from angd.solvers.base import AbstractSolver, Solution, check_damping, solve_positive
from angd.system import AbstractSystem, Rows


class Kernel(AbstractSolver):
    """The N × N form for systems whose right-hand side is known at the samples."""

    damping: float = eqx.field(default=1e-6)

    def __check_init__(self):
        check_damping(self.damping, "Kernel")

    def centre(self, c: PyTree, d_prev: PyTree) -> PyTree:
        return c

    def solve(self, system: AbstractSystem, c: PyTree) -> Solution:
        if not isinstance(system, Rows):
            raise ValueError(
                "Kernel needs the right-hand side at the samples, which this metric does not give: use Normal, "
                "which takes the N × N route by Woodbury's identity when there are more parameters than rows."
            )
        return solve_kernel(system, c, self.damping)


def solve_kernel(system: Rows, c: PyTree, damping: float) -> Solution:
    """The direction, through the kernel."""
    rest = system.root * system.centre(system.b - system.push(c))
    y, ok = solve_positive(kernel_with_null(system), damping, rest)
    return Solution(combine((1.0, c), (1.0, system.pull(unweigh(y, system.root)))), ok)


def kernel_with_null(system: AbstractSystem) -> Float[Array, "N N"]:
    """The kernel; a centred one gets its null vector √ω filled, which changes no direction and keeps it regular."""
    kernel = system.kernel()
    if not system.centred:
        return kernel
    unit = system.root / jnp.linalg.norm(system.root)
    return kernel + unit[:, None] * unit[None, :]


def unweigh(y: Float[Array, "N"], root: Float[Array, "N"]) -> Float[Array, "N"]:
    """y/√ω, zero where a sample has no weight: `pull` multiplies by ω."""
    return jnp.where(root > 0, y / jnp.where(root > 0, root, 1.0), 0.0)
