"""Kronecker-factored curvature: G is replaced, block by block, by A ⊗ S, which two small eigen-decompositions invert.

A holds the second moments of what enters a layer and S those of what is sent back to it (`blocks` says which parameters
form a block). With A = U_A Λ_A U_Aᵀ and S = U_S Λ_S U_Sᵀ, a block V of the right-hand side has the solution

    (A ⊗ S + λI)⁻¹ V = U_A [(U_Aᵀ V U_S) / (λ_A λ_Sᵀ + λ)] U_Sᵀ,

and `factored` damps the two factors instead, (A + π√λ I)⁻¹ V (S + √λ/π I)⁻¹ with π² = (tr A / dim A) / (tr S / dim S).
A and S are running averages over steps.

The inverse is that of another matrix, K = ⊕ A ⊗ S, whose blocks can be several times smaller than G. So momentum is
not solved for again: with a the momentum as the metric hands it over, f the force with its β-terms and c the origin,

    d = a + (K + λI)⁻¹ (f + λ (c − a)),

whose iteration has its eigenvalues between those of a and of c. Momentum is then the heavy ball in coordinates.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PyTree

from angd.method.jacobian import AbstractJacobian, Factored, Layout
from angd.method.jacobian.taps.views import index
from angd.method.solvers.base import AbstractSolver, Solution, check_damping
from angd.method.solvers.blocks import SHARED, Block, blocks, kronecker
from angd.method.system import AbstractSystem
from angd.tree import combine


class KFAC(AbstractSolver):
    """Kronecker factors: (A ⊗ S + λI)⁻¹ for every layer (Martens and Grosse 2015).

    A ⊗ S is the exact block of G for a single sample and a layer used once, and for layers whose cotangents do not
    depend on the sample; elsewhere activations and cotangents count as independent. Where a layer is used several
    times for one sample, `shared` says how its uses count. For densities A and S are those of the uncentred rows.

    A bias that the function adds directly to a layer's outputs, and uses nowhere else, shares the layer's block; other
    leaves without factors have exact blocks, or beyond `blocks.DENSE` entries the diagonal of G.

    **Arguments:**

    - `damping`: λ, usually between 1e-6 and 1e-2.
    - `decay`: ε of the averages, x ← ε x + (1 − ε) x_new without bias towards their zero start; 0 takes
      the present samples alone.
    - `factored`: damp A and S each, rather than their product.
    - `shared`: how R uses of one layer count (Eschenhagen et al. 2023). "expand" takes them as uncorrelated: derivative
      channels of a residual, tokens or pixels with a loss each. "reduce" averages activations and adds cotangents up
      before their products, exact for uses that are alike: electrons, pixels or tokens that one output sums over. With
      R equal uses "expand" is R times smaller than G.
    """

    damping: Any = 1e-3
    decay: Any = 0.95
    factored: bool = eqx.field(static=True, default=False)
    shared: str = eqx.field(static=True, default="expand")

    def __check_init__(self):
        check_damping(self.damping, "KFAC")
        if self.shared not in SHARED:
            raise ValueError(f"KFAC: shared must be one of {', '.join(SHARED)}, got {self.shared!r}.")
        if eqx.is_array_like(self.decay) and not 0 <= self.decay < 1:
            raise ValueError(f"KFAC: decay must lie in [0, 1), got {self.decay}.")

    @property
    def form(self) -> type[AbstractJacobian] | None:
        return Factored

    def init(self, system: AbstractSystem) -> "Averages":
        """Zeros; only the shapes of `system` are looked at."""
        shapes = jax.eval_shape(self._factors, system)
        zeros = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)
        return Averages(jnp.zeros((), jnp.int32), zeros)

    @property
    def approximate(self) -> bool:
        return True

    def prepare(
        self, system: AbstractSystem, state: "Averages", damping: Any, many: bool = False
    ) -> tuple["Inverse", "Averages"]:
        state = state.update(self._factors(system), self.decay)
        eigen = tuple(Eigen.of(A, S) for A, S in state.unbiased(self.decay))
        return Inverse(tuple(block for block, _ in blocks(system.O)), eigen, self.factored), state

    def solve(self, prepared: "Inverse", damping: Any, system: AbstractSystem, c: PyTree) -> Solution:
        return Solution.of(prepared.apply(combine((1.0, system.right_side()), (damping, c)), damping, system.O.layout))

    def _factors(self, system: AbstractSystem) -> "Factors":
        """(A, S) of every block, from the present samples."""
        return tuple(kronecker(system, list(map(SHARED[self.shared], groups))) for _, groups in blocks(system.O))


Factors = tuple[tuple[Float[Array, "_ _ _"], Float[Array, "_ _ _"]], ...]


class Averages(eqx.Module):
    """Running sums of (A, S) for every block, and how many steps they hold."""

    count: Int[Array, ""]
    factors: Factors

    def update(self, new: Factors, decay: Any) -> "Averages":
        def average(old: Array, present: Array) -> Array:
            return (decay * old + (1 - decay) * present).astype(old.dtype)

        return Averages(self.count + 1, jax.tree.map(average, self.factors, new))

    def unbiased(self, decay: Any) -> Factors:
        """The averages, as if they had not started from zero."""
        held = 1 - decay ** self.count.astype(float)
        return jax.tree.map(lambda x: x / held.astype(x.dtype), self.factors)


class Eigen(eqx.Module):
    """A ⊗ S for each b, as eigenvalues and vectors of its factors."""

    a: Float[Array, "B in"]
    U_a: Float[Array, "B in in"]
    s: Float[Array, "B out"]
    U_s: Float[Array, "B out out"]

    @classmethod
    def of(cls, A: Float[Array, "B in in"], S: Float[Array, "B out out"]) -> "Eigen":
        return cls(*_eigh(A), *_eigh(S))

    def solve(self, V: Float[Array, "B in out"], damping: Any, factored: bool) -> Float[Array, "B in out"]:
        inside = jnp.swapaxes(self.U_a, 1, 2) @ V.astype(self.a.dtype) @ self.U_s
        inside = inside / (self._split(damping) if factored else self._whole(damping))
        return (self.U_a @ inside @ jnp.swapaxes(self.U_s, 1, 2)).astype(V.dtype)

    def _whole(self, damping: Any) -> Float[Array, "B in out"]:
        return self.a[:, :, None] * self.s[:, None, :] + damping

    def _split(self, damping: Any) -> Float[Array, "B in out"]:
        """Damping of the two factors; where A is a number there is nothing to split."""
        if self.a.shape[1] == 1:
            return self._whole(damping)
        a, s, root = jnp.mean(self.a, axis=1), jnp.mean(self.s, axis=1), jnp.sqrt(jnp.asarray(damping, self.a.dtype))
        used = (a > 0) & (s > 0)
        pi = jnp.where(used, jnp.sqrt(a / jnp.where(used, s, 1)), 1)[:, None, None]
        return (self.a[:, :, None] + pi * root) * (self.s[:, None, :] + root / pi)


def _eigh(matrix: Float[Array, "B k k"]) -> tuple[Float[Array, "B k"], Float[Array, "B k k"]]:
    """Eigenvalues, those that rounding made negative set to zero, and vectors, in the widest float there is."""
    values, vectors = jnp.linalg.eigh(matrix.astype(jnp.promote_types(matrix.dtype, jnp.result_type(float))))
    return jnp.maximum(values, 0), vectors


class Inverse(eqx.Module):
    """(K + λI)⁻¹ for any λ: block by block, and 1/λ for parameters that f does not use."""

    blocks: tuple[Block, ...] = eqx.field(static=True)
    eigen: tuple[Eigen, ...]
    factored: bool = eqx.field(static=True)

    def apply(self, r: PyTree, damping: Any, layout: Layout) -> PyTree:
        r = layout.treedef.flatten_up_to(r)
        covered = _covered(self.blocks, layout)
        leaves = [_unused(leaf, inside, damping) for leaf, inside in zip(r, covered, strict=True)]
        for block, eigen in zip(self.blocks, self.eigen, strict=True):
            block.scatter(eigen.solve(block.gather(r), damping, self.factored), leaves)
        return layout.cast(layout.treedef.unflatten(leaves))


def _covered(blocks: tuple[Block, ...], layout: Layout) -> list[Bool[np.ndarray, "..."]]:
    """Which entries of each leaf lie in a block."""
    covered = [np.zeros(size, bool) for size in layout.sizes]
    for leaf, arrangement in (place for block in blocks for place in block.places):
        covered[leaf][index(arrangement)] = True
    return [inside.reshape(shape) for inside, shape in zip(covered, layout.shapes, strict=True)]


def _unused(r: Float[Array, "..."], inside: Bool[np.ndarray, "..."], damping: Any) -> Float[Array, "..."]:
    """r/λ outside of all blocks, where G = 0; r = 0 asks for no step even without damping."""
    return jnp.where(inside | (r == 0), jnp.zeros_like(r), r / damping)
