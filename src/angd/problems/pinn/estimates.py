"""How sure the coefficients of an inverse problem are.

At the end of training the parameters solve a linear least-squares problem: with J the Jacobian of all residuals and W
their weights, a change ε of the measurements moves them by (W^½J)⁺ W^½ ε. The coefficient c moves by

    δc = Σᵢ aᵢ √ωᵢ εᵢ,    a = ∂c (W^½J)⁺,    so    var c = Σ aᵢ² ωᵢ σᵢ²    over the measurements i.

All residuals stand in J, those of the equation with the weight that they were trained with, so the bar holds for these
weights, whatever they are. Where the equation is trusted fully, it is that of the inverse Fisher matrix.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from angd.method.jacobian import Dense
from angd.method.samples import Samples
from angd.method.system import row_weights
from angd.problems.estimate import Estimate
from angd.problems.pinn.domains import Data
from angd.problems.pinn.observed import Misfit
from angd.problems.pinn.problem import Problem
from angd.problems.pinn.sampling import Sobol
from angd.problems.pinn.unknowns import Coefficient
from angd.tree import count

POINTS = 3  # in the domain, for each parameter
KEY = 20261119
LOST = 0.1  # share of ∂c that the residuals may leave open


class _Term(NamedTuple):
    """One term of the loss at its points."""

    rows: Float[Array, "N p"]  # W^½ J
    root: Float[Array, " N"]  # √ω
    missed: Float[Array, " N"]
    measured: bool
    noisy: bool  # is its noise known, and the residual in units of it?


class _Fitted(NamedTuple):
    """The singular system of all residuals, in units of the parameters that make columns of J equally long."""

    left: Float[Array, "N r"]
    singular: Float[Array, " r"]
    basis: Float[Array, "p r"]
    scale: Float[Array, " p"]
    noise: Float[Array, " N"]  # √ω σ of every row, 0 where nothing is measured
    missed: Float[Array, " N"]  # √ω r

    def error(self, g: Float[Array, " p"]) -> float:
        """One standard deviation of what has the gradient g, and how far one full step would move it."""
        in_units = g / self.scale
        along = in_units @ self.basis
        if jnp.linalg.norm(in_units - self.basis @ along) > LOST * jnp.linalg.norm(in_units):
            return float("inf")
        influence = self.left @ (along / self.singular)
        return float(jnp.hypot(jnp.linalg.norm(influence * self.noise), jnp.vdot(influence, self.missed)))


def estimates(problem: Problem, params: PyTree, at: Mapping[str, Any] | None = None) -> dict[str, Estimate]:
    """Unknown coefficients with their error bars, from the residuals' Jacobian at the end of training.

    The noise is that of `observed(..., noise=)`; where none was given, it is estimated from the misfit. The bar is one
    standard deviation over repetitions of the measurements, and the step that training has left undone. It leaves out
    what the network cannot represent and the curvature of the problem, and it is too wide where training was too short
    to move all that the measurements leave open. The work is that of the singular values of about 4 p × p numbers.

    **Arguments:**

    - `problem`: with unknowns, and at least one condition on `Data`, `observed` for one.
    - `params`: trained ones.
    - `at`: points at which unknown functions are wanted, by name, each of shape (M, D).

    **Returns:** an `Estimate` for each coefficient and for each function in `at`, by name.

    **Example:** `print(estimates(problem, fit.params)["nu"])`
    """
    at = {} if at is None else at
    _check(problem, at)
    wanted = [name for name, unknown in problem.unknowns.items() if isinstance(unknown, Coefficient) or name in at]
    fitted = _fitted(_terms(problem, params))
    return {name: _estimate(_value(problem, name, at.get(name)), params, fitted) for name in wanted}


def _check(problem: Problem, at: Mapping[str, Any]) -> None:
    if not problem.unknowns:
        raise ValueError("estimates: the problem has no unknowns; declare them, Problem(..., unknowns={...}).")
    if not any(isinstance(c.on, Data) for c in problem.conditions.values()):
        raise ValueError("estimates: nothing is measured, so there is no noise to speak of; add observed(z, values).")
    for name, points in at.items():
        unknown = problem.unknowns.get(name)
        if unknown is None or isinstance(unknown, Coefficient):
            raise ValueError(f"estimates: {name!r} is not an unknown function of the problem.")
        if np.ndim(points) != 2 or np.shape(points)[1] != problem.domain.dimension:
            raise ValueError(
                f"estimates: points of shape (M, {problem.domain.dimension}) are needed for {name!r}, got "
                f"{np.shape(points)}."
            )


def _value(problem: Problem, name: str, points: Any) -> Any:
    """An unknown as a function of the parameters."""
    if points is None:
        return lambda params: problem.coefficients(params)[name]
    return lambda params: jax.vmap(problem.coefficients(params)[name])(jnp.asarray(points, float))


def _estimate(f: Any, params: PyTree, fitted: _Fitted) -> Estimate:
    value = f(params)
    gradients = [leaf.reshape(value.size, -1) for leaf in jax.tree.leaves(jax.jacrev(f)(params))]
    errors = np.array([fitted.error(g) for g in jnp.concatenate(gradients, axis=1)]).reshape(value.shape)
    return Estimate(np.asarray(value)[()], errors[()])


def _terms(problem: Problem, params: PyTree) -> list[_Term]:
    """All residuals with their Jacobians, at even points of their own and at all measurements."""
    n = POINTS * count(params)
    counts = {name: getattr(place, "count", n) for name, place in problem.places().items()}
    samples = Sobol(**counts)(jax.random.key(KEY), problem, params)
    return [_term(problem, name, f, params, samples[name]) for name, f in problem.residuals.items()]


def _term(problem: Problem, name: str, f: Any, params: PyTree, samples: Samples) -> _Term:
    O, missed = Dense.of(f, params, samples.x), jax.vmap(f, (None, 0))(params, samples.x)
    root = jnp.sqrt(row_weights(samples.omega, O))
    data = problem.places()[name]
    noisy = isinstance(data, Data) and data.noise is not None and isinstance(problem.conditions[name].equation, Misfit)
    return _Term(root[:, None] * O.matrix, root, missed.reshape(-1), isinstance(data, Data), noisy)


def _fitted(terms: list[_Term]) -> _Fitted:
    J = jnp.concatenate([term.rows for term in terms])
    lengths = jnp.linalg.norm(J, axis=0)
    scale = jnp.where(lengths > 0, lengths, 1.0)
    left, singular, right = jnp.linalg.svd(J / scale[None, :], full_matrices=False)
    kept = int(jnp.sum(singular > jnp.sqrt(jnp.finfo(J.dtype).eps) * singular[0]))
    left = left[:, :kept]
    stops = np.cumsum([len(term.root) for term in terms])[:-1].tolist()
    noise = [term.root * _noise(term, part) for term, part in zip(terms, jnp.split(left, stops), strict=True)]
    missed = jnp.concatenate([term.root * term.missed for term in terms])
    return _Fitted(left, singular[:kept], right[:kept].T, scale, jnp.concatenate(noise), missed)


def _noise(term: _Term, left: Float[Array, "N r"]) -> Any:
    """The standard deviation of a residual: 0 for equations, 1 where the noise is known, else from the misfit.

    Of N measurements the parameters fit as many exactly as the trace of the projection onto their tangent space says.
    """
    if not term.measured or term.noisy:
        return float(term.measured)
    free = left.shape[0] - jnp.sum(left**2)
    return jnp.where(free > 1, jnp.sqrt(jnp.sum(term.missed**2) / jnp.maximum(free, 1)), jnp.inf)
