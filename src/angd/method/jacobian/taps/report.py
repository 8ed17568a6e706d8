"""Tell the user, once, which matrices are differentiated without factors."""

import warnings
from collections.abc import Callable
from typing import Any

from angd.method.jacobian.taps.walk import LINEAR

_told: set[tuple[Any, str]] = set()


def report(f: Callable[..., Any], probed: dict[int, list[str]], names: list[str], ndims: list[int]) -> None:
    """Warn once per function and leaf: vectors and scalars have no factors to lose, sums and products are known."""
    for leaf, primitives in sorted(probed.items()):
        foreign = sorted(set(primitives).difference(LINEAR))
        if foreign and ndims[leaf] > 1:
            _tell(getattr(f, "func", f), names[leaf], " and ".join(f"`{primitive}`" for primitive in foreign))


def _tell(f: Any, leaf: str, primitives: str) -> None:
    # A closure made anew at every step shares its code, and should not speak again.
    key = (getattr(f, "__code__", type(f)), leaf)
    if key in _told:
        return
    _told.add(key)
    name = getattr(f, "__qualname__", type(f).__qualname__)
    warnings.warn(
        f"the parameter {leaf} of {name} passes through {primitives}, which taps do not follow: "
        "its derivative is taken by plain reverse mode, exact but without layer factors.",
        stacklevel=2,
    )
