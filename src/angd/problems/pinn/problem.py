"""A differential equation with its conditions: L = ½ Σ_terms w · mean r²."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from angd.method.metrics import Energy
from angd.method.samples import Samples
from angd.problems.models import as_model
from angd.problems.pinn.domains import Box, Data, Face, Faces
from angd.problems.pinn.networks import Model
from angd.problems.stages import total

Equation = Callable[[Callable[[Array], Array], Any], Array]
INTERIOR = "interior"
LOOKS = 8  # points at which a new problem is tried


class Condition(eqx.Module):
    """Something else that the field should satisfy, on a part of the domain.

    **Arguments:**

    - `on`: where, a `Face`, `Faces`, `Box` or `Data`.
    - `equation`: `equation(u, z)`, a number or a vector that should vanish.
    - `weight`: > 0, its share of the loss; 10 times the equation's is a good first try.

    **Example:** `Condition(box.face(0, "lower"), lambda u, z: u(z) - jnp.sin(z[1]), 10.0)`
    """

    on: Any
    equation: Equation = eqx.field(static=True)
    weight: float = 1.0


def observed(z: Any, values: Any, weight: float = 1.0) -> Condition:
    """u should take these values at these points: a term for data.

    **Arguments:**

    - `z`: the points, shape (N, D).
    - `values`: shape (N,) or (N, m), as the field has them.
    - `weight`: > 0, its share of the loss.

    **Returns:** a `Condition`.
    """
    return Condition(Data(z, values), _misfit, weight)


class Problem(eqx.Module):
    """A differential equation with its conditions: L = ½ Σ_terms w · mean r².

    **Arguments:**

    - `network`: what is sought: a `Network`, any `Model` with `init(key, dimension)`, or a module of Equinox, Flax NNX
      or Linen (see `angd.as_model`).
    - `domain`: a `Box`.
    - `equation`: `equation(u, z)` sees the field as a function and returns a number or a vector that
      should vanish inside the domain.
    - `conditions`: a dictionary from names to `Condition`; {} for none.
    - `constraint`: builds conditions into the field itself, u(z) = constraint(z, N(z)); None for none.

    **Example:** `Problem(Network((20, 20)), box, lambda u, z: d(u, 0)(z) - d(u, 1, 1)(z), conditions)`
    """

    network: Model = eqx.field(converter=as_model)
    domain: Box = eqx.field(static=True)
    equation: Equation = eqx.field(static=True)
    conditions: dict[str, Condition]
    constraint: Callable[[Array, Array], Array] | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        _check_kinds(self)
        if INTERIOR in self.conditions:
            raise ValueError(f"Problem: {INTERIOR!r} is the equation's own name; call the condition something else.")
        for name, condition in self.conditions.items():
            if not isinstance(condition.on, Box | Face | Faces | Data):
                raise ValueError(f"Problem: the condition {name!r} must be on a Box, Face, Faces or Data.")
            if condition.on.dimension != self.domain.dimension:
                raise ValueError(f"Problem: the condition {name!r} lives on a box of another dimension.")
            if not condition.on.within(self.domain):
                raise ValueError(f"Problem: the condition {name!r} has points outside the domain {self.domain}.")
            if not condition.weight > 0:
                raise ValueError(f"Problem: the weight of {name!r} must be positive, got {condition.weight}.")

    def init(self, key: Array) -> PyTree:
        """Parameters of the network; also tries every equation at a few points, so that mistakes are told at once."""
        params = self.network.init(key, self.domain.dimension)
        unit = jax.random.uniform(key, (LOOKS, self.domain.dimension), minval=0.01, maxval=0.99)
        points = {name: place.place(unit) for name, place in self.places().items()}
        for name, f in self.residuals.items():
            _check_kind(name, f, params, points[name])
        for name, r in _tried(self, params, points).items():
            _check_finite(name, r, points[name])
        return params

    def field(self, params: PyTree, z: Float[Array, " D"]) -> Float[Array, "*m"]:
        """u(z)."""
        value = total(lambda part: self.network(part, z), params)
        return value if self.constraint is None else self.constraint(z, value)

    @property
    def residuals(self) -> dict[str, Callable[..., Array]]:
        """Each term's residual at one point."""
        terms = {INTERIOR: self.equation} | {name: c.equation for name, c in self.conditions.items()}
        return {name: _on_field(self, equation) for name, equation in terms.items()}

    def loss(self, params: PyTree, samples: dict[str, Samples]) -> Float[Array, ""]:
        """½ Σ ω r² over all terms."""
        return Energy().loss(self, params, samples)

    def places(self) -> dict[str, Any]:
        """Where each term's points lie."""
        return {INTERIOR: self.domain} | {name: condition.on for name, condition in self.conditions.items()}

    def weight(self, name: str) -> float:
        return 1.0 if name == INTERIOR else self.conditions[name].weight


