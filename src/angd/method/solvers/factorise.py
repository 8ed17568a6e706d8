"""The one place where the matrix of a system is factorised beside itself.

On a mesh the matrix is formed by all devices and held by each, and each factorises all of it: k³/6 multiplications for
Cholesky, many times more for eigenvalues, which no number of devices makes less. A distributed factorisation
(block-cyclic, such as cuSOLVERMp's or ScaLAPACK's) would replace this function: it takes the matrix as it comes, and
what it returns is used as L, or as eigenvalues and vectors, in `angd.method.solvers.positive` only. A matrix that
leaves no room for copies of itself has its factor in its own buffer instead: `in_place`.
"""

from typing import Any

import jax.numpy as jnp
from jax.scipy.linalg import cholesky
from jaxtyping import Array, Float

from angd.method.parallel import copied


def factorised(A: Float[Array, "k k"], damping: Any = None) -> Any:
    """L of A + λI = LLᵀ, the same on every device; without a damping, eigenvalues and vectors of A.

    **Arguments:**

    - `A`: symmetric, positive semi-definite.
    - `damping`: λ, or None.

    **Returns:** L, shape (k, k); or eigenvalues, (k,), and vectors, (k, k).
    """
    A = copied(A)
    if damping is None:
        return jnp.linalg.eigh(A)
    return cholesky(A + damping * jnp.eye(A.shape[0], dtype=A.dtype), lower=True)
