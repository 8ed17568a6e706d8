"""FermiNet's ∇ log|ψ| and Δ log|ψ| by one forward pass written for it.

Every array u of the network goes with its derivatives ∂u with respect to all coordinates and its Laplacian Δu. A
linear layer acts on each of the three alike; a function of a number has

    ∂t = t′ ∂z,        Δt = t′ Δz + t″ |∂z|².

What a general forward Laplacian cannot know saves the most. Pairs depend on one vector x_i − x_j only: they have three
derivatives, and twice the Laplacian in it. Means over electrons are the same for all. A first layer, envelopes and
distances to nuclei depend on one electron. Arrays of derivatives are (electron, electron moved, coordinate, ...).
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from angd.problems.vmc.determinants import inverse_slogdet


class Forward(NamedTuple):
    """A value, its derivatives and its Laplacian.

    **Attributes:** `x`, shape (..., w); `d`, with the axes of the derivatives before the last; `l`, as x.
    """

    x: Array
    d: Array
    l: Array


def tanh(z: Forward, axes: tuple[int, ...], before: Forward) -> Forward:
    """A layer's tanh z, derivatives along `axes`, and the layer before added where it has the same width."""
    t = jnp.tanh(z.x)
    slope = 1 - t**2
    square = jnp.sum(z.d**2, axis=axes)
    found = Forward(t, jnp.expand_dims(slope, axes) * z.d, slope * (z.l - 2 * t * square))
    return found if before.x.shape != t.shape else Forward(*(a + b for a, b in zip(before, found, strict=True)))


def vectors(v: Float[Array, "a b 3"], same: Float[Array, "a b 1"] | None = None) -> Forward:
    """(v, r) log(1 + r)/r with derivatives with respect to v, (a, b, 3, 4); nothing where the `same` electron is."""
    kept = jnp.ones_like(v[..., :1]) if same is None else 1 - same
    r = jnp.linalg.norm(v + (1 - kept), axis=-1, keepdims=True)
    log, unit, inverse = jnp.log1p(r), v / r, 1 / (1 + r)
    g, slope = log / r, (inverse - log / r) / r  # of log(1 + r)/r
    second = (-(inverse**2) - 2 * slope) / r
    eye = jnp.eye(3, dtype=v.dtype)[None, None]
    d = g[..., None] * eye + slope[..., None] * unit[..., :, None] * v[..., None, :]
    d = jnp.concatenate([d, (inverse * unit)[..., None]], axis=-1)
    lap = jnp.concatenate([v * (second + 4 * slope / r), inverse * (2 / r - inverse)], axis=-1)
    return Forward(jnp.concatenate([v * g, log], axis=-1) * kept, d * kept[..., None], lap * kept)


def laplacian(net: Any, params: PyTree, x: Float[Array, "n 3"]) -> tuple[Float[Array, "n 3"], Float[Array, ""]]:
    """∇ log|ψ| and Δ log|ψ| of a `FermiNet` at one x."""
    places, n = jnp.asarray(net.molecule.places, x.dtype), x.shape[0]
    here = x[:, None] - places[None]
    orbitals = _orbitals(net, params["orbitals"], _stream(net, params["layers"], x, here), here)
    gradient, lap = _log_of_sum(orbitals)
    if not net.cusps or n < 2:
        return gradient, lap
    cusp, cusp_lap = _jastrow(net, params["cusp"], x)
    return gradient + cusp, lap + cusp_lap


def _stream(net: Any, layers: Any, x: Float[Array, "n 3"], here: Float[Array, "n atoms 3"]) -> Forward:
    """The one-electron stream after all layers, derivatives (n, n, 3, w)."""
    n, eye = x.shape[0], jnp.eye(x.shape[0], dtype=x.dtype)[:, :, None]
    one = vectors(here)
    h = Forward(one.x.reshape(n, -1), jnp.swapaxes(one.d, 1, 2).reshape(n, 3, -1), one.l.reshape(n, -1))
    pair = vectors(x[:, None] - x[None], eye)
    for layer in layers:
        h = tanh(_gathered(layer["one"], net.molecule.spins, h, pair), (1, 2), _widened(h))
        if "two" in layer:
            W, b = layer["two"]
            pair = tanh(Forward(pair.x @ W + b[None, None], pair.d @ W, pair.l @ W), (2,), pair)
    return h


def _widened(h: Forward) -> Forward:
    """With derivatives by all electrons, where there were those by the own one."""
    return h if h.d.ndim == 4 else h._replace(d=_own(h.d))


def _own(d: Float[Array, "n 3 w"]) -> Float[Array, "n n 3 w"]:
    """What depends on the own electron only, among the derivatives by all."""
    return jnp.eye(d.shape[0], dtype=d.dtype)[:, :, None, None] * d[:, None]


def _gathered(layer: Any, spins: tuple[int, int], h: Forward, pair: Forward) -> Forward:
    """A linear layer of own values, means over the electrons of each spin, and means over pairs with them."""
    W, b = layer
    own, width = h.x.shape[1], pair.x.shape[-1]
    parts = [(k, s) for k, s in enumerate(_slices(spins)) if s.stop > s.start]
    of_mean = {k: W[(1 + k) * own : (2 + k) * own] for k, _ in parts}
    of_pair = {k: W[3 * own + k * width : 3 * own + (k + 1) * width] for k, _ in parts}

    def linear(mine: Array, pairs: Array) -> Array:
        shared = sum(jnp.mean(mine[s], axis=0, keepdims=True) @ of_mean[k] for k, s in parts)
        return mine @ W[:own] + sum(jnp.mean(pairs[:, s], axis=1) @ of_pair[k] for k, s in parts) + shared

    if h.d.ndim == 3:  # the mean over a spin depends on each of its electrons
        means = [h.d[s] @ of_mean[k] / (s.stop - s.start) for k, s in parts]
        d = _own(h.d @ W[:own]) + jnp.concatenate(means)[None]
    else:
        d = h.d @ W[:own] + sum(jnp.mean(h.d[s], axis=0, keepdims=True) @ of_mean[k] for k, s in parts)
    moved = jnp.concatenate([pair.d[:, s] @ of_pair[k] / (s.stop - s.start) for k, s in parts], axis=1)
    return Forward(linear(h.x, pair.x) + b[None], d + _own(jnp.sum(moved, axis=1)) - moved, linear(h.l, 2 * pair.l))


