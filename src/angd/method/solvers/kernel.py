"""The kernel trick: δ = OᵀW^½ (W^½ O Oᵀ W^½ + λI)⁻¹ W^½ (b − O c), cheap when there are fewer rows than parameters.

Where only v is known the same N × N matrix serves by Woodbury's identity, δ = (r − ÔᵀK⁻¹Ô r)/λ with r = v − G c.
"""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from angd.flow.schedules import is_concrete
from angd.method.jacobian.symmetric import by_rows
from angd.method.solvers.base import AbstractSolver, Solution, check_damping
from angd.method.solvers.positive import Positive, positive
from angd.method.system import AbstractSystem, Rows
from angd.tree import add, combine


class Kernel(AbstractSolver):
    """The N × N form, δ = OᵀW^½ (W^½OOᵀW^½ + λI)⁻¹ W^½ (b − O c): cheap for fewer rows than parameters.

    For systems whose right-hand side is known at the samples; `Normal` picks the smaller form by itself.

    **Arguments:**

    - `damping`: λ; 1e-8 to 1e-3 for residuals in double precision, 4e-3 for wave functions in single.

    **Example:** `angd.ANGD(flow, angd.FisherRao(), angd.Kernel(4e-3))`
    """

    damping: Any = 1e-6

    def __check_init__(self):
        check_damping(self.damping, "Kernel")

    @property
    def needs_rows(self) -> bool:
        return True

    def prepare(
        self, system: AbstractSystem, state: PyTree, damping: Any, many: bool = False
    ) -> tuple[Positive, PyTree]:
        return positive(filled_kernel, system, damping, many, system.O.n_rows), state

    def solve(self, prepared: Positive, damping: Any, system: AbstractSystem, c: PyTree) -> Solution:
        return kernel_solution(prepared, damping, system, c)

    def smallest(self, prepared: Positive) -> Float[Array, ""]:
        return prepared.smallest


def filled_kernel(system: AbstractSystem, again: bool) -> tuple[Float[Array, "N N"], Float[Array, ""]]:
    """W^½ O Oᵀ W^½; a centred one has its null vectors filled, which changes no direction and keeps it regular.

    With it comes the mean square of a mean row that was taken off, for those who can form it `again` in double.

    What fills them is of the size of the kernel: beside a 1 the digits of small rows would be lost.
    """
    kernel, offset = system.products() if again else (system.kernel(), jnp.zeros(()))
    if not system.centred:
        return kernel, offset
    size = jnp.mean(jnp.diagonal(kernel))
    nulls = jnp.where(size > 0, size, 1) * system.null_vectors()
    return by_rows(kernel, lambda part, rows: part + rows(nulls) @ system.null_vectors().T), offset


def kernel_solution(prepared: Positive, damping: Any, system: AbstractSystem, c: PyTree) -> Solution:
    """The direction from the N × N factor, by the trick or by Woodbury's identity."""
    delta = _trick if isinstance(system, Rows) else _woodbury
    return Solution.of(add(c, delta(prepared, damping, system, c)))


def _trick(prepared: Positive, damping: Any, system: Any, c: PyTree) -> PyTree:
    rest = system.root * system.centre(system.b - system.push(c))
    return system.pull(_unweigh(prepared.solve(damping, rest), system.root))


def _woodbury(prepared: Positive, damping: Any, system: AbstractSystem, c: PyTree) -> PyTree:
    if is_concrete(damping) and float(damping) == 0:
        raise ValueError("With more parameters than rows the matrix is singular: give damping > 0.")
    r = combine((1.0, system.right_side()), (-1.0, system.apply(c)))
    inside = system.pull(_unweigh(prepared.solve(damping, system.root * system.push(r)), system.root))
    return combine((1 / damping, r), (-1 / damping, inside))


def _unweigh(y: Float[Array, "N"], root: Float[Array, "N"]) -> Float[Array, "N"]:
    """y/√ω, zero where a sample has no weight: `pull` multiplies by ω."""
    return jnp.where(root > 0, y / jnp.where(root > 0, root, 1.0), 0.0)
