"""KFAC inverts A ⊗ S + λI: exact where the Kronecker product is, and elsewhere the product written with np.kron."""

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from angd.method.jacobian import Dense, Factored, jacobian, stack
from angd.method.solvers import KFAC, Kernel, WithFallback, blocks
from angd.method.system import Gram, Rows, row_weights

LAMBDA = 1e-2
LAYERS = [("W", "b"), ("out", "shift")]


def normal(seed, *shape):
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape))


def mlp(params, x, first=0.0, last=0.0, act=jnp.tanh):
    """Two layers, with perturbations of what each of them puts out."""
    h = act(x @ params["W"] + params["b"] + first)
    return h @ params["out"] + params["shift"] + last


def make_params(m, hidden=4):
    last = (hidden, m) if m else (hidden,)
    return {"W": normal(0, 3, hidden), "b": normal(1, hidden), "out": normal(2, *last), "shift": normal(3, *last[1:])}


def factored(f, params, xs):
    return jax.jit(partial(jacobian, f, form=Factored))(params, xs)


def make(f, params, xs, centred=False, kind="rows", seed=5) -> tuple[Any, Any]:
    """The system of f with unequal weights that do not add up to one, and a centre."""
    rng = np.random.default_rng(seed)
    O = factored(f, params, xs)
    dtype = O.layout.dtype
    omega = row_weights(jnp.asarray(rng.uniform(0.2, 0.8, O.shape[0])), O)
    rows = Rows(O=O, b=jnp.asarray(rng.normal(size=O.n_rows), dtype), omega=omega, centred=centred)
    c = jax.tree.map(lambda leaf: jnp.asarray(rng.normal(size=leaf.shape), dtype), params)
    return rows if kind == "rows" else Gram(O=O, v=rows.right_side(), omega=omega, centred=centred), c


@eqx.filter_jit
def direction(solver, system, c):
    """The first direction of a solver."""
    prepared, _ = solver.prepare(system, solver.init(system), solver.damping)
    return solver.solve(prepared, solver.damping, system, c)


@eqx.filter_jit
def present(system):
    """(A, S) of every block, from this system alone."""
    solver = KFAC(decay=0.0)
    return solver.prepare(system, solver.init(system), solver.damping)[1].factors


def gauss_newton(f, params, xs, omega):
    """G from jax.jacrev."""
    flat, unravel = ravel_pytree(params)
    O = jax.jit(jax.jacrev(lambda p: jax.vmap(partial(f, unravel(p)))(xs).reshape(-1)))(flat)
    return np.asarray(O.T @ (omega[:, None] * O))


def places(params, names):
    """Where the named leaves lie in the flat vector, in the order of the names."""
    flat, unravel = ravel_pytree(params)
    numbers = unravel(jnp.arange(flat.size, dtype=float))
    return np.concatenate([np.ravel(numbers[name]) for name in names]).astype(int)


def right_side(system, c, damping=LAMBDA):
    """v + λ c."""
    v = jax.jit(lambda s: ravel_pytree(s.right_side())[0])(system)
    return np.asarray(v) + damping * np.asarray(ravel_pytree(c)[0])


def expect_block_solution(found, r, where, K, damping=LAMBDA):
    """d solves with K + λI on this block."""
    d = np.asarray(ravel_pytree(found.d)[0])[where]
    assert bool(found.ok)
    assert np.allclose(d, np.linalg.solve(K + damping * np.eye(len(where)), r[where]), rtol=1e-8, atol=1e-9)


