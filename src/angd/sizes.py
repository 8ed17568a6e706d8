"""Numbers of bytes as people write them. Nothing heavy: the command line reads them."""

import math
import re
from typing import Any

UNITS = {"": 1, "B": 1, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
UNITS |= {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


def in_bytes(memory: Any, owner: str = "memory") -> int:
    """A number of bytes, or a text such as "8 GiB" or "500MB".

    **Arguments:**

    - `memory`: the number or text.
    - `owner`: who is told off.

    **Returns:** bytes.
    """
    given = memory
    if isinstance(memory, str):
        match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+(?:[eE][0-9]+)?)\s*([A-Za-z]*)\s*", memory)
        unit = UNITS.get(match[2].upper()) if match else None
        memory = None if match is None or unit is None else float(match[1]) * unit
    if isinstance(memory, bool) or not isinstance(memory, int | float) or not 1 <= memory < math.inf:
        raise ValueError(f'{owner} must be a number of bytes, 1 at least, or a text such as "8 GiB", got {given!r}.')
    return int(memory)


def written(size: float) -> str:
    """Bytes as a text: 3.2e9 are "2.98 GiB"."""
    power = min(int(math.log2(max(size, 1)) / 10), 4)
    return f"{size / 2 ** (10 * power):.3g} {('B', 'KiB', 'MiB', 'GiB', 'TiB')[power]}"
