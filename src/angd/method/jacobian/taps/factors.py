"""From a walk to factors: for each leaf, groups of uses (a, g) with ∂f/∂W = Σ_t a_t ⊗ g_t.

`taps` looks at the function once without perturbations, which fixes how many uses there are and how they pair, and once
with them, inside a single `vjp`: the activations come out beside the value and the cotangents from the pull-back.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.interpreters.partial_eval import dce_jaxpr
from jaxtyping import Array, Float, PyTree

from angd.method.jacobian.taps.biases import Bias, biases
from angd.method.jacobian.taps.report import report
from angd.method.jacobian.taps.views import Arrangement, View, disjoint, transposed
from angd.method.jacobian.taps.walk import Walk


class Group(eqx.Module):
    """Uses of one leaf that share an arrangement: ∂f_c/∂leaf = arrangementᵀ(Σ_t a[c, b, t, i] g[c, b, t, o]).

    **Attributes:**

    - `arrangement`: maps the leaf to (B, in, out).
    - `a`: activations; no axis of output components (c = 1) unless the function uses the transpose of the leaf as well.
      Under `vmap` with leading sample axes.
    - `g`: cotangents, likewise.
    - `biases`: leaves that are added to the outputs of some t and used nowhere else.
    """

    arrangement: Arrangement = eqx.field(static=True)
    a: Float[Array, "*n c B T in"]
    g: Float[Array, "*n m B T out"]
    biases: tuple[Bias, ...] = eqx.field(static=True, default=())


class Leaf(eqx.Module):
    """All uses of one parameter leaf.

    **Attributes:**

    - `name`: where the leaf is in the parameters.
    - `shape`: of the leaf.
    - `separate`: no entry of the leaf occurs twice among the groups' arrangements, so that their kernels add up without
      cross terms.
    - `groups`: its uses, those of one arrangement together.
    """

    name: str = eqx.field(static=True)
    shape: tuple[int, ...] = eqx.field(static=True)
    separate: bool = eqx.field(static=True)
    groups: tuple[Group, ...]


class Taps(eqx.Module):
    """Value of f and, for each leaf of the parameters in order, its factors.

    **Attributes:**

    - `value`: f there.
    - `leaves`: factors of each leaf of the parameters, in order.
    """

    value: Float[Array, "*n"]
    leaves: tuple[Leaf, ...]


@dataclass
class _Plan:
    """What looking at the function told: shapes of perturbations, probed leaves, and groups of taps per leaf."""

    outputs: list[jax.ShapeDtypeStruct]
    probed: list[int]
    groups: dict[int, list["_Members"]] = field(default_factory=dict)


@dataclass
class _Members:
    """Numbers of the taps of one group, each with whether it sees the transpose of the group's matrix."""

    arrangement: Arrangement
    taps: list[tuple[int, bool]]
    biases: tuple[Bias, ...] = ()


def taps(f: Callable[..., Any], params: PyTree, x: PyTree) -> Taps:
    """Factors of ∂f(params, x)/∂params at one sample x; `vmap` it over samples.

    Exact for every function JAX can differentiate: uses that have no factors go through reverse mode.

    **Arguments:**

    - `f`: `f(params, x)`, a scalar or a vector.
    - `params`: where to differentiate, a pytree of arrays.
    - `x`: one sample.

    **Returns:** `Taps`.
    """
    closed = jax.make_jaxpr(f)(params, x)
    # What nested derivatives leave unused would be tapped with a cotangent of zero.
    jaxpr, _ = dce_jaxpr(closed.jaxpr, [True] * len(closed.jaxpr.outvars), instantiate=True)
    named, _ = jax.tree_util.tree_flatten_with_path(params)
    leaves = [jnp.asarray(leaf) for _, leaf in named]
    names = [jax.tree_util.keystr(path) or "params" for path, _ in named]

    def walk(perturbations: list[Array] | None, probes: dict[int, Array]) -> tuple[Walk, Array]:
        step = Walk(perturbations)
        views = [_enter(i, leaf, probes) for i, leaf in enumerate(leaves)]
        (output,) = step.run(jaxpr, closed.consts, [*views, *jax.tree.leaves(x)])
        return step, step.finish(output)

    plan = _look(walk, f, names, leaves)
    value, a, g, probed = _differentiate(walk, plan, leaves)
    found = [_leaf(names[i], leaf, i, plan, a, g, probed) for i, leaf in enumerate(leaves)]
    return Taps(value, tuple(found))


