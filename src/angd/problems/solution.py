"""The solution of a differential equation as arrays: points `z`, for each field `NAME found`, and perhaps `NAME exact`.

`coordinates` are the names of the columns of `z`.
"""

from collections.abc import Mapping, Sequence

import numpy as np

Solution = Mapping[str, np.ndarray]
FOUND, EXACT = " found", " exact"


def together(
    z: np.ndarray,
    found: Mapping[str, np.ndarray],
    exact: Mapping[str, np.ndarray],
    coordinates: Sequence[str] | None = None,
) -> Solution:
    """As it is kept."""
    names = coordinates or ([f"z{i}" for i in range(z.shape[1])] if z.shape[1] > 1 else ["x"])
    return (
        {"z": z, "coordinates": np.array(names)}
        | {name + FOUND: values for name, values in found.items()}
        | {name + EXACT: values for name, values in exact.items()}
    )


def fields(solution: Solution) -> dict[str, tuple[np.ndarray, np.ndarray | None]]:
    """What was found and what is exact (None where that is not known), by name."""
    names = [key.removesuffix(FOUND) for key in solution if key.endswith(FOUND)]
    return {name: (solution[name + FOUND], solution.get(name + EXACT)) for name in names}


def relative_errors(solution: Solution) -> dict[str, float]:
    """‖found − exact‖ / ‖exact‖ by field, for those that are known, over the points of the domain.

    Points of the grid outside are NaN in `exact`.
    """
    norm, errors = np.linalg.norm, {}
    for name, (found, exact) in fields(solution).items():
        if exact is not None:
            inside = ~np.isnan(exact)
            errors[name] = float(norm((found - exact)[inside]) / norm(exact[inside]))
    return errors


def differences(solutions: Sequence[Solution]) -> dict[str, float]:
    """How far solutions of several seeds are apart, by field: the largest ‖u − ū‖ / ‖ū‖ from their mean ū.

    Where no exact solution is known, this estimates the error, if seeds do not err alike.
    """
    found: dict[str, float] = {}
    for name in fields(solutions[0]):
        values = np.stack([solution[name + FOUND] for solution in solutions])
        values = values[:, ~np.isnan(values).all(axis=0)]  # points outside the domain
        mean = values.mean(axis=0)
        found[name] = float(max(np.linalg.norm(value - mean) for value in values) / np.linalg.norm(mean))
    return found
