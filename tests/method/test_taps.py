"""Taps are exact: the factors of every model assemble to the Jacobian that reverse mode gives."""

import warnings
from functools import partial
from itertools import pairwise
from typing import Any

import equinox as eqx
import flax.linen as linen
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from jax import lax
from jax.flatten_util import ravel_pytree

from angd.method.jacobian import Factored
from angd.method.jacobian.taps import taps
from angd.method.jacobian.taps.views import Arrangement, index


def normal(seed, *shape):
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape))


def layers(*widths):
    pairs = enumerate(pairwise(widths))
    return [{"w": normal(k, i, o) / np.sqrt(i), "b": 0.1 * normal(k, o)} for k, (i, o) in pairs]


def mlp(params, x):
    for layer in params[:-1]:
        x = jnp.tanh(x @ layer["w"] + layer["b"])
    return x @ params[-1]["w"] + params[-1]["b"]


def scalar_mlp(params, x):
    return mlp(params, x)[0]


def set_network(params, x):
    """Weights shared by all electrons, each of which sees the mean of the others."""
    for layer in params["layers"]:
        mean = jnp.broadcast_to(x.mean(0, keepdims=True), x.shape)
        x = jnp.tanh(jnp.concatenate([x, mean], 1) @ layer["w"] + layer["b"][None, :])
    return jnp.sum(x @ params["out"])


def convolution(params, x, groups=1):
    numbers = ("NHWC", "HWIO", "NHWC")
    conv = partial(jax.lax.conv_general_dilated, dimension_numbers=numbers)
    x = jnp.tanh(conv(x[None], params["first"], (1, 2), "SAME", feature_group_count=groups) + params["b"])
    x = conv(x, params["second"], (1, 1), "VALID", rhs_dilation=(2, 1))
    return x.mean((0, 1, 2))


def conv_energy(params, x):
    """A convolution differentiated inside: its kernel returns reversed and transposed."""
    return jnp.sum(jax.grad(lambda x: jnp.sum(convolution(params, x) ** 2))(x) ** 2)


def attention(params, x):
    q, k, v = (jnp.einsum("td,dhk->thk", x, params[name]) for name in "qkv")
    weights = jax.nn.softmax(jnp.einsum("thk,shk->hts", q, k), axis=-1)
    return jnp.einsum("hts,shk,hkd->d", weights, v, params["o"])


def burgers_by_grad(params, x):
    def u(t, x):
        return scalar_mlp(params, jnp.stack([t, x]))

    u_t, u_x, u_xx = jax.grad(u, 0), jax.grad(u, 1), jax.grad(jax.grad(u, 1), 1)
    return u_t(*x) + u(*x) * u_x(*x) - 0.01 * u_xx(*x)


def burgers_by_jvp(params, x):
    def along(f, e):
        return lambda z: jax.jvp(f, (z,), (e,))[1]

    e_t, e_x = jnp.eye(2)
    u = partial(scalar_mlp, params)
    return along(u, e_t)(x) + u(x) * along(u, e_x)(x) - 0.01 * along(along(u, e_x), e_x)(x)


def residuals(params, x):
    """Several outputs, with the transposes of the weights among the uses."""
    u = partial(scalar_mlp, params)
    return jnp.stack([u(x), jnp.trace(jax.hessian(u)(x)), burgers_by_grad(params, x)])


def log_determinant(params, x):
    """A small FermiNet: streams, orbitals, isotropic envelopes, a sum of determinants."""
    h = jnp.concatenate([x, jnp.linalg.norm(x, axis=1, keepdims=True)], 1)
    for layer in params["layers"]:
        mean = jnp.broadcast_to(h.mean(0, keepdims=True), h.shape)
        h = jnp.tanh(jnp.concatenate([h, mean], 1) @ layer["w"] + layer["b"][None, :])
    orbitals = jnp.einsum("ed,kdo->keo", h, params["orbitals"])
    r = jnp.linalg.norm(x[:, None] - params["nuclei"][None], axis=2)
    envelope = jnp.einsum("eno,no->eo", jnp.exp(-params["sigma"][None] * r[:, :, None]), params["pi"])
    signs, logs = jnp.linalg.slogdet(orbitals * envelope[None])
    return jnp.log(jnp.abs(jnp.sum(signs * jnp.exp(logs))))


