"""Complex parameters as pairs of real ones, which is what a real Riemannian metric measures.

θ = paired(z)                  each complex array becomes a `Pair` of real ones
z = unpaired(θ)                and back
OfPairs(f)(θ, x) = f(z, x)     a model of complex parameters as one that can be trained
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, PyTree


class Pair(eqx.Module):
    """A complex array as two real ones.

    **Attributes:** `real` and `imag`, arrays of one shape.
    """

    real: Float[Array, "..."]
    imag: Float[Array, "..."]


def paired(params: PyTree) -> PyTree:
    """Parameters whose complex arrays are pairs of real ones.

    **Arguments:**

    - `params`: a pytree of arrays, some of them complex.

    **Returns:** the same with a `Pair` for each complex array; real arrays stay.
    """
    return jax.tree.map(lambda z: Pair(jnp.real(z), jnp.imag(z)) if jnp.iscomplexobj(z) else z, params)


def unpaired(params: PyTree) -> PyTree:
    """Parameters whose pairs are complex arrays again.

    **Arguments:**

    - `params`: what `paired` returned, or what training made of it.

    **Returns:** the same with a complex array for each `Pair`.
    """
    return jax.tree.map(_joined, params, is_leaf=_is_pair)


class OfPairs(eqx.Module):
    """A model with complex parameters as one whose parameters are real, and so can be trained.

    **Arguments:**

    - `model`: a function `(params, x)` of complex parameters, such as log ψ.

    **Returns:** called as `(params, x)` with `params = angd.paired(complex_params)`, what the model returns.

    **Example:** `log_psi = angd.OfPairs(model)`, started at `angd.paired(z)`.
    """

    model: Any

    def __call__(self, params: PyTree, x: Any) -> Any:
        return self.model(unpaired(params), x)


def _is_pair(part: Any) -> bool:
    return isinstance(part, Pair)


def _joined(part: Any) -> Any:
    return lax.complex(part.real, part.imag) if _is_pair(part) else part
