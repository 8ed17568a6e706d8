"""Samples: points along a leading axis, each with its weight ω (1/n unless quadrature weights are given)."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree


class Samples(eqx.Module):
    """Points `x` (a pytree whose leaves share a leading axis of length n) with weights `omega`."""

    x: PyTree
    omega: Float[Array, "n"]

    def __init__(self, x: Any, omega: Any = None):
        lengths = {jnp.shape(leaf)[:1] for leaf in jax.tree.leaves(x)}
        if len(lengths) != 1 or lengths in ({()}, {(0,)}):
            raise ValueError(
                f"Samples need at least one point along a leading axis that all leaves share, got {lengths}."
            )
        ((n,),) = lengths
        self.x = x
        self.omega = jnp.full(n, 1 / n) if omega is None else jnp.asarray(omega)
        if self.omega.shape != (n,):
            raise ValueError(f"There are {n} points but weights of shape {self.omega.shape}.")

    def mean(self, u: Float[Array, "n ..."]) -> Float[Array, "..."]:
        """Σ ωᵢ u(xᵢ)."""
        return jnp.tensordot(self.omega.astype(u.dtype), u, axes=1)

    def centre(self, u: Float[Array, "n"]) -> Float[Array, "n"]:
        """ū = u − ⟨u⟩."""
        return u - self.mean(u) / jnp.sum(self.omega)
