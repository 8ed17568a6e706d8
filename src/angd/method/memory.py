"""How many bytes a step may take: one budget, which every choice of form and chunk goes by.

    budget()                 in force here: that of `limited`, or what the device has
    with limited("8 GiB"):   another one, for whatever is traced inside
    share()                  of the budget: the most that a Jacobian may hold
    crowded(k, dtype)        does a k × k matrix leave no room for copies of itself?
    with choices() as found: what was chosen while something was traced inside, and why

The default is a fixed part of the device's memory, not what happens to be free: a choice that changed with the other
programs on the machine would change the last digits of a run that is resumed.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from angd.sizes import in_bytes, written

PART = 0.75  # of the memory of a computer, the rest being for the system and the compiler
ACCELERATOR = 0.9  # of what an accelerator's allocator may hand out
JACOBIAN = 4  # a matrix, its columns before they are joined, and the centred one
COPIES = 4  # A, L and what building a kernel and factorising it hold beside them
UNKNOWN = 8 * 2**30  # where the system does not say

_limit: list[int] = []


class Choice(NamedTuple):
    """What was chosen by the budget: the array in question, its bytes, and why it is held so."""

    what: str
    size: int
    why: str

    def __str__(self) -> str:
        return f"{self.what}, {written(self.size)}: {self.why}"


_chosen: list[Choice] = []
MANY = 64  # choices that are remembered


def budget() -> int:
    """Bytes that a step may take, in force where this is called."""
    return _limit[-1] if _limit else device_memory()


@contextmanager
def limited(memory: Any = None) -> Iterator[None]:
    """Another budget for whatever is traced inside; None changes nothing."""
    if memory is None:
        yield
        return
    _limit.append(in_bytes(memory))
    try:
        yield
    finally:
        _limit.pop()


def note(what: str, size: float, why: str) -> None:
    """Remember a choice, once, for `choices` and `largest`."""
    choice = Choice(what, int(size), why)
    if choice not in _chosen:
        _chosen[:] = [*_chosen[1 - MANY :], choice]


@contextmanager
def choices() -> Iterator[list[Choice]]:
    """The choices that are made while something is traced inside."""
    before, found = list(_chosen), []
    _chosen.clear()
    try:
        yield found
    finally:
        found.extend(_chosen)
        _chosen[:] = [*(choice for choice in before if choice not in _chosen), *_chosen][-MANY:]


def largest() -> Choice | None:
    """The largest array that was spoken of."""
    return max(_chosen, key=lambda choice: choice.size, default=None)


def share() -> float:
    """Bytes that a Jacobian may hold."""
    return budget() / JACOBIAN


def matrix_bytes(k: int, dtype: Any) -> int:
    """Of a k × k matrix."""
    return k * k * jnp.dtype(dtype).itemsize


def crowded(k: int, dtype: Any) -> bool:
    """Does a k × k matrix leave no room for copies of itself?"""
    return COPIES * matrix_bytes(k, dtype) > budget() / 2


def refuse(what: str, size: float, instead: str) -> None:
    """Raise where `what` would not fit, in a sentence with the estimate and the way out."""
    if size > budget():
        raise ValueError(
            f"{what} would take {written(size)}, and a step may take {written(budget())}: {instead}, or raise memory=."
        )


def device_memory() -> int:
    """What the device has, less a margin."""
    device = jax.devices()[0]
    if device.platform != "cpu":
        return int(ACCELERATOR * ((device.memory_stats() or {}).get("bytes_limit") or UNKNOWN))
    return int(PART * computer_memory())


def computer_memory() -> int:
    """Of this computer, or of the container that the process may not leave."""
    found = [limit for limit in (_physical(), *map(_group, GROUPS)) if limit]
    return min(found, default=UNKNOWN)


GROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def _physical() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def _group(place: str) -> int | None:
    """The limit of a container, None where there is none."""
    try:
        text = Path(place).read_text(encoding="utf-8").strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None


def shortage(error: BaseException) -> str | None:
    """What to do about an error that says there is no memory left, in a sentence; None for other errors."""
    if not isinstance(error, MemoryError) and not any(word in str(error) for word in EXHAUSTED):
        return None
    most = largest()
    array = "" if most is None else f"; the largest array that is known of is {most.what}, {written(most.size)}"
    return (
        f"there was no memory left on {jax.devices()[0].device_kind}{array}. A step was to stay below "
        f"{written(budget())}: lower memory= (--memory-limit) for forms that hold less, or take fewer samples"
    )


EXHAUSTED = ("RESOURCE_EXHAUSTED", "Out of memory", "out of memory", "bad_alloc")
