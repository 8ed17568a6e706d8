"""A Jacobian on several devices is the one of a single device, in every form and product."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import angd
from angd.method.jacobian import Chunked, Dense, Factored, MatrixFree, Split, build, centre, jacobian, rescaled, stack
from angd.method.parallel import by_share, constrained, mesh_of
from angd.train.communication import messages

FORMS = (Dense, Factored, Chunked, MatrixFree)


def pair(params, x):
    """Two components, with a layer that is used twice."""
    h = jnp.tanh(x @ params["W"] + params["b"])
    return jnp.tanh(jnp.tanh(h @ params["V"]) @ params["V"])[:2]


def single(params, x):
    return pair(params, x)[0]


def start(dtype=float, width=4):
    keys = jax.random.split(jax.random.key(0), 3)
    shapes = {"V": (width, width), "W": (2, width), "b": (width,)}
    return {n: jax.random.normal(k, s, dtype) for k, (n, s) in zip(keys, shapes.items(), strict=True)}


def two():
    return angd.parallel.mesh(jax.devices()[:2])


def rows(f, params, xs):
    """O by reverse mode over one sample after the other: what everything is compared with."""
    flat, unravel = ravel_pytree(params)
    return np.concatenate([np.atleast_2d(jax.jacrev(lambda v, x=x: f(unravel(v), x))(flat)) for x in xs])


@partial(jax.jit, static_argnums=(0, 4))
def products(form, params, xs, other, over):
    """All products of the rows of two terms, of one of them centred, and in other units."""
    if over is not None:
        xs, other = constrained((xs, other), over)
    O = jacobian(pair, params, xs, form=form)
    both = stack([O, jacobian(single, params, other, form=form)])
    omega, s = jnp.linspace(0.1, 1, O.n_rows), jnp.linspace(1, 2, O.n_params)
    root, less = jnp.sqrt(jnp.linspace(0.1, 1, both.n_rows)), centre(O, omega)
    assert over is None or isinstance(O, Split)
    return {
        "O d": both.matvec(params),
        "Oᵀy": both.rmatvec(root),
        "kernel": both.kernel(root),
        "gram": both.gram(root),
        "diagonal": both.squares(root),
        "rows": both.dense(),
        "centred kernel": less.kernel(omega),
        "centred gram": less.gram(omega),
        "rescaled": rescaled(both, s).kernel(root),
        "centred, rescaled": rescaled(less, s).kernel(omega),
    }


@pytest.mark.parametrize("form", [Dense, *(pytest.param(form, marks=pytest.mark.slow) for form in FORMS[1:])])
def test_two_devices_have_the_products_of_one(form, monkeypatch):
    """Seven and five samples, which two devices do not divide, in chunks of two."""
    monkeypatch.setattr(build, "ROWS", 2)
    params, xs, other = start(), *(jax.random.normal(jax.random.key(i), (n, 2)) for i, n in ((1, 7), (2, 5)))
    alone = products(form, params, xs, other, None)
    shared = products(form, angd.replicate(params, two()), xs, other, two())
    for name, expected in alone.items():
        for a, b in zip(jax.tree.leaves(expected), jax.tree.leaves(shared[name]), strict=True):
            assert np.allclose(a, b, atol=1e-13), name
    O = np.concatenate([rows(pair, params, xs), rows(single, params, other)])
    root = np.sqrt(np.linspace(0.1, 1, len(O)))[:, None]
    assert np.allclose(shared["kernel"], (root * O) @ (root * O).T)
    assert np.allclose(shared["gram"], (root * O).T @ (root * O))


@pytest.mark.parametrize("size", [3, 1000])
def test_no_matrix_grows_with_the_devices_in_chunks_or_at_once(size, monkeypatch):
    """A well-known code once multiplied its matrix by the number of devices where samples came in chunks."""
    monkeypatch.setattr(build, "ROWS", size)
    params, xs = start(), jax.random.normal(jax.random.key(1), (12, 2))

    @jax.jit
    def both(params, xs):
        O = jacobian(single, params, constrained(xs, two()), form=Chunked)
        return O.gram(jnp.sqrt(jnp.full(12, 1 / 12))), O.kernel()

    gram, kernel = both(angd.replicate(params, two()), xs)
    O = rows(single, params, xs)
    assert np.allclose(gram, O.T @ O / 12)
    assert np.allclose(kernel, O @ O.T)


def test_rows_in_single_precision_lose_one_row_that_is_the_same_on_all_devices():
    params, xs = start(jnp.float32), jax.random.normal(jax.random.key(1), (8, 2), jnp.float32)

    def centred(form, params, xs, over=None):
        O = jacobian(single, params, xs if over is None else constrained(xs, over), form=form)
        return centre(O, jnp.full(8, 1 / 8, jnp.float32)).kernel()

    O = rows(single, params, xs)
    expected = (O - O.mean(0)) @ (O - O.mean(0)).T
    for form in (Factored, Chunked):
        shared = jax.jit(partial(centred, form, over=two()))(angd.replicate(params, two()), xs)
        assert np.allclose(shared, expected, atol=1e-4 * np.max(expected))


@pytest.mark.parametrize("form", [Dense, Factored, Chunked])
def test_rows_are_never_gathered(form):
    """Of n × p numbers a device sees its half: for the Gram matrix p × p are summed; for the kernel rows are exchanged,
    or the factors of the wide layer are gathered, or the samples."""
    n, width, over = 64, 40, two()
    params = start(width=width)
    p = width**2 + 3 * width

    def sent(product):
        made = jax.jit(lambda params, xs: product(jacobian(single, params, constrained(xs, over), form=form)))
        text = made.lower(angd.replicate(params, over), jnp.ones((n, 2))).compile().as_text() or ""
        return {kind: sum(m.bytes for m in messages(text) if m.kind == kind) for kind, *_ in messages(text)}

    factors = {"all-gather": 8 * n * 4 * width, "all-to-all": 8 * n * 3 * width // 2}
    expected = {Dense: {"all-to-all": 8 * n * p // 2}, Factored: factors, Chunked: {"all-gather": 8 * n * 2}}
    assert sent(lambda O: O.gram()) == {"all-reduce": 8 * p * p}
    assert sent(lambda O: O.kernel()) == {"all-reduce": 8 * n * n, **expected[form]}


def test_a_share_of_the_samples_knows_of_no_other_device():
    over = two()

    @jax.jit
    def squares(xs):
        assert mesh_of(xs) is not None
        return by_share(lambda part: (part**2, jnp.full(len(part), len(part)))[0 if mesh_of(part) is None else 1], xs)

    xs = angd.split(jnp.arange(6.0), over)
    assert np.array_equal(squares(xs), np.arange(6.0) ** 2)
    assert mesh_of(jnp.ones(3)) is None
    odd = jax.jit(lambda xs: by_share(jnp.sin, constrained(xs, over)))(angd.replicate(jnp.arange(5.0), over))
    assert np.allclose(odd, np.sin(np.arange(5.0)))