def factors_by_hand(params, xs, omega, act=jnp.tanh):
    """(A, S) of both layers, from activations written down and cotangents of perturbations."""
    n, m = xs.shape[0], len(omega) // xs.shape[0]
    weight = np.asarray(omega).reshape(n, m)[:, 0]
    hidden = act(xs @ params["W"] + params["b"][None])
    zeros = jnp.zeros(params["b"].shape), jnp.zeros(params["shift"].shape)
    pull = jax.jit(jax.vmap(jax.jacrev(partial(mlp, act=act), (2, 3)), (None, 0, None, None)))(params, xs, *zeros)
    pairs = zip((xs, hidden), (np.asarray(g).reshape(n, m, -1) for g in pull), strict=True)
    return [kronecker_by_hand(np.c_[a, np.ones(n)][:, None], g[:, :, None], weight) for a, g in pairs]


def kronecker_by_hand(a, g, weight):
    """A and S from a (n, R, in) and g (n, m, R, out), sample by sample."""
    n, R = a.shape[:2]
    A = [weight[i] * np.outer(a[i, t], a[i, t]) / R for i in range(n) for t in range(R)]
    S = [weight[i] * np.outer(g_t, g_t) for i in range(n) for g_c in g[i] for g_t in g_c]
    return np.sum(A, axis=0) / np.sum(weight), np.sum(S, axis=0)


@pytest.mark.parametrize("m", [0, 2], ids=["scalar", "vector"])
def test_one_sample_gives_the_exact_block_of_each_layer_with_its_bias(m):
    params, xs = make_params(m), normal(7, 1, 3)
    system, c = make(mlp, params, xs)
    found, G = direction(KFAC(LAMBDA, decay=0.0), system, c), gauss_newton(mlp, params, xs, system.omega)
    for names in LAYERS:
        where = places(params, names)
        expect_block_solution(found, right_side(system, c), where, G[np.ix_(where, where)])


def test_a_linear_network_has_the_exact_blocks_for_any_number_of_samples():
    """Cotangents that do not depend on the sample."""
    params, xs = make_params(0), normal(7, 9, 3)
    linear = partial(mlp, act=lambda z: z)
    system, c = make(linear, params, xs)
    found, G = direction(KFAC(LAMBDA, decay=0.0), system, c), gauss_newton(linear, params, xs, system.omega)
    for names in LAYERS:
        where = places(params, names)
        expect_block_solution(found, right_side(system, c), where, G[np.ix_(where, where)])


@pytest.mark.parametrize("m", [0, 3], ids=["scalar", "vector"])
def test_elsewhere_it_inverts_the_kronecker_product(m):
    """S sums over components and A ⊗ S is not the exact block."""
    params, xs = make_params(m), normal(7, 9, 3)
    system, c = make(mlp, params, xs)
    found, G = direction(KFAC(LAMBDA, decay=0.0), system, c), gauss_newton(mlp, params, xs, system.omega)
    for names, (A, S) in zip(LAYERS, factors_by_hand(params, xs, system.omega), strict=True):
        expect_block_solution(found, right_side(system, c), places(params, names), np.kron(A, S))
    where, (A, S) = places(params, LAYERS[0]), factors_by_hand(params, xs, system.omega)[0]
    exact = G[np.ix_(where, where)]
    assert np.linalg.norm(np.kron(A, S) - exact) > 0.1 * np.linalg.norm(exact)


def test_factored_damping_is_the_inverse_of_the_product_of_damped_factors():
    """A ⊗ S + λI + √λ (π I ⊗ S + A ⊗ I / π)."""
    params, xs = make_params(2), normal(7, 9, 3)
    system, c = make(mlp, params, xs)
    found = direction(KFAC(LAMBDA, decay=0.0, factored=True), system, c)
    r = right_side(system, c)
    for names, (A, S) in zip(LAYERS, factors_by_hand(params, xs, system.omega), strict=True):
        pi = np.sqrt(np.trace(A) / len(A) / (np.trace(S) / len(S)))
        mixed = pi * np.kron(np.eye(len(A)), S) + np.kron(A, np.eye(len(S))) / pi
        K = np.kron(A, S) + np.sqrt(LAMBDA) * mixed
        expect_block_solution(found, r, places(params, names), K)