class _Orbitals(NamedTuple):
    """φ_j(x_i) of every determinant as a product f e of what all electrons move and an envelope of the own one.

    **Attributes:** `x` and `l`, values and Laplacians (K, j, i); `all`, ∂f e (K, j, i, coordinates); `own`, f ∂e by the
    own electron (K, j, 3, i).
    """

    x: Array
    l: Array
    all: Array
    own: Array


def _orbitals(net: Any, params: PyTree, h: Forward, here: Float[Array, "n atoms 3"]) -> _Orbitals:
    n, found = here.shape[0], []
    for k, s in enumerate(_slices(net.molecule.spins)):
        if s.stop > s.start:
            own, (W, b) = params[str(k)], params[str(k)]["linear"]
            e, f = _envelope(own, here[s]), W.T @ h.x[s].T + b[:, None]
            slopes = jnp.einsum("wo,ikdw->oikd", W, h.d[s])
            mine = jnp.stack([slopes[:, i, s.start + i] for i in range(s.stop - s.start)], axis=-1)
            lap = (W.T @ h.l[s].T) * e.x + 2 * jnp.sum(mine * e.d, axis=1) + f * e.l
            found.append((f * e.x, lap, slopes.reshape(*f.shape, -1) * e.x[:, :, None], f[:, None] * e.d))
    axes = 1, 1, 1, 2
    parts = [jnp.concatenate(part, axis) for part, axis in zip(zip(*found, strict=True), axes, strict=True)]
    return _Orbitals(*(part.reshape(net.determinants, n, *part.shape[1:]) for part in parts))


def _envelope(params: PyTree, here: Float[Array, "m atoms 3"]) -> Forward:
    """Σ share e^(−decay r) over nuclei, for all orbitals (K n, m); derivatives by the own electron (K n, 3, m)."""
    decay, share = (params[name].reshape(-1, here.shape[1]).T[:, :, None] for name in ("decay", "share"))
    r = jnp.linalg.norm(here, axis=-1).T[:, None]
    parts, units = share * jnp.exp(-decay * r), here.transpose(1, 2, 0) / r
    falling = decay * parts
    d = -jnp.sum(falling[:, :, None] * units[:, None], axis=0)
    return Forward(jnp.sum(parts, axis=0), d, jnp.sum(falling * (decay - 2 / r), axis=0))


def _log_of_sum(orbitals: _Orbitals) -> tuple[Float[Array, "n 3"], Float[Array, ""]]:
    """Of log|Σ_k det A_k|: with M = A⁻¹ ∂A, ∂ log|det A| = tr M and Δ log|det A| = tr(A⁻¹ ΔA) − Σ tr(M M).

    M = P + Q, where Q has one column, the electron that is moved.
    """
    A, lA, dA, own = orbitals
    K, n, _ = A.shape
    inverse, signs, logs = inverse_slogdet(A)
    P = jnp.einsum("kpj,kjic->kpic", inverse, dA)
    Q = jnp.einsum("kpj,kjdi->kpdi", inverse, own)
    beside = jnp.stack([P[:, i, :, 3 * i : 3 * i + 3] for i in range(n)], axis=-1)
    diagonal = jnp.stack([Q[:, i, :, i] for i in range(n)], axis=1)
    slopes = jnp.sum(P.reshape(K, n * n, -1)[:, :: n + 1], axis=1) + diagonal.reshape(K, -1)
    squares = jnp.sum(P * jnp.swapaxes(P, 1, 2), axis=(1, 2, 3)) + 2 * jnp.sum(beside * Q, axis=(1, 2, 3))
    lap = jnp.einsum("kpj,kjp->k", inverse, lA) - squares - jnp.sum(diagonal**2, axis=(1, 2))
    weight = signs * jnp.exp(logs - jnp.max(logs))
    weight = weight / jnp.sum(weight)
    gradient = weight @ slopes
    total = weight @ (lap + jnp.sum(slopes**2, axis=1)) - jnp.sum(gradient**2)
    return gradient.reshape(-1, 3), total


def _jastrow(net: Any, cusp: Float[Array, "2"], x: Float[Array, "n 3"]) -> tuple[Float[Array, "n 3"], Float[Array, ""]]:
    """Of −Σ c α²/(α + r)."""
    spin = np.repeat([0, 1], net.molecule.spins)
    opposite, n = spin[:, None] != spin[None], len(spin)
    c, alpha = jnp.asarray(np.where(opposite, 0.5, 0.25), x.dtype), jnp.where(opposite, cusp[1], cusp[0])
    kept, v = jnp.asarray(1 - np.eye(n), x.dtype), x[:, None] - x[None]
    r = jnp.linalg.norm(v + jnp.eye(n, dtype=x.dtype)[:, :, None], axis=-1)
    slope = kept * c * (alpha / (alpha + r)) ** 2
    gradient = jnp.sum((slope / r)[..., None] * v, axis=1)
    return gradient, jnp.sum(slope * (2 / r - 2 / (alpha + r)))


def _slices(spins: tuple[int, int]) -> tuple[slice, slice]:
    up, down = spins
    return slice(0, up), slice(up, up + down)
