"""Cholesky's factor in the buffer of its matrix: for the largest matrix that fits in memory once.

LAPACK reads and writes one triangle. L takes the lower one and the diagonal, the upper one still holds A, and with A's
diagonal kept beside it another damping can be factorised from the same buffer. In JAX's own `cholesky` the factor, the
matrix and what makes the upper triangle zero are three.

LAPACK counts columns first: what it calls upper is the lower triangle here, and its Uᵀ is L.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.linalg import cho_solve, cholesky
from jaxtyping import Array, Bool, Float

from angd.method.jacobian.symmetric import by_rows
from angd.method.parallel import copied


class InPlace(eqx.Module):
    """A and L of A + λI = LLᵀ, in one buffer.

    **Attributes:** `both` has L in its lower triangle, A above it; `diagonal` is A's; `ok`, whether there is an L;
    `damping`, its λ; `smallest`, not known.
    """

    both: Float[Array, "k k"]
    diagonal: Float[Array, "k"]
    ok: Bool[Array, ""]
    damping: Any
    smallest: Float[Array, ""]

    @classmethod
    def of(cls, A: Float[Array, "k k"], damping: Any) -> "InPlace":
        """Factorised."""
        diagonal, column = jnp.diagonal(A), jnp.arange(len(A))
        damped = by_rows(A, lambda part, rows: part + damping * (rows(column)[:, None] == column[None, :]))
        both, ok = _in_place(copied(damped))
        return cls(both, diagonal, ok, damping, jnp.full((), jnp.nan, A.dtype))

    @property
    def trace(self) -> Float[Array, ""]:
        """Of A."""
        return jnp.sum(self.diagonal)

    def solve(self, damping: Any, y: Float[Array, "k"]) -> Float[Array, "k"]:
        """(A + λI)⁻¹ y; another λ than that of the step takes a second buffer, for as long as it is factorised."""
        x = _solved(self.both, self.ok, y.astype(self.both.dtype))
        if damping is not self.damping:  # the same number is known as such while tracing, where nobody changed it
            other = jnp.asarray(damping, x.dtype) != jnp.asarray(self.damping, x.dtype)
            # Vectors alone pass through the loop of one turn or none: what comes out of it is a copy.
            x = lax.while_loop(lambda s: s[0], lambda s: (jnp.zeros((), bool), self._again(damping, y)), (other, x))[1]
        return x.astype(y.dtype)

    def _again(self, damping: Any, y: Float[Array, "k"]) -> Float[Array, "k"]:
        above = jnp.triu(self.both, 1)
        A = above + above.T + jnp.diag(self.diagonal + jnp.asarray(damping, self.diagonal.dtype))
        return _solved(*_in_place(A), y.astype(A.dtype))


def _in_place(A: Float[Array, "k k"]) -> tuple[Float[Array, "k k"], Bool[Array, ""]]:
    """L in the lower triangle, on CPUs with A's own entries above it; and whether A was positive definite."""
    if not _has_lapack():
        return _copied(A)
    return lax.platform_dependent(A, cpu=_by_lapack, default=_copied)


def _by_lapack(A: Float[Array, "k k"]) -> tuple[Float[Array, "k k"], Bool[Array, ""]]:
    from jaxlib.lapack import prepare_lapack_call

    results = (jax.ShapeDtypeStruct(A.shape, A.dtype), jax.ShapeDtypeStruct((), jnp.int32))
    call = jax.ffi.ffi_call(
        prepare_lapack_call("potrf_ffi", A.dtype), results, input_output_aliases={0: 0}, vmap_method="sequential"
    )
    both, info = call(A, uplo=_letter("U"))
    return both, info == 0


def _copied(A: Float[Array, "k k"]) -> tuple[Float[Array, "k k"], Bool[Array, ""]]:
    L = cholesky(A, lower=True)
    return jnp.tril(L) + jnp.triu(A, 1), jnp.all(jnp.isfinite(jnp.diagonal(L)))


def _solved(both: Float[Array, "k k"], ok: Bool[Array, ""], y: Float[Array, "k"]) -> Float[Array, "k"]:
    """(LLᵀ)⁻¹ y, from the lower triangle alone; NaN where there is none."""
    x = lax.platform_dependent(both, y, cpu=_substituted, default=_solved_by_jax) if _has_lapack() else None
    return jnp.where(ok, _solved_by_jax(both, y) if x is None else x, jnp.nan)


def _substituted(both: Float[Array, "k k"], y: Float[Array, "k"]) -> Float[Array, "k"]:
    from jaxlib.lapack import prepare_lapack_call

    column = jax.ShapeDtypeStruct((y.size, 1), y.dtype)
    call = jax.ffi.ffi_call(
        prepare_lapack_call("trsm_ffi", y.dtype), column, input_output_aliases={1: 0}, vmap_method="sequential"
    )
    side: dict[str, Any] = {"side": _letter("L"), "uplo": _letter("U"), "diag": _letter("N")}
    down = call(both, y[:, None], trans_x=_letter("T"), **side)
    return call(both, down, trans_x=_letter("N"), **side)[:, 0]


def _solved_by_jax(both: Float[Array, "k k"], y: Float[Array, "k"]) -> Float[Array, "k"]:
    return cho_solve((both, True), y)


def _letter(name: str) -> np.uint8:
    return np.uint8(ord(name))


def _has_lapack() -> bool:
    """Does this JAX say how its own calls of LAPACK are named?"""
    try:
        from jaxlib.lapack import prepare_lapack_call
    except ImportError:
        return False
    return callable(prepare_lapack_call)