def residual(params, x, dz=0.0, dz_x=0.0, du=0.0, du_xx=0.0):
    """u + ∂²u/∂x₁², written as streams: value and first derivative through W, value and second through `out`."""
    h = jnp.tanh(x @ params["W"] + params["b"] + dz)
    z_x = jnp.eye(3)[0] @ params["W"] + dz_x
    h_xx = -2 * h * (1 - h**2) * z_x**2
    return h @ params["out"] + params["shift"] + du + h_xx @ params["out"] + du_xx


def test_activations_are_averaged_over_the_streams_of_a_residual():
    """1/R with R = 2, and a bias that follows the value only."""
    params, xs = make_params(0), normal(7, 6, 3)
    system, c = make(residual, params, xs)
    wide, one = jnp.zeros(4), jnp.zeros(())
    g = jax.vmap(jax.grad(residual, (2, 3, 4, 5)), (None, 0, *(None,) * 4))(params, xs, wide, wide, one, one)
    h = jnp.tanh(xs @ params["W"] + params["b"][None])
    h_xx = -2 * h * (1 - h**2) * params["W"][0][None] ** 2
    first = np.stack([np.c_[xs, np.ones(6)], np.broadcast_to(np.eye(4)[0], (6, 4))], 1)
    last = np.stack([np.c_[h, np.ones(6)], np.c_[h_xx, np.zeros(6)]], 1)
    both = [(first, np.stack(g[:2], 1)[:, None]), (last, np.stack(g[2:], 1)[:, None, :, None])]
    found, omega = direction(KFAC(LAMBDA, decay=0.0), system, c), np.asarray(system.omega)
    r = right_side(system, c)
    traces = [np.trace(A[0]) * np.trace(S[0]) for A, S in present(system)]
    for names, (a, g) in zip(LAYERS, both, strict=True):
        expect_block_solution(found, r, places(params, names), np.kron(*kronecker_by_hand(a, g, omega)))
    expected = [np.trace(np.kron(*kronecker_by_hand(a, g, omega))) for a, g in both]
    assert np.allclose(sorted(traces), sorted(expected))


def electrons(params, x, act=jnp.tanh):
    """One layer for every row of x, and a sum over them."""
    h = act(x @ params["W"] + params["b"][None])
    return jnp.sum(h @ params["out"] + params["shift"])


R = 5


@pytest.mark.parametrize(("shared", "factor"), [("reduce", 1.0), ("expand", 1 / R)])
def test_equal_uses_have_the_exact_block_where_they_are_reduced_and_an_rth_of_it_where_expanded(shared, factor):
    """One sample, whose R rows are the same: ∂f/∂W is R a ⊗ g, and the block of G has R²."""
    params, xs = make_params(0), jnp.repeat(normal(7, 1, 1, 3), R, axis=1)
    system, c = make(electrons, params, xs)
    found = direction(KFAC(LAMBDA, decay=0.0, shared=shared), system, c)
    G = gauss_newton(electrons, params, xs, system.omega)
    for names in LAYERS:
        where = places(params, names)
        expect_block_solution(found, right_side(system, c), where, factor * G[np.ix_(where, where)])


def test_reduced_uses_are_exact_where_one_output_adds_up_what_is_linear_in_them():
    """Other activations in every use of every sample, and one cotangent: expanded uses miss their correlation."""
    params, xs = make_params(0), normal(7, 6, R, 3) + 1
    linear = partial(electrons, act=lambda z: z)
    system, c = make(linear, params, xs)
    G, r = gauss_newton(linear, params, xs, system.omega), right_side(system, c)
    reduced = direction(KFAC(LAMBDA, decay=0.0, shared="reduce"), system, c)
    for names in LAYERS:
        where = places(params, names)
        expect_block_solution(reduced, r, where, G[np.ix_(where, where)])
    expanded = direction(KFAC(LAMBDA, decay=0.0), system, c)
    a, b = (np.asarray(ravel_pytree(found.d)[0]) for found in (reduced, expanded))
    assert np.linalg.norm(a - b) > 0.2 * np.linalg.norm(a)


