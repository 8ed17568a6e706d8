"""Samples: points along a leading axis, each with its weight ω (1/n unless quadrature weights are given)."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Inexact, PyTree

from angd.flow.schedules import is_concrete
from angd.method.protocols import ChecksStart


def check_start(problem: object, params: PyTree, samples: Any) -> None:
    """Let a problem that can, `check_start(params, x)`, look at one sample before work begins."""
    if isinstance(problem, ChecksStart) and isinstance(samples, Samples):
        first = jax.tree.map(lambda leaf: leaf[0], samples.x)
        if not any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves((params, first))):
            problem.check_start(params, first)


def check_samples(samples: Any, owner: str) -> None:
    """Refuse what is neither `Samples` nor a dictionary of them."""
    parts = list(samples.values()) if isinstance(samples, dict) else [samples]
    strangers = [part for part in parts if not isinstance(part, Samples)]
    if strangers or not parts:
        found = f"{type(strangers[0]).__name__} in it" if strangers and isinstance(samples, dict) else _kind(samples)
        raise ValueError(
            f"{owner}: samples must be angd.Samples(x), or a dictionary of them with one for each term, got {found}."
        )


def _kind(samples: Any) -> str:
    return "an empty dictionary" if isinstance(samples, dict) else f"{type(samples).__name__}: wrap it, Samples(x)"


class Samples(eqx.Module):
    """Points along a leading axis, each with its weight ω.

    **Arguments:**

    - `x`: the points, a pytree whose leaves share a leading axis of length n: (n, d), or (n, electrons,
      3).
    - `omega`: weights ω ≥ 0, shape (n,); 1/n by default, quadrature weights where there are any.
    - `weight`: multiplies them all: the weight of a term of the loss belongs here, not into its residual.

    **Example:** `angd.Samples(jax.random.normal(key, (1000, 2)))`
    """

    x: PyTree
    omega: Float[Array, "n"]

    def __init__(self, x: Any, omega: Any = None, weight: float = 1.0):
        lengths = {jnp.shape(leaf)[:1] for leaf in jax.tree.leaves(x)}
        if len(lengths) != 1 or lengths in ({()}, {(0,)}):
            raise ValueError(
                f"Samples need at least one point along a leading axis that all leaves share, got {lengths}."
            )
        ((n,),) = lengths
        self.x = x
        self.omega = jnp.full(n, weight / n) if omega is None else weight * jnp.asarray(omega)
        if self.omega.shape != (n,):
            raise ValueError(f"There are {n} points but weights of shape {self.omega.shape}.")

    def __check_init__(self):
        if is_concrete(self.omega) and not bool(jnp.all(self.omega >= 0)):
            raise ValueError("The weights must be ≥ 0, and numbers.")

    def mean(self, u: Inexact[Array, "n ..."]) -> Inexact[Array, "..."]:
        """Σ ωᵢ u(xᵢ)."""
        return jnp.tensordot(self.omega.astype(u.dtype), u, axes=1)

    def masked(self, bad: Bool[Array, "n"]) -> "Samples":
        """Bad ones become copies of others, in turn, and weigh nothing; all weights together stay the same."""
        n, omega = bad.shape[0], jnp.where(bad, 0.0, self.omega)

        def replaced() -> PyTree:
            others = jnp.argsort(bad)[jnp.arange(n) % jnp.maximum(n - jnp.sum(bad), 1)]
            source = jnp.where(bad & ~jnp.all(bad), others, jnp.arange(n))
            return jax.tree.map(lambda leaf: leaf[source], self.x)

        # As a rule none is bad, and where samples are spread over devices none need be fetched from the others.
        x = lax.cond(jnp.any(bad), replaced, lambda: self.x)
        omega = omega * (jnp.sum(self.omega) / jnp.sum(omega))
        return eqx.tree_at(lambda samples: (samples.x, samples.omega), self, (x, omega))

    def weighed_as(self, other: "Samples") -> "Samples":
        """With the weights of others."""
        return eqx.tree_at(lambda samples: samples.omega, self, other.omega)

    def centre(self, u: Inexact[Array, "n"]) -> Inexact[Array, "n"]:
        """ū = u − ⟨u⟩."""
        total = jnp.sum(self.omega)
        return u - self.mean(u) / jnp.where(total > 0, total, 1.0).astype(u.dtype)
