"""Biases: leaves that are added to outputs of taps and used nowhere else.

If every use of b is an addition to an output z_t that nothing else reads, then the cotangent of z_t is also that of b,

    ∂f/∂b = Σ_{t followed by + b} g_t,

so that [W; b] has factors with activations [a_t; 1], and [a_t; 0] for the other t (derivative channels of a residual).
"""

import math
from dataclasses import dataclass

import numpy as np
from jax import lax

from angd.method.jacobian.taps.contractions import Contraction
from angd.method.jacobian.taps.views import Arrangement, index
from angd.method.jacobian.taps.walk import Reader, Turn, Walk


@dataclass(frozen=True)
class Bias:
    """Number of the leaf, its arrangement as (B, 1, out), and the stretches of t that it is added to."""

    leaf: int
    arrangement: Arrangement
    stretches: tuple[tuple[int, int], ...]

    def follows(self, uses: int) -> np.ndarray:
        """1 for each t that the bias is added to, else 0."""
        t = np.arange(uses)
        return sum(((start <= t) & (t < stop) for start, stop in self.stretches), np.zeros(uses, bool)).astype(float)


def biases(walk: Walk, members: list[tuple[int, bool]]) -> tuple[Bias, ...]:
    """The biases of a group of taps, each given with whether it sees the transpose."""
    stops = np.cumsum([walk.taps[tap][1].a.shape[1] for tap, _ in members])
    found: dict[tuple[int, Arrangement], list[tuple[int, int]]] = {}
    for (tap, turned), stop in zip(members, stops, strict=True):
        contraction = walk.taps[tap][1]
        place = None if turned else _place(contraction, walk.outputs[tap].shape, walk.readers[tap])
        if place is not None:
            found.setdefault(place, []).append((int(stop) - contraction.a.shape[1], int(stop)))
    tapped = {leaf for leaf, _ in walk.taps}
    return tuple(
        Bias(leaf, arrangement, tuple(stretches))
        for (leaf, arrangement), stretches in found.items()
        if leaf not in tapped and len(stretches) == len(walk.probed[leaf])
    )


def _place(contraction: Contraction, shape: tuple[int, ...], readers: list[Reader]) -> tuple[int, Arrangement] | None:
    """The leaf that alone reads the output by being added to it, entry o of b to out[b, :, o]; otherwise None."""
    view = readers[0].added if len(readers) == 1 else None
    if view is None or not (isinstance(view.factor, float) and view.factor == 1):
        return None
    entries = _entries(index(view.arrangement), shape, readers[0].turns)
    if entries is None:
        return None
    folded = contraction.fold(entries)
    batch, _, outs = folded.shape
    source = view.arrangement.source
    plain = batch * outs == math.prod(source) and np.all(folded == np.arange(batch * outs).reshape(batch, 1, outs))
    return (view.leaf, Arrangement(source).then(lax.reshape, (batch, 1, outs))) if plain else None


def _entries(added: np.ndarray, shape: tuple[int, ...], turns: tuple[Turn, ...]) -> np.ndarray | None:
    """Which entry of the leaf meets which entry of the output, whose `turns` it is added to."""
    places = np.arange(math.prod(shape)).reshape(shape)
    for axes, after in turns:
        places = places.reshape(after) if axes is None else places.transpose(axes)
    if np.broadcast_shapes(added.shape, places.shape) != places.shape:
        return None
    entries = np.empty(places.size, int)
    entries[places] = np.broadcast_to(added, places.shape)
    return entries.reshape(shape)