def test_elsewhere_reduced_uses_are_mean_activations_and_summed_cotangents():
    params, xs = make_params(0), normal(7, 6, R, 3)
    system, c = make(electrons, params, xs)
    found = direction(KFAC(LAMBDA, decay=0.0, shared="reduce"), system, c)
    h = np.tanh(np.asarray(xs) @ np.asarray(params["W"]) + np.asarray(params["b"]))
    g = np.sum((1 - h**2) * np.asarray(params["out"]), axis=1)
    one = np.ones((6, 1))
    first = np.c_[np.mean(xs, axis=1), one][:, None], g[:, None, None]
    last = np.c_[h.mean(axis=1), one][:, None], R * one[:, None, None]
    for names, (a, g) in zip(LAYERS, (first, last), strict=True):
        A, S = kronecker_by_hand(a, g, np.asarray(system.omega))
        expect_block_solution(found, right_side(system, c), places(params, names), np.kron(A, S))


@pytest.mark.parametrize("m", [0, 2], ids=["scalar", "vector"])
def test_layers_that_are_used_once_do_not_care_how_uses_count(m):
    system, c = make(mlp, make_params(m), normal(7, 9, 3))
    one, other = (direction(KFAC(LAMBDA, shared=shared), system, c).d for shared in ("expand", "reduce"))
    assert all(np.array_equal(x, y) for x, y in zip(*map(jax.tree.leaves, (one, other)), strict=True))


def test_the_average_over_three_batches_has_no_bias_towards_zero_and_compiles_once():
    params, eps = make_params(2), 0.7
    solver, compiled = KFAC(LAMBDA, decay=eps), []
    batches = [make(mlp, params, normal(20 + k, 5, 3), seed=k) for k in range(3)]

    @jax.jit
    def step(system, c, state):
        compiled.append(1)
        prepared, state = solver.prepare(system, state, LAMBDA)
        return solver.solve(prepared, LAMBDA, system, c), state

    state = start = solver.init(jax.eval_shape(lambda: batches[0][0]))
    found = None
    for system, c in batches:
        found, state = step(system, c, state)
    assert len(compiled) == 1
    assert jax.tree.structure(state) == jax.tree.structure(start)
    assert [(x.shape, x.dtype, x.weak_type) for x in jax.tree.leaves(state)] == [
        (x.shape, x.dtype, x.weak_type) for x in jax.tree.leaves(start)
    ]
    weights = (1 - eps) * eps ** np.arange(2, -1, -1) / (1 - eps**3)
    seen = [factors_by_hand(params, normal(20 + k, 5, 3), batches[k][0].omega) for k in range(3)]
    system, c = batches[-1]
    r = right_side(system, c)
    for layer, names in enumerate(LAYERS):
        A, S = (sum(w * each[layer][side] for w, each in zip(weights, seen, strict=True)) for side in (0, 1))
        expect_block_solution(found, r, places(params, names), np.kron(A, S))


def convolution(params, x):
    conv = partial(jax.lax.conv_general_dilated, dimension_numbers=("NHWC", "HWIO", "NHWC"))
    x = jnp.tanh(conv(x[None], params["net"]["kernel"], (1, 1), "SAME") + params["net"]["b"][None, None, None])
    return jnp.sum(x, (0, 1, 2)) * params["scale"]


def shared(params, x):
    """The same layer for all particles and for two rounds, and its transpose at the end."""
    for bias in params["biases"]:
        x = jnp.tanh(x @ params["w"] + bias[None])
    return jnp.sum(x @ params["w"].T)


def heads(params, x):
    """One block per head, and a leaf of which a part is used."""
    h = jnp.tanh(jnp.einsum("hi,hio->ho", x, params["heads"]) + params["b"])
    return jnp.sum(h @ params["cut"][1:3])


