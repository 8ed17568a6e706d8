"""How configurations are printed: names and numbers, as one would write them."""

from dataclasses import fields
from typing import Any

import equinox as eqx
import numpy as np

from angd.flow.coefficients import ARGFlow
from angd.flow.schedules import is_concrete


def described(x: Any) -> str:
    """`Name(field=value, …)`; scalars as numbers, whatever array holds them."""
    if isinstance(x, ARGFlow):
        return str(x)
    if isinstance(x, eqx.Module):
        return f"{type(x).__name__}({', '.join(f'{f.name}={described(getattr(x, f.name))}' for f in fields(x))})"
    if isinstance(x, tuple | list):
        return f"[{', '.join(map(described, x))}]"
    if eqx.is_array(x):
        return f"{np.asarray(x).item():g}" if is_concrete(x) and x.size == 1 else f"array{x.shape}"
    return getattr(x, "__qualname__", type(x).__name__) if callable(x) else str(x)
