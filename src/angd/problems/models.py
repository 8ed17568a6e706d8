"""Models of other frameworks as what problems ask of one: first parameters, and a function of them.

    as_model(module)              Equinox, Flax NNX or Linen → `init(key, dimension)` and `model(params, x)`
    Frozen(model, params, mask)   a part of the parameters stays as it is
    a function f(params, x)       is a model already

A natural gradient differentiates one sample at a time, so a model must be a function of parameters and one point.
Running means, random numbers and other state are refused with a sentence. Nothing of a framework is imported unless the
user has done so.
"""

import sys
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

REMEDY = (
    "freeze it (statistics at their running values, dropout off) and give a function f(params, x) of the trained "
    "parameters alone"
)


def as_model(module: Any) -> Any:
    """A module of a framework as a model: `model.init(key, dimension)` gives parameters, `model(params, x)` the values.

    Modules of Equinox and NNX have parameters already, and `init` returns those; modules of Linen draw theirs with the
    key. What is a model, a `Network` for one, comes back as it is. Inside a differential equation it is done for you:
    `Problem(eqx.nn.MLP(…), …)`.

    **Arguments:**

    - `module`: an `equinox.Module` or a `flax.nnx.Module` that is called as `module(x)`, a `flax.linen.Module`, or a
      model.

    **Returns:** a model. State (batch statistics, dropout) raises ValueError.

    **Example:** `model = angd.as_model(mlp); params = model.init(key, 2)`
    """
    if _is(module, "flax.linen", "Module"):
        return _Linen(module)
    if _is(module, "flax.nnx", "Module"):
        return _Nnx.of(module)
    if isinstance(module, eqx.Module) and not hasattr(module, "init"):
        return _Equinox.of(module)
    return module


class Frozen(eqx.Module):
    """A model of which only a part is trained: the rest of the parameters are constants.

    **Arguments:**

    - `model`: called as `model(params, x)`: a function, or what `as_model` returns.
    - `params`: all of its parameters.
    - `mask`: which are trained: a pytree of the structure of `params`, or of its upper part, with True and False.

    **Returns:** called as `frozen(trained, x)`, the values of the model; `frozen.init(key, dimension)` gives the
    trained parameters, and `frozen.whole(trained)` all of them.

    **Example:** `Frozen(model, params, {"body": False, "head": True})`
    """

    model: Callable[..., Any]
    trained: PyTree
    constant: PyTree

    def __init__(self, model: Callable[..., Any], params: PyTree, mask: PyTree):
        self.model = model
        self.trained, self.constant = eqx.partition(params, _spread(mask, params))

    def init(self, key: Any = None, dimension: int | None = None) -> PyTree:
        """The trained parameters, as they were given."""
        return self.trained

    def whole(self, trained: PyTree) -> PyTree:
        """All parameters."""
        return eqx.combine(trained, self.constant)

    def __call__(self, trained: PyTree, x: Any) -> Array:
        return self.model(self.whole(trained), x)


def _spread(mask: PyTree, params: PyTree) -> PyTree:
    """True or False for every leaf of the parameters."""
    try:
        spread = jax.tree.map(lambda flag, part: jax.tree.map(lambda _: flag, part), mask, params)
    except (ValueError, TypeError, KeyError):
        raise ValueError(
            f"Frozen: the mask has the structure {jax.tree.structure(mask)}, which is no upper part of that of the "
            f"parameters, {jax.tree.structure(params)}."
        ) from None
    flags = jax.tree.leaves(spread)
    if not all(isinstance(flag, bool) for flag in flags):
        raise ValueError("Frozen: a mask has True for what is trained and False for what is not, and nothing else.")
    if not any(flags):
        raise ValueError("Frozen: the mask has no True: nothing would be trained.")
    return spread


class _Equinox(eqx.Module):
    """An Equinox module, its floating-point arrays apart."""

    params: PyTree
    rest: PyTree

    @classmethod
    def of(cls, module: Any) -> "_Equinox":
        indices = jax.tree.leaves(module, is_leaf=lambda leaf: isinstance(leaf, eqx.nn.StateIndex))
        if any(isinstance(leaf, eqx.nn.StateIndex) for leaf in indices):
            raise ValueError(f"as_model: {type(module).__name__} keeps state (eqx.nn.State): {REMEDY}.")
        if not callable(module):
            raise ValueError(f"as_model: a {type(module).__name__} is not called as module(x): define __call__.")
        return cls(*eqx.partition(module, eqx.is_inexact_array))

    def init(self, key: Any = None, dimension: int | None = None) -> PyTree:
        return self.params

    def __call__(self, params: PyTree, x: Float[Array, " D"]) -> Array:
        return eqx.combine(params, self.rest)(x)


class _Nnx(eqx.Module):
    """An NNX module, split into its parameters, a plain dictionary, and its graph."""

    params: PyTree
    graph: Any = eqx.field(static=True)

    @classmethod
    def of(cls, module: Any) -> "_Nnx":
        from flax import nnx

        graph, params, rest = nnx.split(module, nnx.Param, ...)
        kinds = sorted({type(leaf).__name__ for _, leaf in nnx.to_flat_state(rest)})
        if kinds:
            raise ValueError(f"as_model: {type(module).__name__} keeps state ({', '.join(kinds)}): {REMEDY}.")
        return cls(nnx.to_pure_dict(params), graph)

    def init(self, key: Any = None, dimension: int | None = None) -> PyTree:
        return self.params

    def __call__(self, params: PyTree, x: Float[Array, " D"]) -> Array:
        from flax import nnx

        return nnx.merge(self.graph, nnx.State(params))(x)


class _Linen(eqx.Module):
    """A Linen module, which has no parameters before it is initialised."""

    module: Any = eqx.field(static=True)

    def init(self, key: Array, dimension: int) -> PyTree:
        variables = self.module.init(key, jnp.zeros(dimension))
        kinds = sorted(set(variables) - {"params"})
        if kinds:
            raise ValueError(f"as_model: {type(self.module).__name__} keeps state ({', '.join(kinds)}): {REMEDY}.")
        return variables["params"]

    def __call__(self, params: PyTree, x: Float[Array, " D"]) -> Array:
        return self.module.apply({"params": params}, x)


def _is(thing: Any, package: str, name: str) -> bool:
    """Is it of a class of a package? Nobody has such an object who has not imported the package."""
    found = sys.modules.get(package)
    return found is not None and isinstance(thing, getattr(found, name))
