"""A number with its error bar, as an inverse problem ends with."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple


class Estimate(NamedTuple):
    """What was found, and one standard deviation of it.

    **Arguments:**

    - `value`: a number or an array.
    - `error`: of the same shape; an infinite one says that the measurements leave the value open.
    """

    value: Any
    error: Any

    def __str__(self) -> str:
        if hasattr(self.value, "shape") and self.value.shape:
            return "[" + ", ".join(str(Estimate(*pair)) for pair in zip(self.value, self.error, strict=True)) + "]"
        if not 0 < self.error < math.inf:
            return f"{self.value:.6g} ± {self.error:g}"
        digits = max(1 - math.floor(math.log10(self.error)), 0)
        if digits > 6:
            return f"{self.value:.{max(digits + _exponent(self.value), 1)}e} ± {self.error:.1e}"
        return f"{self.value:.{digits}f} ± {self.error:.{digits}f}"


def _exponent(value: float) -> int:
    return math.floor(math.log10(abs(value))) if value else 0


def to_json(estimates: Mapping[str, Estimate]) -> dict[str, Any]:
    """As `summary.json` has them: null where there is no finite number."""
    return {
        name: {"value": _plain(estimate.value), "error": _plain(estimate.error)} for name, estimate in estimates.items()
    }


def from_json(found: Mapping[str, Any]) -> dict[str, Estimate]:
    """And back."""
    import numpy as np

    def array(value: Any) -> Any:
        return np.nan_to_num(np.array(value, float), nan=np.inf)[()]

    return {name: Estimate(array(pair["value"]), array(pair["error"])) for name, pair in found.items()}


def _plain(value: Any) -> Any:
    if hasattr(value, "shape") and value.shape:
        return [_plain(part) for part in value]
    return float(value) if math.isfinite(value) else None