MODELS = {
    "convolution": (
        convolution,
        {"net": {"kernel": normal(0, 2, 2, 2, 3), "b": normal(1, 3)}, "scale": normal(2, 3)},
        normal(3, 4, 3, 3, 2),
    ),
    "shared weights": (shared, {"w": normal(0, 3, 3), "biases": [normal(1, 3), normal(2, 3)]}, normal(3, 4, 2, 3)),
    "heads": (
        heads,
        {"heads": normal(0, 2, 3, 2), "b": normal(1, 2, 2), "cut": normal(2, 4, 2)[:, :2]},
        normal(3, 5, 2, 3),
    ),
}


@pytest.mark.matrix
@pytest.mark.parametrize("shared", ["expand", "reduce"])
@pytest.mark.parametrize("split", [False, True], ids=["exact", "factored"])
@pytest.mark.parametrize("name", MODELS)
def test_directions_of_any_model_descend(name, split, shared):
    f, params, xs = MODELS[name]
    system, c = make(f, params, xs)
    found = direction(KFAC(LAMBDA, factored=split, shared=shared), system, c)
    r = right_side(system, c)
    d = np.asarray(ravel_pytree(found.d)[0])
    assert bool(found.ok)
    assert jax.tree.structure(found.d) == jax.tree.structure(params)
    assert 0 < r @ d < r @ r / LAMBDA * (1 + 1e-9)


def test_heads_have_blocks_of_their_own_with_their_biases():
    f, params, xs = MODELS["heads"]
    system, c = make(f, params, xs[:1])
    found, G = direction(KFAC(LAMBDA, decay=0.0), system, c), gauss_newton(f, params, xs[:1], system.omega)
    for head in range(2):
        where = np.r_[places(params, ["heads"]).reshape(2, -1)[head], places(params, ["b"]).reshape(2, -1)[head]]
        expect_block_solution(found, right_side(system, c), where, G[np.ix_(where, where)])


def test_two_biases_of_one_weight_share_its_block():
    """Each has its own entry in the activations, 1 where it is added and 0 elsewhere."""
    f, params, xs = MODELS["shared weights"]
    system, _ = make(f, params, xs)
    ((block, _),) = blocks.blocks(system.O)
    assert [leaf for leaf, _ in block.places] == [2, 0, 1]
    ((A, S),) = present(system)
    ones = A[0, 3:, 3:]
    assert A.shape == (1, 5, 5)
    assert S.shape == (1, 3, 3)
    assert np.allclose(ones, np.eye(2) / 3)


def overlapping(params, x):
    """The whole of W and a slice of it; a vector against a function of itself."""
    W, v = params["W"], params["v"]
    return jnp.sum(W @ x) + jnp.sum(jnp.tanh(x[:2] @ W[:2])) + v @ jnp.tanh(v * x)


@pytest.mark.parametrize(("limit", "n"), [(1024, 7), (4, 8)], ids=["dense", "diagonal"])
def test_leaves_without_factors_are_exact_blocks_or_the_diagonal(limit, n, monkeypatch):
    monkeypatch.setattr(blocks, "DENSE", limit)
    params, xs = {"W": normal(0, 4, 3), "v": normal(1, 3)}, normal(2, n, 3)
    system, c = make(overlapping, params, xs)
    G = gauss_newton(overlapping, params, xs, system.omega)
    for split in (False, True):
        found = direction(KFAC(LAMBDA, decay=0.0, factored=split), system, c)
        for name in ("W", "v"):
            where = places(params, [name])
            K = G[np.ix_(where, where)]
            K = np.diag(np.diag(K)) if len(where) > limit else K
            expect_block_solution(found, right_side(system, c), where, K)


