"""What devices tell each other in a compiled step: read off the program that XLA made."""

import re
from collections.abc import Iterator
from math import prod
from typing import NamedTuple

import jax.numpy as jnp

KINDS = ("all-reduce", "all-gather", "all-to-all", "reduce-scatter", "collective-permute", "collective-broadcast")
LINE = re.compile(rf"= (\(?[^=]*?) ({'|'.join(KINDS)})(?:-start)?\(")
SHAPE = re.compile(r"\b(pred|[a-z]+\d+)\[([\d,]*)\]")
SHORT = {"pred": "bool", "s": "int", "u": "uint", "f": "float", "c": "complex"}


class Message(NamedTuple):
    """One array that devices exchange in a step, as it arrives on each.

    **Attributes:** `kind`, such as "all-reduce"; `shape`; `bytes`.
    """

    kind: str
    shape: tuple[int, ...]
    bytes: int


def messages(program: str) -> list[Message]:
    """All arrays that devices exchange in one run of a program; those inside a loop count once.

    **Arguments:** `program`, the text of a compiled function, `compiled.as_text()`.

    **Returns:** a `Message` for each array.
    """
    return [message for line in program.splitlines() for message in _of_line(line)]


def _of_line(line: str) -> Iterator[Message]:
    found = LINE.search(re.sub(r"/\*.*?\*/", "", line))
    for dtype, sizes in SHAPE.findall(found[1]) if found else ():
        shape = tuple(map(int, sizes.split(","))) if sizes else ()
        yield Message(found[2] if found else "", shape, prod(shape) * _width(dtype))


def _width(dtype: str) -> int:
    letters = dtype.rstrip("0123456789")
    return jnp.dtype(SHORT.get(letters, letters) + dtype[len(letters) :]).itemsize