def views(params, x):
    """Slices, scalings, stacks, one-dimensional weights, batched weights."""
    first, second = params["stack"]
    h = jnp.tanh(x @ params["cut"][:2] / np.sqrt(3.0) + 0.3 * (x @ params["cut"][2:]))
    h = jnp.tanh(-first @ h) + second.T @ h
    heads = jnp.einsum("hi,hio->ho", h.reshape(2, 2), params["heads"])
    return jnp.sum(params["scale"] * heads) + h @ params["v"] + params["shift"]


def structure(params, x):
    """Compiled and rematerialised calls, stopped gradients, a leaf that is its own output."""
    h = jax.checkpoint(jax.jit(lambda w, x: jnp.tanh(x @ w.T)))(params["w"], x)
    h = jax.nn.relu(h @ params["u"]) + x @ jax.lax.stop_gradient(params["u"])
    return jnp.append(h, params["last"])


class EquinoxNet(eqx.Module):
    first: eqx.nn.Linear
    norm: eqx.nn.LayerNorm
    second: eqx.nn.Linear

    def __init__(self, key):
        self.first, self.norm = eqx.nn.Linear(2, 5, key=key), eqx.nn.LayerNorm(5)
        self.second = eqx.nn.Linear(5, 3, key=key)

    def __call__(self, x):
        return self.second(jax.nn.gelu(self.norm(self.first(x))))


class LinenNet(linen.Module):
    @linen.compact
    def __call__(self, x):
        x = linen.LayerNorm(param_dtype=float)(linen.silu(linen.Dense(5, param_dtype=float)(x)))
        return linen.DenseGeneral((2, 2), param_dtype=float)(x).sum(0)


class NNXNet(nnx.Module):
    def __init__(self, rngs):
        self.first = nnx.Linear(2, 5, rngs=rngs, param_dtype=float)
        self.second = nnx.Linear(5, 3, rngs=rngs, param_dtype=float)

    def __call__(self, x):
        return self.second(jnp.sin(self.first(x)))


def equinox_model():
    arrays, rest = eqx.partition(EquinoxNet(jax.random.key(0)), eqx.is_inexact_array)
    return lambda arrays, x: eqx.combine(arrays, rest)(x), arrays, normal(1, 2)


def linen_model():
    x = normal(1, 2)
    return LinenNet().apply, LinenNet().init(jax.random.key(0), x), x


def nnx_model():
    graph, state = nnx.split(NNXNet(nnx.Rngs(0)))
    return lambda state, x: nnx.merge(graph, state)(x), state, normal(1, 2)


CONV = {"first": normal(0, 2, 3, 2, 4), "b": normal(1, 1, 1, 1, 4), "second": normal(2, 2, 1, 4, 3)}
DEPTHWISE = {**CONV, "first": normal(0, 2, 3, 1, 4)}
SET = {
    "layers": [{"w": normal(0, 6, 5), "b": normal(1, 5)}, {"w": normal(2, 10, 4), "b": normal(3, 4)}],
    "out": normal(4, 4),
}
HEADS = {name: normal(k, 4, 2, 3) for k, name in enumerate("qkv")} | {"o": normal(5, 2, 3, 4)}
FERMI: dict[str, Any] = {
    "layers": [{"w": normal(0, 8, 5), "b": normal(1, 5)}, {"w": normal(2, 10, 4), "b": normal(3, 4)}],
    "orbitals": normal(4, 2, 4, 3),
    "nuclei": normal(5, 2, 3),
    "sigma": 1.0 + 0.1 * normal(6, 2, 3),
    "pi": normal(7, 2, 3),
}
VIEWS: dict[str, Any] = {
    "stack": normal(0, 2, 4, 4),
    "cut": normal(1, 4, 4),
    "heads": normal(2, 2, 2, 3),
    "scale": normal(3, 2, 3),
    "v": normal(4, 4),
    "shift": jnp.asarray(0.5),
}
STRUCTURE = {"w": normal(0, 3, 3), "u": normal(1, 3, 3), "last": jnp.asarray(2.0)}