def test_parameters_that_are_not_used_step_by_the_damping_alone():
    params, xs = {"idle": normal(0, 2), "w": normal(1, 5, 2)}, normal(2, 4, 3)

    def f(params, x):
        return jnp.sum(jnp.tanh(x @ params["w"][:3]))

    system, c = make(f, params, xs, kind="gram")
    zero = jax.tree.map(jnp.zeros_like, c)
    pushed = Gram(O=system.O, v=jax.tree.map(lambda v: v + 1.0, system.right_side()), omega=system.omega)
    found = direction(KFAC(LAMBDA), pushed, zero)
    assert np.allclose(found.d["idle"], 1 / LAMBDA)
    assert np.allclose(found.d["w"][3:], 1 / LAMBDA)
    assert not np.any(np.isclose(found.d["w"][:3], 1 / LAMBDA))
    assert np.all(direction(KFAC(0.0), system, zero).d["idle"] == 0)


def test_parts_of_a_stacked_jacobian_count_as_further_samples():
    params, xs = make_params(0), normal(7, 9, 3)
    system, c = make(mlp, params, xs)
    O = stack([factored(mlp, params, part) for part in (xs[:4], xs[4:])], keep=True)
    halves = Rows(O=O, b=system.b, omega=system.omega)
    for split in (False, True):
        solver = KFAC(LAMBDA, factored=split)
        one, two = (ravel_pytree(direction(solver, each, c).d)[0] for each in (system, halves))
        assert np.allclose(one, two, rtol=1e-10)


def test_terms_that_use_a_leaf_otherwise_share_its_block_or_leave_it_alone():
    """W, its transpose, and a bias that one term adds elsewhere: b is then a block of its own."""
    params, xs = {"W": normal(0, 3, 3), "b": normal(1, 3), "v": normal(2, 3)}, normal(3, 5, 3)
    terms = [
        lambda p, x: jnp.sum(jnp.tanh(x @ p["W"] + p["b"])),
        lambda p, x: jnp.sum(jnp.sin(p["W"] @ x)),
        lambda p, x: jnp.tanh(p["b"] @ x) + p["v"] @ x,
    ]
    O = stack([factored(f, params, xs) for f in terms], keep=True)
    omega = jnp.asarray(np.random.default_rng(4).uniform(0.2, 0.8, 15))
    system, c = Rows(O=O, b=normal(5, 15), omega=omega), jax.tree.map(jnp.ones_like, params)
    found = direction(KFAC(LAMBDA, decay=0.0), system, c)
    G = np.sum([gauss_newton(f, params, xs, w) for f, w in zip(terms, omega.reshape(3, 5), strict=True)], axis=0)
    slope = np.stack([1 - np.tanh(xs @ params["W"] + params["b"][None]) ** 2, xs])
    other = np.stack([xs, np.cos(xs @ params["W"].T)])
    weight = np.asarray(omega)[:10].reshape(2, 5)
    A = np.einsum("pn,pni,pnj->ij", weight, other, other) / weight.sum()
    S = np.einsum("pn,pni,pnj->ij", weight, slope, slope)
    expect_block_solution(found, right_side(system, c), places(params, ["W"]), np.kron(A, S))
    where = places(params, ["v"])
    expect_block_solution(found, right_side(system, c), where, G[np.ix_(where, where)])


@pytest.mark.parametrize("kind", ["rows", "gram"])
def test_centred_rows_centre_the_right_side_and_not_the_factors(kind):
    params, xs = make_params(0), normal(7, 9, 3)
    system, c = make(mlp, params, xs, centred=True, kind=kind)
    found = direction(KFAC(LAMBDA, decay=0.0), system, c)
    for names, (A, S) in zip(LAYERS, factors_by_hand(params, xs, system.omega), strict=True):
        expect_block_solution(found, right_side(system, c), places(params, names), np.kron(A, S))


