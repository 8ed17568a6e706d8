"""A jitted function whose first arguments stay as they are from step to step.

`eqx.filter_jit` sorts all its arguments into arrays and the rest at every call, which a short step of Adam can feel.
Here optimiser, sampler and problem are sorted once; what changes from step to step consists of arrays alone.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax


class Compiled:
    """`function(*fixed, *moving)`, compiled.

    Two objects with the same function and equal fixed arguments share what is compiled.

    **Arguments:**

    - `function`: pure and traceable.
    - `fixed`: its first arguments, pytrees of anything; arrays among them are traced, the rest is hashed.
    """

    def __init__(self, function: Callable[..., Any], *fixed: Any):
        self._arrays, rest = eqx.partition(fixed, eqx.is_array)
        self._rest = _Rest(function, rest)

    def __call__(self, *moving: Any) -> Any:
        return _call(self._rest, self._arrays, *moving)

    def shares(self, other: "Compiled") -> bool:
        """Whether what is compiled for one serves the other: they differ in the values of arrays at most."""
        return self._rest == other._rest and _shapes(self._arrays) == _shapes(other._arrays)

    def ahead(self, *moving: Any) -> Any:
        """What XLA makes for arguments like these: call it by `with_arrays`."""
        return _call.lower(self._rest, self._arrays, *moving).compile()

    def with_arrays(self, compiled: Any) -> Callable[..., Any]:
        """What was compiled ahead, as a function of the moving arguments."""
        return partial(compiled, self._arrays)


def _shapes(tree: Any) -> list[Any]:
    return [(leaf.shape, leaf.dtype, leaf.weak_type) for leaf in jax.tree.leaves(tree)]


class _Rest:
    """What is not an array, as a key: hashed once."""

    def __init__(self, function: Callable[..., Any], tree: Any):
        leaves, structure = jax.tree.flatten(tree)
        self.function, self.tree = function, tree
        self._key = (function, tuple(leaves), structure)
        self._hash = hash(self._key)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, _Rest) and self._key == other._key)


@partial(jax.jit, static_argnums=0)
def _call(rest: _Rest, arrays: Any, *moving: Any) -> Any:
    return rest.function(*eqx.combine(arrays, rest.tree), *moving)