def scanned(params, x):
    """Three equal layers, written as large networks are."""

    def layer(h, weights):
        return jnp.tanh(h @ weights["w"] + weights["b"]), None

    return jax.lax.scan(layer, x, params["layers"])[0] @ params["out"]


def unrolled(params, x):
    for k in range(3):
        x = jnp.tanh(x @ params["layers"]["w"][k] + params["layers"]["b"][k])
    return x @ params["out"]


def scanned_residual(params, x):
    """u + u_xx along the first axis, by two jvps of a scan, and |∇u|² by its reverse."""

    def along(f):
        return lambda z: jax.jvp(f, (z,), (jnp.eye(3)[0],))[1]

    u = partial(scanned, params)
    return u(x) + along(along(u))(x) + jnp.sum(jax.grad(u)(x) ** 2)


def collecting(params, x):
    """Layers from the last to the first; every state is collected."""

    def layer(h, w):
        h = jnp.tanh(h @ w)
        return h, h

    last, states = jax.lax.scan(layer, x, params["layers"]["w"], reverse=True)
    return jnp.stack([last @ params["out"], jnp.sum(states * jnp.arange(9.0).reshape(3, 3))])


def loop(w, x):
    return jax.lax.fori_loop(0, 3, lambda _, h: jnp.tanh(w @ h), x)


SCANNED = {"layers": {"w": normal(0, 3, 3, 3), "b": normal(1, 3, 3)}, "out": normal(2, 3)}
MODELS = {
    "mlp": (scalar_mlp, layers(3, 6, 5, 1), normal(9, 3)),
    "vector mlp": (mlp, layers(3, 6, 4), normal(9, 3)),
    "set network": (set_network, SET, normal(9, 4, 3)),
    "convolution": (convolution, CONV, normal(9, 5, 6, 2)),
    "depthwise convolution": (partial(convolution, groups=2), DEPTHWISE, normal(9, 5, 6, 2)),
    "differentiated convolution": (conv_energy, CONV, normal(9, 5, 6, 2)),
    "attention": (attention, HEADS, normal(9, 5, 4)),
    "Burgers by grad": (burgers_by_grad, layers(2, 6, 5, 1), normal(9, 2)),
    "Burgers by jvp": (burgers_by_jvp, layers(2, 6, 5, 1), normal(9, 2)),
    "vector of residuals": (residuals, layers(2, 6, 5, 1), normal(9, 2)),
    "log determinant": (log_determinant, FERMI, normal(9, 3, 3)),
    "views": (views, VIEWS, normal(9, 2)),
    "structure": (structure, STRUCTURE, normal(9, 3)),
    "scan over layers": (scanned, SCANNED, normal(9, 3)),
    "derivatives of a scan over layers": (scanned_residual, SCANNED, normal(9, 3)),
    "scan in reverse that collects": (collecting, SCANNED, normal(9, 3)),
    "loop that shares a matrix": (loop, normal(0, 3, 3), normal(9, 3)),
    "equinox": equinox_model(),
    "flax linen": linen_model(),
    "flax nnx": nnx_model(),
}


def assembled(f, params, x):
    """∂f/∂params from its factors, over a batch of one."""
    return jax.jit(lambda params, xs: Factored.of(f, params, xs).dense())(params, x[None])