def test_single_precision_stays_single_and_accurate():
    params, xs = make_params(2), normal(7, 9, 3)
    low = jax.tree.map(lambda x: x.astype(jnp.float32), params)
    (system, c), (exact, c_exact) = make(mlp, low, xs.astype(jnp.float32)), make(mlp, params, xs)
    solver = KFAC(1e-4)
    found, reference = direction(solver, system, c).d, direction(solver, exact, c_exact).d
    assert {x.dtype for x in jax.tree.leaves((found, present(system)))} == {jnp.dtype("float32")}
    difference = ravel_pytree(found)[0].astype(float) - ravel_pytree(reference)[0]
    assert np.linalg.norm(difference) < 1e-3 * np.linalg.norm(ravel_pytree(reference)[0])


def test_singular_factors_without_damping_are_reported_and_a_fallback_takes_over():
    params, xs = make_params(0), normal(7, 1, 3)
    system, c = make(mlp, params, xs)
    assert not bool(direction(KFAC(0.0), system, c).ok)
    assert bool(direction(KFAC(1e-10), system, c).ok)
    rescued = direction(WithFallback(KFAC(0.0), Kernel(LAMBDA)), system, c)
    expected = direction(Kernel(LAMBDA), system, c)
    assert bool(rescued.ok)
    assert np.allclose(ravel_pytree(rescued.d)[0], ravel_pytree(expected.d)[0])


def test_layers_in_a_scan_have_the_blocks_of_layers_in_a_row():
    def scanned(params, x):
        return jax.lax.scan(lambda h, w: (jnp.tanh(h @ w), None), x, params["layers"])[0] @ params["out"]

    def in_a_row(params, x):
        for k in range(3):
            x = jnp.tanh(x @ params["layers"][k])
        return x @ params["out"]

    params, xs = {"layers": normal(1, 3, 4, 4) / 2, "out": normal(2, 4)}, normal(3, 9, 4)
    one, other = (direction(KFAC(LAMBDA), *make(f, params, xs)) for f in (scanned, in_a_row))
    assert np.allclose(ravel_pytree(one.d)[0], ravel_pytree(other.d)[0], rtol=1e-10)
    assert len(present(make(scanned, params, xs)[0])) == 4


def test_many_dampings_share_one_preparation():
    system, c = make(mlp, make_params(0), normal(7, 9, 3))
    prepared, _ = KFAC().prepare(system, KFAC().init(system), 1e-3, many=True)
    dampings = jnp.array([1e-3, 1e-1])
    together = eqx.filter_vmap(lambda lam: KFAC().solve(prepared, lam, system, c).d)(dampings)
    for k, damping in enumerate(dampings):
        alone = direction(KFAC(float(damping)), system, c).d
        assert all(np.allclose(x[k], y) for x, y in zip(*map(jax.tree.leaves, (together, alone)), strict=True))


def with_form(form):
    params, xs = make_params(0), normal(7, 4, 3)
    O = jacobian(mlp, params, xs, form=form)
    return Rows(O=O, b=jnp.ones(4), omega=jnp.full(4, 0.25))


@pytest.mark.parametrize(
    ("make_it", "words"),
    [
        (lambda: KFAC(-1.0), "KFAC: damping must be finite and ≥ 0"),
        (lambda: KFAC(float("nan")), "KFAC: damping must be finite and ≥ 0"),
        (lambda: KFAC(decay=1.0), r"KFAC: decay must lie in \[0, 1\), got 1.0"),
        (lambda: KFAC(decay=-0.1), r"decay must lie in \[0, 1\)"),
        (lambda: KFAC(shared="sum"), "KFAC: shared must be one of expand, reduce, got 'sum'"),
        (lambda: KFAC().init(with_form(Dense)), "needs the layer factors of a Factored Jacobian, got Dense"),
    ],
)
def test_misuse_is_refused_with_a_sentence(make_it, words):
    with pytest.raises(ValueError, match=words):
        make_it()


def test_the_solver_asks_for_factors():
    assert KFAC().form is Factored
