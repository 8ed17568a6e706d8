"""When a goal is reached for good."""

from collections.abc import Sequence


def settled(values: Sequence[float | None], goal: float) -> int | None:
    """The index from which on values stay at or below a goal; what is not a number is above."""
    above = [i for i, value in enumerate(values) if value is None or not value <= goal]
    first = above[-1] + 1 if above else 0
    return first if first < len(values) else None
