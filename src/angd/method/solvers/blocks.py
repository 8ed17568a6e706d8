"""From layer factors to blocks of parameters: which entries share a block, and its two Kronecker factors.

With ∂f_c/∂W = Σ_t a_t ⊗ g_t, weights ω and R uses t, the block of G = OᵀWO that belongs to W is replaced by A ⊗ S,

    A = Σ_i ω_i (1/R) Σ_t a_t a_tᵀ / Σ_i ω_i,        S = Σ_i ω_i Σ_c Σ_t g_t g_tᵀ     (expand),

or, where the uses of a sample are `reduced` to one first, a = (1/R) Σ_t a_t and g = Σ_t g_t, by the same with R = 1.
A bias that is added to the outputs of W joins it, a_t ↦ [a_t; 1] (or [a_t; 0] where it is not added). A leaf without
factors, or with uses that overlap, is one exact block, A = 1 and S its part of G, up to `DENSE` entries; beyond that
the diagonal of G. The parts of a stacked Jacobian count as further samples.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from angd.method.jacobian import AbstractJacobian, Centred, Factored, Split, Stacked
from angd.method.jacobian.leaves import rows
from angd.method.jacobian.taps import Group, Leaf
from angd.method.jacobian.taps.report import WHOLE
from angd.method.jacobian.taps.views import Arrangement, disjoint, index, transposed
from angd.method.system import AbstractSystem

# The largest exact block of a leaf without factors.
DENSE = WHOLE


@dataclass(frozen=True)
class Block:
    """Entries of the parameters as matrices (B, in, out): numbers and arrangements of leaves, stacked along `in`."""

    places: tuple[tuple[int, Arrangement], ...]

    def gather(self, leaves: Sequence[Array]) -> Float[Array, "B in out"]:
        return jnp.concatenate([arrangement(leaves[leaf]) for leaf, arrangement in self.places], axis=1)

    def scatter(self, D: Float[Array, "B in out"], leaves: list[Array]) -> None:
        """Add D to the leaves, in place of the list."""
        stops = np.cumsum([index(arrangement).shape[1] for _, arrangement in self.places])
        for (leaf, arrangement), part in zip(self.places, jnp.split(D, stops[:-1], axis=1), strict=True):
            leaves[leaf] = leaves[leaf] + arrangement.transpose(part)


class Matrix(NamedTuple):
    """One arrangement of a leaf, and its factors in each part of the Jacobian (None where it is not used)."""

    leaf: int
    arrangement: Arrangement
    groups: list[Group | None]


def blocks(O: AbstractJacobian) -> list[tuple[Block, list[Group | None]]]:
    """All blocks, each with its factors in every part; entries in no block are used nowhere."""
    parts = _parts(O)
    matrices = [matrix for leaf in range(len(O.layout.shapes)) for matrix in _matrices(leaf, parts)]
    biases = [_biases(matrix, parts) for matrix in matrices]
    taken = {leaf for each in biases for leaf, _ in each}
    return [
        (Block(((matrix.leaf, matrix.arrangement), *joined)), [_join(group, joined) for group in matrix.groups])
        for matrix, joined in zip(matrices, biases, strict=True)
        if matrix.leaf not in taken
    ]


def kronecker(
    system: AbstractSystem, groups: list[Group | None]
) -> tuple[Float[Array, "B in in"], Float[Array, "B out out"]]:
    """A and S of one block."""
    parts = _parts(system.O)
    stops = np.cumsum([part.n_rows for part in parts])
    weights = [y.reshape(_rows(part)) for y, part in zip(jnp.split(system.omega, stops[:-1]), parts, strict=True)]
    used = [(group, omega) for group, omega in zip(groups, weights, strict=True) if group is not None]
    A = sum(_moment(group.a, _per_use(group, omega)) for group, omega in used)
    S = sum(_moment(group.g, omega) for group, omega in used)
    total = jnp.asarray(sum(jnp.sum(jnp.mean(omega, axis=1)) for _, omega in used))
    return jnp.asarray(A / jnp.where(total > 0, total, 1)).astype(used[0][0].a.dtype), jnp.asarray(S)


def reduced(group: Group | None) -> Group | None:
    """One use in place of R: the mean activation and the sum of the cotangents."""
    if group is None:
        return None
    return Group(group.arrangement, jnp.mean(group.a, axis=3, keepdims=True), jnp.sum(group.g, axis=3, keepdims=True))


SHARED: Mapping[str, Callable[[Group | None], Group | None]] = {"expand": lambda group: group, "reduce": reduced}


def _moment(x: Float[Array, "n c B T k"], omega: Float[Array, "n c"]) -> Float[Array, "B k k"]:
    """Σ ω x xᵀ."""
    weighted = x * omega[:, :, None, None, None].astype(x.dtype)
    return jnp.einsum("ncbti,ncbtj->bij", weighted, x)


def _per_use(group: Group, omega: Float[Array, "n m"]) -> Float[Array, "n c"]:
    """The weight of each activation: that of its sample, shared by its uses and components."""
    shared = omega / omega.shape[1] if group.a.shape[1] > 1 else jnp.mean(omega, axis=1, keepdims=True)
    return shared / group.a.shape[3]


def _parts(O: AbstractJacobian) -> list[Factored]:
    O = O.inner if isinstance(O, Centred) else O
    parts = [part.whole if isinstance(part, Split) else part for part in (O.parts if isinstance(O, Stacked) else (O,))]
    factored = [part for part in parts if isinstance(part, Factored)]
    if len(factored) < len(parts):
        forms = " and ".join(sorted({type(part).__name__ for part in parts}))
        raise ValueError(f"KFAC needs the layer factors of a Factored Jacobian, got {forms}: give form=Factored.")
    return factored


def _rows(part: Factored) -> tuple[int, int]:
    return part.shape[0], math.prod(part.shape[1:])


def _matrices(number: int, parts: list[Factored]) -> list[Matrix]:
    """The matrices of a leaf, met in any part, or the leaf as a whole."""
    matrices: list[Matrix] = []
    for k, part in enumerate(parts):
        for group in part.leaves[number].groups:
            _place(matrices, number, group, k, len(parts))
    arrangements = [matrix.arrangement for matrix in matrices]
    if disjoint(arrangements) and all(part.leaves[number].separate for part in parts) and not any(map(_bare, matrices)):
        return matrices
    return [_whole(number, parts)]


def _bare(matrix: Matrix) -> bool:
    """A single row too long for its S."""
    _, ins, outs = index(matrix.arrangement).shape
    return ins == 1 and outs > DENSE


def _place(matrices: list[Matrix], number: int, group: Group, k: int, count: int) -> None:
    """Put the factors of part k to the matrix they belong to."""
    for matrix in matrices:
        turned = transposed(matrix.arrangement, group.arrangement)
        if turned is not None:
            matrix.groups[k] = _turn(group) if turned else group
            return
    matrices.append(Matrix(number, group.arrangement, [group if k == j else None for j in range(count)]))


def _turn(group: Group) -> Group:
    """Factors of the transposed matrix: activations and cotangents exchange their roles."""
    m = group.g.shape[1]
    a = jnp.broadcast_to(group.a, (group.a.shape[0], m, *group.a.shape[2:]))
    return Group(group.arrangement.then(lax.transpose, (0, 2, 1)), group.g, a)


def _whole(number: int, parts: list[Factored]) -> Matrix:
    """The leaf as one row, or as single entries if the row is too long."""
    shape = parts[0].leaves[number].shape
    size = math.prod(shape)
    form = (1, 1, size) if size <= DENSE else (size, 1, 1)
    arrangement = Arrangement(shape).then(lax.reshape, form)
    groups = [_gradients(part.leaves[number], part, arrangement, form) for part in parts]
    return Matrix(number, arrangement, groups)


def _gradients(leaf: Leaf, part: Factored, arrangement: Arrangement, form: tuple[int, int, int]) -> Group | None:
    """Gradients of a leaf as factors, a = 1."""
    if not leaf.groups:
        return None
    n, m = _rows(part)
    batch, _, outs = form
    dtype = leaf.groups[0].g.dtype
    g = rows(leaf, n, m, dtype).reshape(n, m, batch, 1, outs)
    return Group(arrangement, jnp.ones((n, 1, batch, 1, 1), dtype), g)


def _biases(matrix: Matrix, parts: list[Factored]) -> list[tuple[int, Arrangement]]:
    """Leaves that every part which uses them adds to this matrix's outputs."""
    offered = {bias.leaf: bias.arrangement for group in matrix.groups if group for bias in group.biases}
    users = zip(matrix.groups, parts, strict=True)
    missed = {leaf for group, part in users for leaf in offered if part.leaves[leaf].groups and not _has(group, leaf)}
    return [(leaf, arrangement) for leaf, arrangement in offered.items() if leaf not in missed]


def _has(group: Group | None, leaf: int) -> bool:
    return group is not None and any(bias.leaf == leaf for bias in group.biases)


def _join(group: Group | None, joined: list[tuple[int, Arrangement]]) -> Group | None:
    """Activations [a; 1], or [a; 0] for uses that the bias is not added to."""
    if group is None:
        return None
    follows = {bias.leaf: bias.follows(group.a.shape[3]) for bias in group.biases}
    columns = [follows.get(leaf, np.zeros(group.a.shape[3])) for leaf, _ in joined]
    ones = [jnp.broadcast_to(jnp.asarray(t, group.a.dtype)[:, None], (*group.a.shape[:-1], 1)) for t in columns]
    return Group(group.arrangement, jnp.concatenate([group.a, *ones], axis=-1), group.g)
