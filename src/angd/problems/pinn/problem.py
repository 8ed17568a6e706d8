"""A differential equation with its conditions: L = ½ Σ_terms w · mean r²."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from angd.method.metrics import Energy
from angd.method.samples import Samples
from angd.problems.estimate import Estimate
from angd.problems.models import as_model
from angd.problems.pinn.domains import Data, Face, Faces
from angd.problems.pinn.integrals import Integral
from angd.problems.pinn.networks import Model
from angd.problems.pinn.observed import Misfit, noise_weights
from angd.problems.pinn.regions import Boundary, Region
from angd.problems.pinn.unknowns import (
    FIELD,
    UNKNOWNS,
    Coefficient,
    Unknown,
    as_unknowns,
    first_values,
    present,
    reads_unknowns,
)
from angd.problems.slabs import TIME, at_time
from angd.problems.stages import total

Equation = Callable[..., Array]
INTERIOR = "interior"
LOOKS = 8  # points at which a new problem is tried


class Condition(eqx.Module):
    """Something else that the field should satisfy, on a part of the domain.

    **Arguments:**

    - `on`: where, a `Face`, `Faces`, `Box` or another region, `Data`, an `Integral`, or the boundary of a region,
      `region.boundary`.
    - `equation`: `equation(u, z)`, a number or a vector that should vanish; `equation(u, z, c)` where the problem has
      unknowns.
    - `weight`: > 0, its share of the loss; 10 times the equation's is a good first try. None, for measurements, takes
      it from their noise.

    **Example:** `Condition(box.face(0, "lower"), lambda u, z: u(z) - jnp.sin(z[1]), 10.0)`
    """

    on: Any
    equation: Equation = eqx.field(static=True)
    weight: float | None = 1.0


def observed(
    z: Any,
    values: Any,
    weight: float | None = None,
    noise: Any = None,
    of: Any = None,
) -> Condition:
    """Measurements: u should take these values at these points.

    With known noise σ the residual is (u − value)/σ, so that a good fit has mean square 1. Such terms need no weight:
    the largest gets 1e-3, so that the equation keeps the upper hand, the others in proportion to their numbers.

    **Arguments:**

    - `z`: the points, shape (N, D).
    - `values`: shape (N,) or (N, m), as what is measured has them.
    - `weight`: > 0, its share of the loss; None takes it from the noise, 1 where that is not known.
    - `noise`: the standard deviation of the measurements, a number, or an array of the shape of the values, or one
      that broadcasts to it. Optional.
    - `of`: what is measured: None for the field itself, the number of one of its components, or a function
      `of(u, z)`, such as a flux `lambda u, z: d(u, 1)(z)`.

    **Returns:** a `Condition`.

    **Example:** `observed(points, values, noise=0.01)`
    """
    return Condition(Data(z, values, noise), Misfit(of), weight)


class Problem(eqx.Module):
    """A differential equation with its conditions: L = ½ Σ_terms w · mean r².

    **Arguments:**

    - `network`: what is sought: a `Network`, any `Model` with `init(key, dimension)`, or a module of Equinox, Flax NNX
      or Linen (see `angd.as_model`).
    - `domain`: a `Box`, or another region, such as `Ball((0, 0), 1)`, `Polygon(corners)` or `box - ball`.
    - `equation`: `equation(u, z)` sees the field as a function and returns a number or a vector that
      should vanish inside the domain; `equation(u, z, c)` where there are unknowns.
    - `conditions`: a dictionary from names to `Condition`; {}, the default, for none.
    - `constraint`: builds conditions into the field itself, u(z) = constraint(z, N(z)); None for none.
    - `unknowns`: of an inverse problem, by name: a `Coefficient`, which equations read as the number `c[name]`, or a
      `Network` or any other model, which they read as the function `c[name](z)`. {}, the default, for none.

    **Example:** `Problem(Network((20, 20)), box, lambda u, z: d(u, 0)(z) - d(u, 1, 1)(z), conditions)`
    """

    network: Model = eqx.field(converter=as_model)
    domain: Region = eqx.field(static=True)
    equation: Equation = eqx.field(static=True)
    conditions: dict[str, Condition] = eqx.field(default_factory=dict)
    constraint: Callable[[Array, Array], Array] | None = eqx.field(static=True, default=None)
    unknowns: dict[str, Unknown] = eqx.field(default_factory=dict, converter=as_unknowns)

    def __check_init__(self):
        _check_kinds(self)
        if INTERIOR in self.conditions:
            raise ValueError(f"Problem: {INTERIOR!r} is the equation's own name; call the condition something else.")
        for name, condition in self.conditions.items():
            if not isinstance(condition.on, Region | Boundary | Face | Faces | Integral | Data):
                raise ValueError(
                    f"Problem: the condition {name!r} must be on a Box, Face, Faces, Boundary, Integral or Data."
                )
            if condition.on.dimension != self.domain.dimension:
                raise ValueError(f"Problem: the condition {name!r} lives on a box of another dimension.")
            if not condition.on.within(self.domain):
                raise ValueError(f"Problem: the condition {name!r} has points outside the domain {self.domain}.")
            if condition.weight is not None and not condition.weight > 0:
                raise ValueError(f"Problem: the weight of {name!r} must be positive, got {condition.weight}.")
        _check_unknowns(self)

    def init(self, key: Array) -> PyTree:
        """Parameters of the network, and of the unknowns where there are some, {"field": …, "unknowns": …}.

        Also tries every equation at a few points, so that mistakes are told at once.
        """
        params = self.network.init(key, self.domain.dimension)
        if self.unknowns:
            params = {FIELD: params, UNKNOWNS: first_values(self.unknowns, key, self.domain.dimension)}
        unit = jax.random.uniform(key, (LOOKS, self.domain.dimension), minval=0.01, maxval=0.99)
        points = {name: place.place(unit) for name, place in self.places().items()}
        for name, f in self.residuals.items():
            _check_kind(name, f, params, points[name])
        for name, r in _tried(self, params, points).items():
            _check_finite(name, r, points[name])
        return params

    def field(self, params: PyTree, z: Float[Array, " D"]) -> Float[Array, "*m"]:
        """u(z)."""
        own = at_time(params[FIELD] if self.unknowns else params, z[TIME])
        value = total(lambda part: self.network(part, z), own)
        return value if self.constraint is None else self.constraint(z, value)

    def coefficients(self, params: PyTree) -> dict[str, Any]:
        """The unknowns as equations read them: numbers, and functions of a point; {} where there are none.

        **Arguments:** `params`, of this problem.
        """
        return present(self.unknowns, params[UNKNOWNS]) if self.unknowns else {}

    @property
    def observables(self) -> dict[str, Callable[[PyTree], Array]]:
        """Unknown numbers, worth recording along a run, by name."""
        numbers = {name: c for name, c in self.unknowns.items() if isinstance(c, Coefficient) and c.first.ndim == 0}
        return {name: _of_coefficient(c, name) for name, c in numbers.items()}

    @property
    def is_measured(self) -> bool:
        """Are there unknown numbers, and measurements to find them from?"""
        numbers = any(isinstance(unknown, Coefficient) for unknown in self.unknowns.values())
        return numbers and any(isinstance(c.on, Data) for c in self.conditions.values())

    def estimates(self, params: PyTree) -> dict[str, Estimate]:
        """Unknown coefficients with their error bars, by name: see `angd.problems.pinn.estimates`.

        **Arguments:** `params`, of this problem, at the end of training.
        """
        from angd.problems.pinn.estimates import estimates

        return estimates(self, params)

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
        """A term's share of the loss."""
        given = 1.0 if name == INTERIOR else self.conditions[name].weight
        return noise_weights(self.conditions)[name] if given is None else given


