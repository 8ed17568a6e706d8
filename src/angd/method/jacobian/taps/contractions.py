"""The uses that have factors: a leaf contracted with an activation, brought to one normal form.

Whatever the dimension numbers, `dot_general` and `conv_general_dilated` become, entry by entry of a batch axis b,

    out[b, t, o] = Σ_i a[b, t, i] W[b, i, o]        so that        ∂f/∂W[b, i, o] = Σ_t a[b, t, i] g[b, t, o],

with W the leaf moved by an `Arrangement`, a the activation and g the cotangent of the output, both only transposed and
reshaped (for convolutions a holds the patches). t runs over all axes that the weight does not see.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Shaped

from angd.method.jacobian.taps.views import Arrangement, View, by_stride

CUTS = 64  # entries of a patch that is cut out entry by entry
AnyArray = Any  # of JAX or NumPy: numbers of entries are folded like cotangents


class Contraction(NamedTuple):
    """One use of a leaf in normal form: its arrangement, its activation, and the map from cotangents of the output.

    Where `output` is given, it makes the output from the activation, which is there already.
    """

    arrangement: Arrangement
    a: Float[Array, "B T in"]
    fold: Callable[[AnyArray], AnyArray]
    output: Callable[[], Array] | None = None


def _sizes(shape: Sequence[int], *groups: Sequence[int]) -> tuple[int, ...]:
    return tuple(math.prod(shape[axis] for axis in axes) for axes in groups)


def _gather(array: AnyArray, *groups: Sequence[int]) -> AnyArray:
    """Collect axes into groups: one output axis per group."""
    return array.transpose(sum(map(tuple, groups), ())).reshape(_sizes(array.shape, *groups))


def _arrange(view: View, *groups: Sequence[int]) -> Arrangement:
    moved = view.arrangement.then(lax.transpose, sum(map(tuple, groups), ()))
    return moved.then(lax.reshape, _sizes(view.value.shape, *groups))


def _rest(ndim: int, *taken: Sequence[int]) -> tuple[int, ...]:
    return tuple(axis for axis in range(ndim) if not any(axis in axes for axes in taken))


def _together(order: Sequence[int], axes: Sequence[int], partners: Sequence[int]) -> tuple[int, ...]:
    """Partners of `axes`, in the given order of `axes`."""
    return tuple(partners[tuple(axes).index(axis)] for axis in order)


def dot_general(inputs: list[Any], params: dict[str, Any]) -> Contraction:
    """Normal form of a contraction of a view (on either side) with an activation."""
    side = 0 if isinstance(inputs[0], View) else 1
    view, x = inputs[side], jnp.asarray(inputs[1 - side])
    contract, batch = params["dimension_numbers"]
    rank = len(batch[0])
    free, rows = _rest(view.value.ndim, contract[side], batch[side]), _rest(x.ndim, contract[1 - side], batch[1 - side])
    out_free = range(rank, rank + len(free)) if side == 0 else range(rank + len(rows), rank + len(rows) + len(free))
    ins, outs, same = (by_stride(view.arrangement, tuple(axes)) for axes in (contract[side], free, batch[side]))
    out_batch, out_outs = _together(same, batch[side], range(rank)), _together(outs, free, out_free)
    out_rows = _rest(rank + len(free) + len(rows), range(rank), out_free)
    x_ins, x_batch = (_together(o, d[side], d[1 - side]) for o, d in ((ins, contract), (same, batch)))
    return Contraction(
        _arrange(view, same, ins, outs),
        _gather(x, x_batch, rows, x_ins) * view.factor,
        lambda g: _gather(g, out_batch, out_rows, out_outs),
    )


def convolution(inputs: list[Any], params: dict[str, Any]) -> Contraction | None:
    """Normal form of a convolution whose kernel is a view: its patches against the kernel, one b per feature group."""
    x, kernel = inputs
    if isinstance(x, View) or params["batch_group_count"] != 1:
        return None
    numbers, groups = params["dimension_numbers"], params["feature_group_count"]
    (out, ins, *space), (rows, channel, *places) = numbers.rhs_spec, numbers.out_spec
    window = [kernel.value.shape[axis] for axis in space]
    cut = _cuts(window, params)
    patches = (_sliced if cut else _patches)(x, window, params)
    a = _split(_gather(patches, (rows, *places), (channel,)), groups)
    arrangement = _arrange(kernel, (out,), (ins, *space))
    n_out, n_in = _sizes(kernel.value.shape, (out,), (ins, *space))
    arrangement = arrangement.then(lax.reshape, (groups, n_out // groups, n_in)).then(lax.transpose, (0, 2, 1))

    def output() -> Array:
        """One product of matrices, where the compiler would take a convolution for each sample or group of channels."""
        matrix = kernel.value.transpose((out, ins, *space)).reshape(groups, n_out // groups, n_in)
        flat = jnp.einsum("bti,boi->tbo", a, matrix)
        shape = tuple(patches.shape[axis] for axis in (rows, *places))
        return flat.reshape(*shape, n_out).transpose(np.argsort((rows, *places, channel)))

    return Contraction(
        arrangement,
        a * kernel.factor,
        lambda g: _split(_gather(g, (rows, *places), (channel,)), groups),
        output if cut else None,
    )


def _cuts(window: Sequence[int], params: dict[str, Any]) -> bool:
    """Can the patches be cut out of the input?"""
    return math.prod(window) <= CUTS and all(d == 1 for d in params["lhs_dilation"])


def _sliced(x: Array, window: Sequence[int], params: dict[str, Any]) -> Array:
    """The patches as slices of the input, beside each other as `conv_general_dilated_patches` has them.

    That is a convolution with a filter for each entry of a patch, which on CPUs is slow beyond use under `vmap`.
    """
    numbers, strides, dilation = params["dimension_numbers"], params["window_strides"], params["rhs_dilation"]
    x = x.transpose(numbers.lhs_spec)
    x = lax.pad(x, jnp.zeros((), x.dtype), [(0, 0, 0), (0, 0, 0), *((low, high, 0) for low, high in params["padding"])])
    reach = [(w - 1) * d for w, d in zip(window, dilation, strict=True)]
    last = [(size - r - 1) // s * s for size, r, s in zip(x.shape[2:], reach, strides, strict=True)]

    def shifted(entry: tuple[int, ...]) -> Array:
        start = [e * d for e, d in zip(entry, dilation, strict=True)]
        stop = [begin + end + 1 for begin, end in zip(start, last, strict=True)]
        return lax.slice(x, (0, 0, *start), (*x.shape[:2], *stop), (1, 1, *strides))

    patches = jnp.stack([shifted(entry) for entry in itertools.product(*map(range, window))], axis=2)
    patches = patches.reshape(patches.shape[0], -1, *patches.shape[3:])
    return patches.transpose(np.argsort(numbers.out_spec))


def _patches(x: Array, window: Sequence[int], params: dict[str, Any]) -> Array:
    names = ("window_strides", "padding", "lhs_dilation", "rhs_dilation", "dimension_numbers")
    return lax.conv_general_dilated_patches(x, window, **{name: params[name] for name in names})


def _split(x: Shaped[AnyArray, "T channels"], groups: int) -> Shaped[AnyArray, "B T part"]:
    return x.reshape(x.shape[0], groups, -1).transpose((1, 0, 2))


CONTRACTIONS: dict[str, Callable[[list[Any], dict[str, Any]], Contraction | None]] = {
    "dot_general": dot_general,
    "conv_general_dilated": convolution,
}
