"""How good parameters are: errors against what is known, the loss at held-out points, observables, the Markov chain."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from angd.problems.solution import Solution, relative_errors, together
from angd.problems.task import GRID, TEST_KEY, TEST_POINTS, Task


@dataclass(frozen=True)
class Evaluation:
    """What is seen between steps.

    **Attributes:**

    - `errors`: by field, or of the energy; empty where nothing is known.
    - `test_loss`: at held-out samples, None where there are none.
    - `observables`: by name, the acceptance and the bad walkers of a Markov chain among them.
    """

    errors: dict[str, float] = field(default_factory=dict)
    test_loss: float | None = None
    observables: dict[str, float] = field(default_factory=dict)


class Evaluator:
    """Compiled once for a task, used for all its runs.

    **Arguments:** `task`; `problem`, as the recipe trains it, by default the task's own; `counts`, points of the grid
    along each coordinate, by default those of the reference, or `GRID`; `points`, held-out points inside the domain.
    """

    def __init__(self, task: Task, problem: Any = None, counts: Sequence[int] | None = None, points: int = TEST_POINTS):
        self.task, self.problem = task, task.problem if problem is None else problem
        self.solution = solution_of(task, counts)
        self._compare = comparison_of(task, counts, points, self.solution)
        self._held_out = held_out_loss(task, points)
        observables = {**getattr(self.problem, "observables", {}), **task.observables}
        self._observables = {name: jax.jit(f) for name, f in observables.items()}

    def __call__(self, params: PyTree, samples: Any, loss: float, pretraining: bool = False) -> Evaluation:
        """**Arguments:** parameters, the samples of the last step, and its loss, which is not compared with the
        reference energy while `pretraining`.

        **Returns:** an `Evaluation`.
        """
        errors = {} if self._compare is None else relative_errors(self._compare(params))
        if self.task.energy is not None and not pretraining:
            errors["energy"] = loss - self.task.energy
        test_loss = None if self._held_out is None else self._held_out(params)
        seen = {name: float(f(params)) for name, f in self._observables.items()}
        return Evaluation(errors, test_loss, self._chain(params, samples, pretraining) | seen)

    def _chain(self, params: PyTree, walkers: Any, pretraining: bool) -> dict[str, float]:
        """How a Markov chain does."""
        if not hasattr(walkers, "acceptance"):
            return {}
        found = {"acceptance": float(walkers.acceptance), "respawned": float(walkers.respawned)}
        if pretraining or not hasattr(self.problem, "local_energies"):
            return found
        return found | {"masked": float(_masked(self.problem, params, walkers.x))}


@eqx.filter_jit
def _masked(problem: Any, params: PyTree, xs: Any) -> Any:
    return jnp.sum(~jnp.isfinite(problem.local_energies(params, xs)))


def held_out_loss(task: Task, points: int = TEST_POINTS) -> Callable[[PyTree], float] | None:
    """The loss at samples that no optimiser sees; None where there are none.

    **Arguments:** `task`; `points` inside its domain, and a quarter as many of each condition.

    **Returns:** a function of the parameters.
    """
    samples = task.held_out
    if samples is None and hasattr(task.problem, "places"):
        from angd.problems.pinn import Sobol

        counts = task.counts(points, max(points // 4, 1))
        samples = Sobol(**counts)(jax.random.key(TEST_KEY), task.problem, None)
    if samples is None or not (task.is_residual or hasattr(task.problem, "loss")):
        return None
    compiled = jax.jit(lambda params: _loss(task, params, samples))
    return lambda params: float(compiled(params))


def _loss(task: Task, params: PyTree, samples: Any) -> Any:
    if hasattr(task.problem, "loss"):
        return task.problem.loss(params, samples)
    from angd.method.metrics import Energy

    return Energy().loss(task.problem, params, samples)


def comparison_of(
    task: Task, counts: Sequence[int] | None, points: int, solution: Callable[[PyTree], Solution] | None
) -> Callable[[PyTree], Solution] | None:
    """Where errors are measured, None where nothing is exact: on the grid that is drawn, or, in more than two
    dimensions, all over the domain.

    **Arguments:** `task`; `counts`, of a grid that somebody asked for; `points` inside the domain; `solution`, on the
    grid.

    **Returns:** a function of the parameters.
    """
    if task.exact is None or counts is not None or getattr(_domain(task), "dimension", 0) <= len(GRID):
        return solution if task.exact is not None or task.reference is not None else None
    from angd.problems.pinn import Sobol

    z = np.asarray(Sobol().draw(jax.random.key(TEST_KEY), _domain(task), points))
    return _on_points(task, z, _exact(task, z))


def _domain(task: Task) -> Any:
    return getattr(task.problem, "domain", None)


def solution_of(task: Task, counts: Sequence[int] | None = None) -> Callable[[PyTree], Solution] | None:
    """The fields on a grid, beside the exact ones where they are known; None where there is nothing to draw.

    **Arguments:** `task`; `counts`, points of the grid along each coordinate.

    **Returns:** a function of the parameters.
    """
    if not hasattr(task.problem, "field"):
        return None
    z, exact = _known(task, counts)
    if z is None:
        return None
    return _on_points(task, z, exact)


def _on_points(task: Task, z: np.ndarray, exact: dict[str, np.ndarray]) -> Callable[[PyTree], Solution]:
    """The fields at points, beside the exact ones."""
    compiled = jax.jit(lambda params: task.field(params, jnp.asarray(z)).reshape(len(z), -1))
    outside = _outside(task, z)
    exact = {name: np.where(outside, np.nan, values) for name, values in exact.items()}

    def solution(params: PyTree) -> Solution:
        columns = np.where(outside, np.nan, np.asarray(compiled(params)).T)
        names = task.fields or (tuple(exact) if exact else field_names(len(columns)))
        return together(z, dict(zip(names, columns, strict=True)), exact, task.coordinates)

    return solution


def _outside(task: Task, z: np.ndarray) -> np.ndarray:
    """Which points are not in the domain, where it is not a box."""
    region: Any = getattr(task.problem, "domain", None)
    if task.reference is not None or not hasattr(region, "distance"):
        return np.zeros(len(z), bool)
    from angd.problems.pinn.regions import outside

    return outside(region, z)


def field_names(count: int) -> tuple[str, ...]:
    """u, or u₁, u₂, …"""
    return ("u",) if count == 1 else tuple(f"u{i}" for i in range(1, count + 1))


def _known(task: Task, counts: Sequence[int] | None) -> tuple[np.ndarray | None, dict[str, np.ndarray]]:
    """Points to draw at, and exact values by field."""
    if task.reference is not None:
        z, values = _reference(task, counts)
        return _checked(task, np.asarray(z), {name: np.asarray(value) for name, value in values.items()})
    z = grid(task, counts)
    if z is None or task.exact is None:
        return z, {}
    return z, _exact(task, z)


def _exact(task: Task, z: np.ndarray) -> dict[str, np.ndarray]:
    """The exact solution at points, by field."""
    assert task.exact is not None
    columns = np.asarray(jax.vmap(task.exact)(jnp.asarray(z))).reshape(len(z), -1).T
    return dict(zip(task.fields or field_names(len(columns)), columns, strict=True))


def _checked(task: Task, z: np.ndarray, values: dict[str, np.ndarray]) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Refuse a reference of the wrong shape."""
    dimension = getattr(_domain(task), "dimension", z.shape[-1] if z.ndim else 0)
    if z.ndim != 2 or z.shape[1] != dimension:
        raise ValueError(f"{task.name}: its reference needs points of shape (N, {dimension}), got {z.shape}.")
    wrong = next((name for name, value in values.items() if value.shape != z.shape[:1]), None)
    if wrong is not None:
        raise ValueError(
            f"{task.name}: its reference needs one value of {wrong!r} at each of the {len(z)} points, got shape "
            f"{values[wrong].shape}."
        )
    return z, values