def _check_kinds(problem: Problem) -> None:
    """Refuse things of the wrong kind by name."""
    network, domain, conditions = problem.network, problem.domain, problem.conditions
    if isinstance(network, type) or not isinstance(network, Model):
        name = network.__name__ if isinstance(network, type) else type(network).__name__
        raise ValueError(
            f"Problem: the network must have init(key, dimension) and be called as network(params, z), which {name} "
            "does not: use Network((20, 20)), or wrap yours in a class with these two methods."
        )
    if not isinstance(domain, Box):
        raise ValueError(f"Problem: the domain must be a Box, `Box((0, 1), (-1, 1))`, got {domain!r}.")
    if not isinstance(conditions, dict) or not all(isinstance(c, Condition) for c in conditions.values()):
        found = "other values" if isinstance(conditions, dict) else type(conditions).__name__
        raise ValueError(
            f"Problem: conditions must be a dictionary from names to Condition, {{}} for none, got {found}."
        )


def _on_field(problem: Problem, equation: Equation) -> Callable[..., Array]:
    def residual(params: PyTree, z: Any) -> Array:
        return equation(lambda y: problem.field(params, y), z)

    return residual


def _misfit(u: Callable[[Array], Array], data: Data) -> Array:
    value = u(data.z)
    if value.shape != data.values.shape:
        raise ValueError(
            f"observed: the field has values of shape {value.shape} at a point, but the data {data.values.shape}."
        )
    return value - data.values


def _check_kind(name: str, f: Callable[..., Array], params: PyTree, points: PyTree) -> None:
    """Refuse an equation that returns something else than real numbers."""
    try:
        shape = jax.eval_shape(f, params, jax.tree.map(lambda leaf: leaf[0], points))
    except Exception as error:
        error.add_note(f"This was raised when the equation of {name!r} was tried at one point.")
        raise
    real = isinstance(shape, jax.ShapeDtypeStruct) and jnp.issubdtype(shape.dtype, jnp.floating)
    if not real or shape.ndim > 1 or shape.size == 0:
        raise ValueError(
            f"Problem: the equation of {name!r} must return a number or a vector at one point, real ones; got "
            f"{_described(shape)}."
        )


@eqx.filter_jit
def _tried(problem: Problem, params: PyTree, points: dict[str, PyTree]) -> dict[str, Array]:
    return {name: jax.vmap(f, (None, 0))(params, points[name]) for name, f in problem.residuals.items()}


def _check_finite(name: str, r: Array, points: PyTree) -> None:
    """Refuse an equation whose values are not finite."""
    if not bool(jnp.all(jnp.isfinite(r))):
        bad = jnp.argmax(~jnp.isfinite(r.reshape(LOOKS, -1)).all(1))
        where = jax.tree.map(lambda leaf: leaf[bad].tolist(), points)
        raise ValueError(f"Problem: the equation of {name!r} is not finite at {where} with the first parameters.")


def _described(found: Any) -> str:
    """What an equation returned, in a few words."""
    if isinstance(found, jax.ShapeDtypeStruct):
        return f"an array of shape {found.shape} and type {found.dtype}"
    return f"a {type(found).__name__}"
