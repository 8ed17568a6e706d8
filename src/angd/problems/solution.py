"""The solution of a differential equation as arrays: points `z`, and for every field `NAME found` and `NAME exact`."""

from collections.abc import Mapping

import numpy as np

Solution = Mapping[str, np.ndarray]
FOUND, EXACT = " found", " exact"


def together(z: np.ndarray, found: Mapping[str, np.ndarray], exact: Mapping[str, np.ndarray]) -> Solution:
    """As it is kept."""
    return {"z": z} | {name + FOUND: found[name] for name in exact} | {name + EXACT: exact[name] for name in exact}


def fields(solution: Solution) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """What was found and what is exact, by name."""
    names = [key.removesuffix(FOUND) for key in solution if key.endswith(FOUND)]
    return {name: (solution[name + FOUND], solution[name + EXACT]) for name in names}


def relative_errors(solution: Solution) -> dict[str, float]:
    """‖found − exact‖ / ‖exact‖ by field."""
    norm = np.linalg.norm
    return {name: float(norm(found - exact) / norm(exact)) for name, (found, exact) in fields(solution).items()}
