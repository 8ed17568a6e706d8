"""Four ways to hold O agree with each other and with reverse mode; the choice between them follows from shapes."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from angd.method.jacobian import AbstractJacobian, Chunked, Dense, Factored, MatrixFree, jacobian
from angd.method.jacobian.leaves import hadamard_wins

FORMS = [Dense, Factored, Chunked, MatrixFree]
N = 37


def normal(seed, *shape):
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape))


def network(*widths):
    return [normal(k, widths[k], widths[k + 1]) / np.sqrt(widths[k]) for k in range(len(widths) - 1)]


def value(params, x):
    for w in params[:-1]:
        x = jnp.tanh(x @ w)
    return (x @ params[-1])[0]


def residual(params, x):
    """An eikonal equation: every weight is used several times, also transposed."""
    return jnp.sum(jax.grad(value, 1)(params, x) ** 2) - value(params, x)


def both(params, x):
    return jnp.stack([value(params, x), residual(params, x)])


def mixed(params, x):
    """A sample that is a dictionary; wide layers, whose kernel pays in Hadamard form; elementwise weights."""
    h = jnp.tanh(x["points"] @ params["wide"])
    return jnp.sum(h @ params["square"] * params["scale"][None, :]) * x["sign"] + params["shift"]


def paired(params, x):
    """Two outputs, batched weights, and a matrix beside its transpose, all wide enough for the Hadamard form."""
    h = jnp.einsum("hi,hio->ho", x, params["heads"])
    return (params["w"].T @ jnp.tanh(params["w"] @ h.sum(0)))[:2]


PAIRED = {"heads": normal(0, 2, 30, 40) / 6, "w": normal(1, 40, 30) @ normal(2, 30, 40) / 40}
WIDE = {
    "wide": normal(0, 30, 40) / 6,
    "square": normal(1, 40, 40) / 6,
    "scale": normal(2, 40),
    "shift": jnp.asarray(0.3),
}
PROBLEMS = {
    "value": (value, network(2, 30, 40, 1), normal(9, N, 2)),
    "residual": (residual, network(2, 6, 5, 1), normal(9, N, 2)),
    "vector": (both, network(2, 6, 5, 1), normal(9, N, 2)),
    "paired": (paired, PAIRED, normal(9, N, 2, 30)),
    "mixed": (mixed, WIDE, {"points": normal(9, N, 1, 30), "sign": normal(8, N)}),
}


def reference(f, params, xs):
    """O by reverse mode, rows sample-major."""
    flat, unravel = ravel_pytree(params)
    rows = jax.vmap(jax.jacrev(lambda flat, x: f(unravel(flat), x)), (None, 0))(flat, xs)
    return rows.reshape(-1, flat.size)


@eqx.filter_jit
def products(form, f, params, xs, d, y, scale):
    jac = Chunked.of(f, params, xs, 10) if form is Chunked else jacobian(f, params, xs, form=form)
    pulled = ravel_pytree(jac.rmatvec(y))[0]
    return jac, (jac.matvec(d), pulled, jac.dense(), jac.kernel(), jac.kernel(scale), jac.gram(), jac.gram(scale))


def every_form_on_every_problem():
    """Forms without taps do not care for the special problems of the Hadamard form: those pairs are slow tests."""
    for name, form in itertools.product(PROBLEMS, FORMS):
        redundant = form in (Chunked, MatrixFree) and name in ("value", "paired", "mixed")
        yield pytest.param(name, form, marks=[pytest.mark.slow] if redundant else [], id=f"{name}-{form.__name__}")


@pytest.mark.matrix
@pytest.mark.parametrize(("name", "form"), list(every_form_on_every_problem()))
def test_every_form_gives_the_products_of_reverse_mode(name, form):
    f, params, xs = PROBLEMS[name]
    M = jax.jit(reference, static_argnums=0)(f, params, xs)
    shape = jax.eval_shape(jax.vmap(f, (None, 0)), params, xs).shape
    d = jax.tree.map(lambda leaf: normal(5, *leaf.shape), params)
    y, scale = normal(6, *shape), jnp.abs(normal(7, len(M)))
    jac, got = products(form, f, params, xs, d, y, scale)
    S = scale[:, None] * M
    expected = ((M @ ravel_pytree(d)[0]).reshape(shape), M.T @ y.ravel(), M, M @ M.T, S @ S.T, M.T @ M, S.T @ S)
    assert isinstance(jac, form)
    assert (jac.n_rows, jac.n_params) == M.shape
    for ours, theirs in zip(got, expected, strict=True):
        assert ours.shape == theirs.shape
        assert np.allclose(ours, theirs, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("form", FORMS)
def test_a_jacobian_crosses_jit_and_compiles_once(form):
    f, params, xs = PROBLEMS["vector"]
    traces = []

    @jax.jit
    def build(params, xs):
        traces.append("build")
        return jacobian(f, params, xs, form=form)

    @jax.jit
    def use(jac):
        traces.append("use")
        return jac.kernel()

    first, second = use(build(params, xs)), use(build(jax.tree.map(lambda w: 2 * w, params), xs + 1))
    assert traces == ["build", "use"]
    assert first.shape == second.shape == (2 * N, 2 * N)


def test_wide_layers_take_the_hadamard_form():
    leaves = Factored.of(*PROBLEMS["paired"]).leaves
    assert [(leaf.name, group.a.shape[1:4]) for leaf in leaves for group in leaf.groups if hadamard_wins(group)] == [
        ("['heads']", (1, 2, 1)),
        ("['w']", (2, 1, 2)),
    ]


@pytest.mark.parametrize("n", [1, 127, 128, 300])
def test_symmetric_products_are_exact_at_every_number_of_blocks(n):
    params, xs = network(2, 3, 1), normal(9, n, 2)
    kernel = jacobian(value, params, xs, form=Dense).kernel()
    M = jacobian(value, params, xs, form=Dense).dense()
    assert np.allclose(kernel, M @ M.T, rtol=1e-12, atol=1e-12)
    assert np.array_equal(kernel, kernel.T)
    assert np.allclose(jacobian(value, params, xs, form=Factored).kernel(), kernel, rtol=1e-12, atol=1e-12)


def test_single_precision_stays_single():
    f, params, xs = jax.tree.map(lambda v: v.astype(jnp.float32) if eqx.is_array(v) else v, PROBLEMS["residual"])
    for form in FORMS:
        jac, got = products(form, f, params, xs, params, xs[:, 0], jnp.ones(N, jnp.float32))
        assert {x.dtype for x in got} == {jnp.dtype("float32")}
        pulled = jax.eval_shape(jac.rmatvec, xs[:, 0])
        assert {x.dtype for x in jax.tree.leaves(pulled)} == {jnp.dtype("float32")}


@pytest.mark.parametrize("form", FORMS)
def test_leaves_of_different_precision_keep_theirs(form):
    params = {"a": normal(0, 3, 2).astype(jnp.float32), "b": normal(1, 2)}
    jac = jacobian(lambda params, x: jnp.tanh(x @ params["a"]) @ params["b"], params, normal(2, 5, 3), form=form)
    pulled = jac.rmatvec(jnp.ones(5, jnp.float32))
    assert jax.tree.map(lambda leaf: leaf.dtype.name, pulled) == {"a": "float32", "b": "float64"}
    assert jac.matvec(jax.tree.map(lambda leaf: leaf.astype(jnp.float32), params)).dtype == jnp.float64
    assert jac.dense().dtype == jac.kernel().dtype == jac.gram().dtype == jnp.float64


@pytest.mark.parametrize(
    ("widths", "n", "memory", "form"),
    [
        ((2, 4, 4, 1), 20, 2**31, Dense),
        ((2, 80, 80, 1), 20, 2**31, Factored),
        ((2, 80, 80, 1), 20, 60_000, Factored),
        ((2, 4, 4, 1), 2000, 100_000, Chunked),
        ((2, 4, 4, 1), 2000, 1000, MatrixFree),
    ],
)
def test_shapes_and_memory_choose_the_form(widths, n, memory, form):
    jac = jax.eval_shape(lambda: jacobian(value, network(*widths), normal(9, n, 2), memory=memory))
    assert isinstance(jac, form)
    assert isinstance(jac, AbstractJacobian)


@pytest.mark.parametrize(
    ("f", "params", "xs", "sentence"),
    [
        (value, [jnp.ones((2, 1), int)], jnp.ones((3, 2)), r"the parameter \[0\] is int64: only real floating-point"),
        (value, {"w": jnp.ones(2, complex)}, jnp.ones((3, 2)), r"the parameter \['w'\] is complex128"),
        (value, [jnp.tanh], jnp.ones((3, 2)), r"the parameter \[0\] is .*: only real floating-point"),
        (value, [], jnp.ones((3, 2)), "params has no arrays"),
        (value, network(2, 1), jnp.ones((0, 2)), "the batch is empty"),
        (value, network(2, 1), (jnp.ones((3, 2)), jnp.ones((4, 2))), r"disagree on the number of samples.*\[3, 4\]"),
        (value, network(2, 1), jnp.asarray(1.0), "leading axis runs over the samples"),
        (lambda w, x: (w @ x, w), jnp.ones(2), jnp.ones((3, 2)), "must return one array"),
        (lambda w, x: w[:, None] * x[None], jnp.ones(2), jnp.ones((3, 2)), r"not an array of shape \(2, 2\)"),
        (lambda w, x: 1j * (w @ x), jnp.ones(2), jnp.ones((3, 2)), "real floating-point numbers, not complex128"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(f, params, xs, sentence):
    with pytest.raises(ValueError, match=sentence):
        jacobian(f, params, xs)


@pytest.mark.parametrize("columns", [7, 100])
def test_panels_of_columns_make_the_kernel_of_all(columns, monkeypatch):
    """Narrow parts joined, wide ones alone, the widest cut along their activations or their cotangents."""
    monkeypatch.setattr("angd.method.jacobian.panels.most_columns", lambda rows, itemsize: columns)
    params = {"w": normal(0, 3, 40) / 3, "out": normal(1, 40), "bias": normal(2, 40), "table": normal(3, 40)}

    def f(params, x):
        h = jnp.tanh(x @ params["w"] + params["bias"])
        return jnp.stack([h @ params["out"], jnp.sum(h**2 * params["table"] * params["out"])])

    xs = normal(9, 150, 3)
    M = reference(f, params, xs)
    kernel = jacobian(f, params, xs, form=Factored).kernel()
    assert np.allclose(kernel, M @ M.T, rtol=1e-10, atol=1e-10)
    assert np.array_equal(kernel, kernel.T)


def test_rows_beyond_the_cache_stay_factors_where_the_kernel_is_the_smaller_matrix():
    params = [jnp.ones((10, 60)), jnp.ones((60, 300)), jnp.ones((300, 1))]

    def tokens(params, x):
        return jnp.sum(jnp.tanh(jnp.tanh(x @ params[0]) @ params[1]) @ params[2])

    def held(n, dtype=float):
        shapes = jax.tree.map(lambda w: jax.ShapeDtypeStruct(w.shape, dtype), params)
        xs = jax.ShapeDtypeStruct((n, 12, 10), dtype)
        return type(jax.eval_shape(lambda params, xs: jacobian(tokens, params, xs), shapes, xs))

    assert held(50) is Dense  # 7.5 MB
    assert held(500) is Factored
    assert held(500, jnp.float32) is Dense
    assert held(20_000) is Dense