def _reference(task: Task, counts: Sequence[int] | None) -> Any:
    if counts is None or not callable(task.reference):
        if counts is not None:
            raise ValueError(f"{task.name}: its reference is known at its own points only; leave the grid out.")
        return task.reference() if callable(task.reference) else task.reference
    try:
        inspect.signature(task.reference).bind(counts)
    except TypeError:
        raise ValueError(f"{task.name}: its reference takes no grid, reference(counts); leave the grid out.") from None
    return task.reference(counts)  # pyright: ignore[reportCallIssue]


def grid(task: Task, counts: Sequence[int] | None = None) -> np.ndarray | None:
    """Even points of the domain: along its first two coordinates, the others in the middle of their intervals."""
    intervals = getattr(getattr(task.problem, "domain", None), "intervals", None)
    if not intervals:
        return None
    usual = GRID[min(len(intervals), 2)]
    if counts is not None and len(counts) != len(usual):
        raise ValueError(f"{task.name}: its grid takes {len(usual)} numbers of points, got {len(counts)}.")
    counts = usual if counts is None else counts
    axes = [np.linspace(a, b, n) for (a, b), n in zip(intervals, counts, strict=False)]
    axes += [np.array([(a + b) / 2]) for a, b in intervals[2:]]
    return np.stack([part.ravel() for part in np.meshgrid(*axes, indexing="ij")], axis=1)
