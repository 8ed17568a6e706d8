"""A differential equation with its conditions: L = ½ Σ_terms w · mean r²."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from angd.problems.pinn.domains import Box
from angd.problems.pinn.networks import Network
from angd.samples import Samples

Equation = Callable[[Callable[[Array], Array], Array], Array]
INTERIOR = "interior"


class Condition(eqx.Module):
    """`equation(u, z)` must vanish `on` a face (or several); `weight` is its share of the loss."""

    on: Any = eqx.field(static=True)
    equation: Equation = eqx.field(static=True)
    weight: float = 1.0


class Problem(eqx.Module):
    """Find a network u with `equation(u, z)` = 0 inside `domain` and its `conditions` on the faces.

    `equation` sees the field as a function, `lambda u, z: d(u, 0)(z) + u(z) * d(u, 1)(z)`, and returns a number or a
    vector of numbers. `constraint(z, value)` builds conditions into the field itself: u(z) = constraint(z, N(z)).
    """

    network: Network
    domain: Box = eqx.field(static=True)
    equation: Equation = eqx.field(static=True)
    conditions: dict[str, Condition]
    constraint: Callable[[Array, Array], Array] | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        if INTERIOR in self.conditions:
            raise ValueError(f"Problem: {INTERIOR!r} is the equation's own name; call the condition something else.")
        for name, condition in self.conditions.items():
            if condition.on.dimension != self.domain.dimension:
                raise ValueError(f"Problem: the condition {name!r} lives on a box of another dimension.")
            if not condition.weight > 0:
                raise ValueError(f"Problem: the weight of {name!r} must be positive, got {condition.weight}.")

    def init(self, key: Array) -> PyTree:
        """Parameters of the network; also checks that equations return numbers or vectors."""
        params = self.network.init(key, self.domain.dimension)
        for name, f in self.residuals.items():
            shape = jax.eval_shape(f, params, jnp.zeros(self.domain.dimension))
            if not isinstance(shape, jax.ShapeDtypeStruct) or shape.ndim > 1:
                raise ValueError(f"Problem: the equation of {name!r} must return a number or a vector at one point.")
        return params

    def field(self, params: PyTree, z: Float[Array, " D"]) -> Float[Array, "*m"]:
        """u(z)."""
        value = self.network(params, z)
        return value if self.constraint is None else self.constraint(z, value)

    @property
    def residuals(self) -> dict[str, Callable[..., Array]]:
        """Each term's residual at one point."""
        terms = {INTERIOR: self.equation} | {name: c.equation for name, c in self.conditions.items()}
        return {name: _on_field(self, equation) for name, equation in terms.items()}

    def loss(self, params: PyTree, samples: dict[str, Samples]) -> Float[Array, ""]:
        """½ Σ ω r² over all terms."""
        parts = [_square(f, params, samples[name]) for name, f in self.residuals.items()]
        return sum(parts[1:], parts[0]) / 2

    def places(self) -> dict[str, Any]:
        """Where each term's points lie."""
        return {INTERIOR: self.domain} | {name: condition.on for name, condition in self.conditions.items()}

    def weight(self, name: str) -> float:
        return 1.0 if name == INTERIOR else self.conditions[name].weight


def _on_field(problem: Problem, equation: Equation) -> Callable[..., Array]:
    def residual(params: PyTree, z: Array) -> Array:
        return equation(lambda y: problem.field(params, y), z)

    return residual


def _square(f: Callable[..., Array], params: PyTree, samples: Samples) -> Float[Array, ""]:
    r = jax.vmap(f, (None, 0))(params, samples.x)
    return jnp.sum(samples.mean(r**2))