def reverse(f, params, x):
    flat, unravel = ravel_pytree(params)
    return jax.jit(jax.jacrev(lambda flat: jnp.atleast_1d(f(unravel(flat), x))))(flat)


@pytest.mark.parametrize("name", MODELS)
def test_factors_assemble_to_the_jacobian_of_reverse_mode(name):
    f, params, x = MODELS[name]
    assert np.allclose(assembled(f, params, x), reverse(f, params, x), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["mlp", "Burgers by grad", "set network"])
def test_single_precision_follows_the_parameters(name):
    f, params, x = jax.tree.map(lambda v: v.astype(jnp.float32) if eqx.is_array(v) else v, MODELS[name])
    got = assembled(f, params, x)
    assert got.dtype == jnp.float32
    assert np.allclose(got, reverse(f, params, x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("f", "uses"), [(scalar_mlp, 1), (burgers_by_grad, 4), (burgers_by_jvp, 4)])
def test_repeated_evaluations_of_a_network_are_tapped_once(f, uses):
    leaves = taps(f, layers(2, 6, 5, 1), normal(9, 2)).leaves
    matrices = [leaf for leaf in leaves if len(leaf.shape) == 2]
    assert all(len(leaf.groups) == 1 and leaf.separate for leaf in leaves)
    assert all(leaf.groups[0].a.shape[2] <= uses for leaf in matrices)


@pytest.mark.parametrize("wrap", [lambda u: u, jax.jit], ids=["plain", "compiled"])
def test_derivative_channels_that_nothing_uses_are_not_tapped(wrap):
    """u and u_xx pass the last layer, u_x does not leave it."""

    def along(f):
        return lambda z: jax.jvp(f, (z,), (jnp.eye(2)[0],))[1]

    def f(params, x):
        u = wrap(partial(scalar_mlp, params))
        return u(x) + along(along(u))(x)

    leaves = taps(f, layers(2, 6, 5, 1), normal(9, 2)).leaves
    assert [leaf.groups[0].a.shape[2] for leaf in leaves if len(leaf.shape) == 2] == [2, 3, 2]


def test_a_matrix_and_its_transpose_share_one_group_of_factors():
    (leaf,) = taps(lambda w, x: w.T @ jnp.tanh(w @ x), normal(0, 5, 3), normal(1, 3)).leaves
    assert [(group.a.shape, group.g.shape) for group in leaf.groups] == [((3, 1, 2, 3), (3, 1, 2, 5))]


def test_slices_of_a_leaf_are_separate_groups():
    leaf = taps(lambda w, x: jnp.tanh(x @ w[:2]) @ w[2:], normal(0, 5, 3), normal(1, 2)).leaves[0]
    assert leaf.separate
    assert len(leaf.groups) == 2


def long_loop(w, x):
    return jax.lax.fori_loop(0, 200, lambda _, h: jnp.tanh(w @ h), x)


def collected(w, x):
    matrices = jax.lax.scan(lambda h, w: (jnp.tanh(h @ w), -w), x, w)[1]
    return jnp.tanh(matrices) @ x


def foreign(params, x):
    return jnp.exp(params["w"]) @ x + params["u"] @ params["w"] @ x


@jax.custom_jvp
def own_rule(w, x):
    return w @ x


own_rule.defjvp(lambda primals, tangents: (own_rule(*primals), 2.0 * tangents[0] @ primals[1]))


@pytest.mark.parametrize(
    ("f", "params", "leaf", "primitive"),
    [
        (foreign, {"w": normal(0, 3, 3), "u": normal(1, 3, 3)}, "['w']", "exp"),
        (long_loop, normal(0, 3, 3), "params", "scan of 200 steps"),
        (lambda w, x: jnp.sum(collected(w, x), 1), normal(0, 3, 3, 3), "params", "scan that collects it"),
        (lambda w, x: own_rule(w, x), normal(0, 3, 3), "params", "custom_jvp_call"),
        (lambda w, x: w @ w @ x, normal(0, 3, 3), "params", "dot_general of two parameters"),
    ],
)
def test_unrecognised_uses_are_exact_and_told_once(f, params, leaf, primitive):
    x = normal(9, 3)
    with pytest.warns(UserWarning, match="plain reverse mode") as caught:
        got = assembled(f, params, x)
    assert any(leaf in str(w.message) and primitive in str(w.message) for w in caught)
    assert np.allclose(got, reverse(f, params, x), rtol=1e-12, atol=1e-12)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assembled(f, params, x)


@pytest.mark.parametrize(
    ("f", "params", "words"),
    [
        (lambda w, x: long_loop(w, x), normal(0, 3, 3), r"`scan of 200 steps`.*one exact block for its 9 entries"),
        (lambda w, x: long_loop(w, x[:1] * jnp.ones(40)), normal(0, 40, 40), r"diagonal of G for its 1600 entries"),
        (lambda w, x: jnp.exp(w) @ x + jnp.exp(2 * w) @ x, normal(0, 3, 3), r"`exp` \(2 times\)"),
    ],
)
def test_notices_count_and_say_what_kfac_will_do(f, params, words):
    with pytest.warns(UserWarning, match=words):
        jax.eval_shape(partial(taps, f), params, normal(9, 3))


def test_a_scan_over_layers_has_the_factors_of_its_layers():
    """One group for each layer, as if the layers had been written one after the other, and no notice."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one, other = (taps(f, SCANNED, normal(9, 3)).leaves for f in (scanned, unrolled))
    assert [len(leaf.groups) for leaf in one] == [len(leaf.groups) for leaf in other] == [1, 3, 1]
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        assert np.allclose(a, b)


def test_an_unused_parameter_has_zero_columns():
    params = {"used": normal(0, 3), "zero": normal(1, 4, 4)}
    got = assembled(lambda params, x: params["used"] @ x, params, normal(2, 3))
    assert np.array_equal(got, np.concatenate([normal(2, 3), np.zeros(16)])[None])


def test_taps_work_under_vmap_and_jit_and_give_the_value():
    params, xs = layers(2, 6, 5, 1), normal(9, 7, 2)
    batch = jax.jit(jax.vmap(partial(taps, burgers_by_grad), (None, 0)))(params, xs)
    assert np.allclose(batch.value, jax.vmap(burgers_by_grad, (None, 0))(params, xs), rtol=1e-12)
    assert {group.g.shape[0] for leaf in batch.leaves for group in leaf.groups} == {7}


def biases(f, params, x):
    """For each bias found: its leaf, the sum of the cotangents it is added to, and its gradient by reverse mode."""
    leaves = jax.jit(lambda params, x: taps(f, params, x).leaves)(params, x)
    gradients = jax.tree.leaves(jax.jit(jax.jacrev(lambda params: f(params, x)))(params))
    for group in (group for leaf in leaves for group in leaf.groups):
        for bias in group.biases:
            added = jnp.einsum("t,mbto->mbo", jnp.asarray(bias.follows(group.g.shape[2])), group.g)
            yield leaves[bias.leaf].name, added.ravel(), gradients[bias.leaf].ravel()


BIASES = {"mlp": 3, "depthwise convolution": 1, "Burgers by grad": 3, "vector of residuals": 3, "equinox": 2}
BIASES |= {"log determinant": 2, "flax linen": 2, "flax nnx": 2, "views": 0, "attention": 0}


@pytest.mark.matrix
@pytest.mark.parametrize("name", BIASES)
def test_the_gradient_of_a_bias_is_the_sum_of_the_cotangents_it_is_added_to(name):
    found = list(biases(*MODELS[name]))
    assert len({leaf for leaf, _, _ in found}) == len(found) == BIASES[name]
    assert all(np.allclose(added, gradient, rtol=1e-12, atol=1e-12) for _, added, gradient in found)


def dead(p, x):
    z = x @ p["w"]
    _ = z + p["b"]
    return z


def twice_read(p, x):
    z = x @ p["w"]
    return jnp.tanh(z + p["b"]) * z


def rescaled(p, x):
    """The output of one layer is the scale of the next."""
    z = x @ p["w"][:, 0]
    return jnp.tanh(z + p["b"][0]) + (z * p["w"])[0]


@pytest.mark.parametrize(
    ("f", "count"),
    [
        (lambda p, x: jnp.tanh(x @ p["w"] + p["b"]), 1),
        (lambda p, x: jnp.tanh(jax.vmap(lambda y: p["w"].T @ y + p["b"])(jnp.stack([x, x**2]))), 1),
        (lambda p, x: jnp.tanh((x @ p["w"]).reshape(3, 1).T[0] + p["b"]), 1),
        (lambda p, x: x @ p["w"] - p["b"], 0),
        (lambda p, x: x @ p["w"] + (-p["b"]), 0),
        (lambda p, x: x @ p["w"] + p["b"][::-1], 0),
        (lambda p, x: x @ p["w"] + p["b"][:1], 0),
        (lambda p, x: jnp.tanh(x @ p["w"]) + p["b"], 0),
        (lambda p, x: (x @ p["w"] + p["b"]) * p["b"], 0),
        (dead, 0),
        (twice_read, 0),
        (rescaled, 0),
    ],
)
def test_a_bias_is_a_leaf_added_to_a_contraction_and_used_nowhere_else(f, count):
    found = list(biases(f, {"b": normal(0, 3), "w": normal(1, 3, 3)}, normal(2, 3)))
    assert [leaf for leaf, _, _ in found] == ["['b']"] * count
    assert all(np.allclose(added, gradient, rtol=1e-12) for _, added, gradient in found)


def literals(params, x):
    """The same equations but for a number in them: W/c and cW, with two numbers each, and what follows."""
    h = jnp.tanh(x @ (params["w"] / 3.0)) + jnp.sin(x @ (params["w"] / 0.7)) + jnp.cos((2.0 * params["w"]).T @ x)
    near = jnp.sin(h * 0.3000000000001) - 1e9 * (jnp.sin(h * 0.2) - jnp.sin(h * 0.2000000001))
    return jnp.sum(near + h**2 * 5.0 - h * 4.0) + jnp.sum(params["v"] * (h @ (params["w"].T / 3.0)))


def test_equations_that_differ_in_a_number_are_not_taken_for_one():
    params = {"w": normal(0, 3, 4), "v": normal(1, 3)}
    x = normal(9, 3)
    expected = jax.jacrev(lambda w: literals({**params, "w": w}, x))(params["w"])
    found = jax.jacfwd(lambda w: literals({**params, "w": w}, x))(params["w"])
    assert np.allclose(expected, found, rtol=1e-6), "forward and reverse mode agree"
    assert np.allclose(assembled(literals, params, x), reverse(literals, params, x), rtol=1e-6, atol=1e-6)
    leaf = next(leaf for leaf in taps(literals, params, x).leaves if leaf.name == "['w']")
    assert [group.a.shape[2] for group in leaf.groups] == [4], "each use has its factors, none is a probe"


def test_the_index_of_an_arrangement_is_what_jax_makes_of_its_moves():
    leaf = jnp.arange(24.0).reshape(2, 3, 4)
    arrangement = (
        Arrangement((2, 3, 4))
        .then(lax.transpose, (2, 0, 1))
        .then(lax.rev, (1,))
        .then(lax.slice, (1, 0, 0), (4, 2, 3), (2, 1, 1))
        .then(lax.slice, (0, 0, 1), (2, 2, 3), None)
        .then(lax.broadcast_in_dim, (2, 2, 5, 2, 1), (0, 1, 3))
        .then(lax.squeeze, (4,))
        .then(lax.reshape, (4, 10))
    )
    assert np.array_equal(index(arrangement), arrangement(leaf).astype(int))