def _check_kinds(problem: Problem) -> None:
    """Refuse things of the wrong kind by name."""
    network, domain, conditions = problem.network, problem.domain, problem.conditions
    if isinstance(network, type) or not isinstance(network, Model):
        name = network.__name__ if isinstance(network, type) else type(network).__name__
        raise ValueError(
            f"Problem: the network must have init(key, dimension) and be called as network(params, z), which {name} "
            "does not: use Network((20, 20)), or wrap yours in a class with these two methods."
        )
    if not isinstance(domain, Region):
        raise ValueError(f"Problem: the domain must be a Box, `Box((0, 1), (-1, 1))`, got {domain!r}.")
    if not isinstance(conditions, dict) or not all(isinstance(c, Condition) for c in conditions.values()):
        found = "other values" if isinstance(conditions, dict) else type(conditions).__name__
        raise ValueError(
            f"Problem: conditions must be a dictionary from names to Condition, {{}} for none, got {found}."
        )


def _check_unknowns(problem: Problem) -> None:
    """Equations and unknowns belong together."""
    terms = {INTERIOR: problem.equation} | {name: c.equation for name, c in problem.conditions.items()}
    readers = [name for name, equation in terms.items() if reads_unknowns(equation)]
    if readers and not problem.unknowns:
        raise ValueError(
            f"Problem: the equation of {readers[0]!r} reads coefficients, equation(u, z, c), but there are none: "
            'add unknowns={"name": Coefficient(0.1)}.'
        )
    if problem.unknowns and not readers:
        raise ValueError(
            f"Problem: no equation reads the unknowns {sorted(problem.unknowns)}; write equation(u, z, c), "
            "and use c[name]."
        )


def _of_coefficient(coefficient: Coefficient, name: str) -> Callable[[PyTree], Array]:
    return lambda params: coefficient.value(params[UNKNOWNS][name])


def _on_field(problem: Problem, equation: Equation) -> Callable[..., Array]:
    reads = bool(problem.unknowns) and reads_unknowns(equation)

    def residual(params: PyTree, z: Any) -> Array:
        def u(y: Array) -> Array:
            return problem.field(params, y)

        return equation(u, z, problem.coefficients(params)) if reads else equation(u, z)

    return residual


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
