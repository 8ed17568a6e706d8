"""Symmetric positive semi-definite matrices A, ready to solve (A + λI) x = y for any λ.

One λ in double precision takes Cholesky, A + λI = LLᵀ, and keeps L: whoever asks again for the same λ gets it. Many λ,
or single precision, take eigenvalues: then every λ costs two products with a matrix, and what rounding made negative is
set to zero.

A matrix that leaves no room for copies of itself (`angd.method.memory`) is factorised in place, whatever is asked.

Rows of single precision are multiplied in single precision. Where rounding leaves an eigenvalue of A below −λ/10, or
the mean row that was taken off was so long that it took digits with it, the product is formed again in double.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jax.scipy.linalg import cho_solve
from jaxtyping import Array, Bool, Float

from angd.method.memory import crowded, matrix_bytes, note, refuse
from angd.method.solvers.factorise import factorised
from angd.method.solvers.in_place import InPlace
from angd.method.system import AbstractSystem, with_jacobian

Build = Callable[[AbstractSystem, bool], tuple[Float[Array, "k k"], Float[Array, ""]]]

FAR = 10.0  # squared length of the mean row over that of the rest, above which products are formed in double
ITERATIONS = 8  # of Lanczos' method, to see how small the smallest eigenvalue is


class Cholesky(eqx.Module):
    """A, and L of A + λI for the λ of the step; `smallest` is A's least eigenvalue, roughly; NaN if unknown."""

    A: Float[Array, "k k"]
    L: Float[Array, "k k"]
    damping: Float[Array, ""]
    smallest: Float[Array, ""]

    @classmethod
    def of(cls, A: Float[Array, "k k"], damping: Any, checked: bool) -> "Cholesky":
        """Factorised; the smallest eigenvalue is looked for where it is to be `checked`."""
        L, lam = _factor(A, damping), jnp.asarray(damping, A.dtype)
        return cls(A, L, lam, _least(L) - lam if checked else jnp.full((), jnp.nan, A.dtype))

    @property
    def trace(self) -> Float[Array, ""]:
        """Of A."""
        return jnp.trace(self.A)

    def solve(self, damping: Any, y: Float[Array, "k"]) -> Float[Array, "k"]:
        """(A + λI)⁻¹ y; another λ than that of the step is another factorisation."""
        same = jnp.asarray(damping, self.damping.dtype) == self.damping
        L = _if(~same, lambda: _factor(self.A, damping), self.L)
        return _back(L, y).astype(y.dtype)


class Spectrum(eqx.Module):
    """A as eigenvalues and vectors: each λ is free. Negative values become 0; `smallest` is the least before that."""

    values: Float[Array, "k"]
    vectors: Float[Array, "k k"]
    smallest: Float[Array, ""]

    @classmethod
    def of(cls, A: Float[Array, "k k"]) -> "Spectrum":
        """Diagonalised."""
        values, vectors = factorised(A)
        return cls(jnp.maximum(values, 0), vectors, values[0])

    @property
    def trace(self) -> Float[Array, ""]:
        """Of A."""
        return jnp.sum(self.values)

    def solve(self, damping: Any, y: Float[Array, "k"]) -> Float[Array, "k"]:
        """(A + λI)⁻¹ y."""
        inside = (self.vectors.T @ y.astype(self.values.dtype)) / (self.values + damping)
        return (self.vectors @ inside).astype(y.dtype)


Positive = Cholesky | Spectrum | InPlace


def positive(build: Build, system: AbstractSystem, damping: Any, many: bool, k: int) -> Positive:
    """The matrix that `build` makes of a system, in the widest type there is, for one damping or for many.

    `build(system, again)` gives the matrix and the squared length of what was taken off after it was multiplied;
    `again` says that it can be formed again in double. The matrix is k × k.
    """
    narrow, wide = system.O.layout.dtype, jnp.result_type(float)
    can = narrow != wide and wide == jnp.float64 and system.O.wide() is not None
    tight = _fits(k, wide)
    if tight:
        A = build(_widest(system) if can else system, False)[0]
        return InPlace.of(A.astype(jnp.promote_types(A.dtype, wide)), damping)
    spectral = many or jnp.promote_types(narrow, wide) != jnp.float64

    def made(system: AbstractSystem) -> tuple[Cholesky | Spectrum, Float[Array, ""]]:
        A, offset = build(system, can)
        A = A.astype(jnp.promote_types(A.dtype, wide))
        return Spectrum.of(A) if spectral else Cholesky.of(A, damping, can), offset

    def again() -> Cholesky | Spectrum:
        return made(_widest(system))[0]  # widened here, so that only those pay for it who need it

    first, offset = made(system)
    if not can:
        return first
    good = (first.smallest >= -damping / 10) & (offset <= FAR * first.trace)
    return _if(~good, again, first)


def _fits(k: int, dtype: Any) -> bool:
    """Is there room for nothing but the matrix itself? Raises where there is not even that."""
    size, tight = matrix_bytes(k, dtype), crowded(k, dtype)
    instead = "use fewer samples, or Iterative or KFAC, which form no such matrix"
    refuse(f"The {k:,} × {k:,} matrix of this system", size, instead)
    why = "factorised in place, because copies of it" if tight else "factorised beside itself, which, with a copy,"
    ends = "would exceed half of the budget" if tight else "stays below half of the budget"
    note(f"the {k:,} × {k:,} matrix of the system", size, f"{why} {ends}")
    return tight


def _if(wanted: Bool[Array, ""], then: Callable[[], Any], otherwise: Any) -> Any:
    """`then()` if wanted, else what is there: a loop of one turn or none, where `lax.cond` would copy both matrices."""
    return lax.while_loop(lambda left: left[0], lambda _: (jnp.zeros((), bool), then()), (wanted, otherwise))[1]


def _widest(system: AbstractSystem) -> AbstractSystem:
    """With the same rows in double precision."""
    rows = system.O.wide()
    assert rows is not None
    return with_jacobian(eqx.tree_at(lambda s: s.omega, system, system.omega.astype(jnp.float64)), rows)


def _factor(A: Float[Array, "k k"], damping: Any) -> Float[Array, "k k"]:
    return factorised(A, damping)


def _back(L: Float[Array, "k k"], y: Float[Array, "k"]) -> Float[Array, "k"]:
    return cho_solve((L, True), y.astype(L.dtype))


def _least(L: Float[Array, "k k"]) -> Float[Array, ""]:
    """The least eigenvalue of LLᵀ by a few steps of Lanczos' method on its inverse; NaN where L has none.

    Single precision is enough to tell it from −λ/10, and takes a third of the time.
    """
    low = L.astype(jnp.float32)
    y = jnp.cos(jnp.arange(1, L.shape[0] + 1, dtype=low.dtype) ** 2)  # no structure, the same in every run
    y, before = y / jnp.linalg.norm(y), jnp.zeros_like(y)
    diagonal, beside = [], [jnp.zeros((), low.dtype)]
    for _ in range(ITERATIONS):
        z = _back(low, y)
        diagonal.append(jnp.vdot(y, z))
        z = z - diagonal[-1] * y - beside[-1] * before
        beside.append(jnp.linalg.norm(z))
        y, before = z / jnp.where(beside[-1] > 0, beside[-1], 1), y
    off = jnp.diag(jnp.stack(beside[1:-1]), 1)
    return (1 / jnp.linalg.eigvalsh(jnp.diag(jnp.stack(diagonal)) + off + off.T)[-1]).astype(L.dtype)