def _enter(number: int, leaf: Array, probes: dict[int, Array]) -> View:
    probe = leaf + probes[number] if number in probes else leaf
    return View(number, Arrangement(leaf.shape), 1.0, leaf, probe)


def _look(walk: Callable[..., Any], f: Callable[..., Any], names: list[str], leaves: list[Array]) -> _Plan:
    """Evaluate abstractly: count the uses and pair them."""
    seen: list[Walk] = []

    def look() -> list[Array]:
        seen.append(walk(None, {})[0])
        return seen[0].outputs

    plan = _Plan(jax.eval_shape(look), sorted(seen[0].probed))
    for number, (leaf, contraction) in enumerate(seen[0].taps):
        _join(plan.groups.setdefault(leaf, []), contraction.arrangement, number)
    plan.groups = {leaf: [_orient(each, seen[0]) for each in groups] for leaf, groups in plan.groups.items()}
    report(f, seen[0].probed, names, [leaf.shape for leaf in leaves])
    return plan


def _join(groups: list[_Members], arrangement: Arrangement, number: int) -> None:
    """Put a tap into the group that holds the same matrix, or its transpose; else open a group."""
    for group in groups:
        turned = transposed(group.arrangement, arrangement)
        if turned is not None:
            group.taps.append((number, turned))
            return
    groups.append(_Members(arrangement, [(number, False)]))


def _orient(members: _Members, walk: Walk) -> _Members:
    """Find the biases, and turn the group so that they are added to its outputs."""
    turned = [(number, not transpose) for number, transpose in members.taps]
    flipped = _Members(members.arrangement.then(jax.lax.transpose, (0, 2, 1)), turned)
    for each in (members, flipped):
        each.biases = biases(walk, each.taps)
    return flipped if flipped.biases and not members.biases else members


def _differentiate(walk: Callable[..., Any], plan: _Plan, leaves: list[Array]) -> tuple[Any, ...]:
    """Value, activations, cotangents (m, B, T, out) of the taps, and gradients (m, ...) of the probed leaves."""
    zeros = [jnp.zeros(output.shape, output.dtype) for output in plan.outputs]
    probes = {i: jnp.zeros_like(leaves[i]) for i in plan.probed}
    folds: list[Callable[[Array], Array]] = []

    def value_and_activations(perturbations: list[Array], probes: dict[int, Array]) -> tuple[Array, list[Array]]:
        step, value = walk(perturbations, probes)
        folds[:] = [contraction.fold for _, contraction in step.taps]
        return value, [contraction.a for _, contraction in step.taps]

    value, pull, a = jax.vjp(value_and_activations, zeros, probes, has_aux=True)
    one_hot = jnp.eye(value.size, dtype=value.dtype).reshape(value.size, *value.shape)
    g, probed = jax.vmap(pull)(one_hot)
    return value, a, [jax.vmap(fold)(each) for fold, each in zip(folds, g, strict=True)], probed


def _leaf(name: str, leaf: Array, number: int, plan: _Plan, a: list[Array], g: list[Array], probed: Any) -> Leaf:
    members = plan.groups.get(number, [])
    groups = [_group(each, a, g, leaf.dtype) for each in members]
    if number in probed:
        groups.append(_probe_group(leaf, probed[number]))
    separate = disjoint([group.arrangement for group in groups])
    return Leaf(name, leaf.shape, separate, tuple(groups))


def _group(members: _Members, a: list[Array], g: list[Array], dtype: Any) -> Group:
    """Stack the uses along t; a transposed use exchanges the roles of activation and cotangent."""
    pairs = [(g[i], a[i][None]) if turned else (a[i][None], g[i]) for i, turned in members.taps]
    activations, cotangents = (_stack(side, dtype) for side in zip(*pairs, strict=True))
    return Group(members.arrangement, activations, cotangents, members.biases)


def _stack(arrays: tuple[Array, ...], dtype: Any) -> Array:
    c = max(array.shape[0] for array in arrays)
    wide = [jnp.broadcast_to(array, (c, *array.shape[1:])).astype(dtype) for array in arrays]
    return jnp.concatenate(wide, axis=2)


def _probe_group(leaf: Array, gradient: Float[Array, "m ..."]) -> Group:
    """A gradient without factors: a = 1, and the whole leaf as one row."""
    flat = Arrangement(leaf.shape).then(jax.lax.reshape, (1, 1, leaf.size))
    return Group(flat, jnp.ones((1, 1, 1, 1), leaf.dtype), gradient.reshape(-1, 1, 1, leaf.size).astype(leaf.dtype))
