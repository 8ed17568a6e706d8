"""How many bytes a step may take: one budget, which every choice of form and chunk goes by.

    budget()                 in force here: that of `limited`, or what the device has
    with limited("8 GiB"):   another one, for whatever is traced inside
    share()                  of the budget: the most that a Jacobian may hold
    crowded(k, dtype)        does a k × k matrix leave no room for copies of itself?

The default is a fixed part of the device's memory, not what happens to be free: a choice that changed with the other
programs on the machine would change the last digits of a run that is resumed.
"""

import math
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

KIB, GIB = 2**10, 2**30
UNITS = {"": 1, "B": 1, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
UNITS |= {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
PART = 0.75  # of the memory of a computer, the rest being for the system and the compiler
ACCELERATOR = 0.9  # of what an accelerator's allocator may hand out
JACOBIAN = 4  # a matrix, its columns before they are joined, and the centred one
COPIES = 4  # A, L and what building a kernel and factorising it hold beside them
UNKNOWN = 8 * GIB  # where the system does not say

_limit: list[int] = []


def in_bytes(memory: Any, owner: str = "memory") -> int:
    """A number of bytes, or a text such as "8 GiB" or "500MB".

    **Arguments:**

    - `memory`: the number or text.
    - `owner`: who is told off.

    **Returns:** bytes.
    """
    if isinstance(memory, str):
        match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+(?:[eE][0-9]+)?)\s*([A-Za-z]*)\s*", memory)
        unit = UNITS.get(match[2].upper()) if match else None
        if match is None or unit is None:
            raise ValueError(f'{owner} must be a number of bytes or a text such as "8 GiB", got {memory!r}.')
        memory = float(match[1]) * unit
    if isinstance(memory, bool) or not isinstance(memory, int | float) or not 1 <= memory < math.inf:
        raise ValueError(f'{owner} must be a number of bytes ≥ 1 or a text such as "8 GiB", got {memory!r}.')
    return int(memory)


def written(size: float) -> str:
    """Bytes as a text: 3.2 GB are "2.98 GiB"."""
    power = min(int(math.log2(max(size, 1)) / 10), 4)
    return f"{size / 2 ** (10 * power):.3g} {('B', 'KiB', 'MiB', 'GiB', 'TiB')[power]}"


def budget() -> int:
    """Bytes that a step may take, in force where this is called."""
    return _limit[-1] if _limit else device_memory()


def is_set() -> bool:
    """Has somebody said how much?"""
    return bool(_limit)


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
