"""Means of observables over walkers, with error bars that know about autocorrelation.

An observable is a function of one walker, f(x), or f(params, x) where it needs the wave function; it gives a number or
an array, and each of its components gets an error of its own. Walkers are averaged in groups before they are kept: a
group's mean forgets as slowly as a walker does, and a density of a thousand cells still fits into memory.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, PyTree, Shaped

from angd.problems.estimate import Estimate, to_json
from angd.problems.statistics import autocorrelation_time

GROUPS = 32  # of walkers, whose means are kept
CHUNK = 64  # walkers at a time
Functions = Mapping[str, Callable[[PyTree, Array], Array]]


class OfPlace(eqx.Module):
    """f(x) as a function of parameters and place."""

    f: Callable[[Array], Any]

    def __call__(self, params: PyTree, x: Array) -> Any:
        return self.f(x)


def functions_of(observables: Any) -> Functions:
    """All as functions of (params, x), by name."""
    if observables is not None and not isinstance(observables, Mapping):
        raise ValueError(f'observables must be a dictionary, such as {{"radius": f}}, got {observables!r}.')
    return {name: _of_both(name, f) for name, f in (observables or {}).items()}


def _of_both(name: str, f: Any) -> Callable[[PyTree, Array], Any]:
    if not callable(f) or isinstance(f, type):
        raise ValueError(f"The observable {name!r} must be a function of one walker x, or of (params, x), got {f!r}.")
    try:
        known = inspect.signature(f).parameters.values()
    except ValueError:  # compiled functions do not always tell
        return OfPlace(f)
    places = [p for p in known if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty]
    if len(places) not in (1, 2):
        raise ValueError(f"The observable {name!r} must take x, or params and x, and takes {len(places)} arguments.")
    return OfPlace(f) if len(places) == 1 else f


def check_functions(functions: Functions, params: PyTree, xs: Any) -> None:
    """Refuse what is no observable, before any work; xs are walkers, or their shape."""
    x = jax.ShapeDtypeStruct(xs.shape[1:], xs.dtype)
    for name, f in functions.items():
        try:
            found = jax.eval_shape(f, params, x)
        except Exception as error:
            raise ValueError(
                f"The observable {name!r} fails at one walker of shape {x.shape}: {type(error).__name__}: "
                f"{str(error).partition(chr(10))[0]}"
            ) from error
        if not hasattr(found, "shape"):
            raise ValueError(f"The observable {name!r} must give a number or an array, got {type(found).__name__}.")


def group_means(functions: Functions, params: PyTree, xs: Shaped[Array, "N *x"]) -> dict[str, tuple[Array, Array]]:
    """Mean of the finite values of each group, and how many there are, by name."""
    values = lax.map(
        lambda x: {name: jnp.real(f(params, x)) for name, f in functions.items()},
        xs,
        batch_size=min(CHUNK, xs.shape[0]),
    )
    return {name: _grouped(value) for name, value in values.items()}


def _grouped(values: Shaped[Array, "N *c"]) -> tuple[Float[Array, "G *c"], Float[Array, "G *c"]]:
    N, values = values.shape[0], values.astype(jnp.result_type(values, jnp.float32))
    count = min(N, GROUPS)
    good, group = jnp.isfinite(values), jnp.arange(N) % count
    total, known = (
        jax.ops.segment_sum(part.astype(values.dtype), group, count) for part in (jnp.where(good, values, 0), good)
    )
    return total / jnp.maximum(known, 1), known


def estimates_of(seen: Sequence[Mapping[str, tuple[Any, Any]]]) -> dict[str, Estimate]:
    """From the group means of all measurements, by name."""
    names = seen[0] if seen else ()
    return {name: estimated(*(np.stack([look[name][i] for look in seen]) for i in (0, 1))) for name in names}


def estimated(means: Float[np.ndarray, "T G *c"], counts: Float[np.ndarray, "T G *c"]) -> Estimate:
    """Mean and standard error of each component; a group of m walkers has 1/m of one's variance, and its memory."""
    means, counts = means.astype(float), counts.astype(float)
    total = counts.sum(axis=(0, 1))
    some = np.maximum(total, 1)
    value = np.sum(counts * means, axis=(0, 1)) / some
    single = np.sqrt(counts) * (means - value)
    error = np.sqrt(np.mean(single**2, axis=(0, 1)) * autocorrelation_time(single) / some)
    return Estimate(np.where(total > 0, value, np.nan)[()], np.where(total > 0, error, np.inf)[()])


def described(found: Mapping[str, Estimate], observables: Mapping[str, Any]) -> dict[str, Any]:
    """As JSON can hold them, with what an observable says of itself: its `unit`, and where its components are, `at`."""
    kept = to_json(found)
    return {name: kept[name] | _own_words(observable) for name, observable in observables.items()}


def _own_words(observable: Any) -> dict[str, Any]:
    known = {word: getattr(observable, word, None) for word in ("unit", "at")}
    return {word: value for word, value in known.items() if value is not None}
