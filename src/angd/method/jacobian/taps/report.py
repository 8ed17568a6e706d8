"""Tell the user, once, which matrices are differentiated without factors."""

import math
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from angd.method.jacobian.taps.walk import LINEAR, TRIPS

WHOLE = 1024  # entries of a leaf without factors that KFAC takes as one exact block
_told: set[tuple[Any, str]] = set()


def report(
    f: Callable[..., Any], probed: dict[int, list[str]], names: list[str], shapes: Sequence[tuple[int, ...]]
) -> None:
    """Warn once per function and leaf: vectors and scalars have no factors to lose, sums and products are known."""
    for leaf, primitives in sorted(probed.items()):
        foreign = Counter(primitive for primitive in primitives if primitive not in LINEAR)
        if foreign and len(shapes[leaf]) > 1:
            uses = " and ".join(f"`{use}`{'' if n == 1 else f' ({n} times)'}" for use, n in sorted(foreign.items()))
            _tell(getattr(f, "func", f), names[leaf], uses, math.prod(shapes[leaf]))


def _tell(f: Any, leaf: str, uses: str, size: int) -> None:
    # A closure made anew at every step shares its code, and should not speak again.
    key = (getattr(f, "__code__", type(f)), leaf)
    if key in _told:
        return
    _told.add(key)
    name = getattr(f, "__qualname__", type(f).__qualname__)
    warnings.warn(
        f"the parameter {leaf} of {name} passes through {uses}, which taps do not follow (loops up to {TRIPS} steps "
        "are): its derivative is taken by plain reverse mode, exact but without layer factors, and KFAC will take "
        f"{'one exact block' if size <= WHOLE else 'the diagonal of G'} for its {size} entries.",
        stacklevel=2,
    )
