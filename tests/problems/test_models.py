"""Models of other frameworks: their examples run, what keeps state is refused, a mask freezes what it should."""

import runpy
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen, nnx

import angd
from angd.problems.pinn import Box, Condition, Network, Problem, d

EXAMPLES = sorted((Path(__file__).parents[2] / "examples" / "models").glob("*.py"))
KEY, BOX = jax.random.key(0), Box((0.0, 1.0))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_runs(path):
    """Each asserts what it shows: directions equal to 1e-10."""
    runpy.run_path(str(path))
    assert f"python examples/models/{path.name}" in path.read_text(encoding="utf-8")


def nnx_net():
    rngs = nnx.Rngs(0)
    first, last = nnx.Linear(1, 4, param_dtype=float, rngs=rngs), nnx.Linear(4, 1, param_dtype=float, rngs=rngs)
    return nnx.Sequential(first, jnp.tanh, last)


NETS = {
    "equinox": lambda: eqx.nn.MLP(1, "scalar", 4, 1, jnp.tanh, key=KEY),
    "nnx": nnx_net,
    "linen": lambda: linen.Sequential([linen.Dense(4, param_dtype=float), jnp.tanh, linen.Dense(1, param_dtype=float)]),
}


def equation_with(net):
    start = Condition(BOX.face(0, "lower"), lambda u, z: u(z) - 1.0)
    return Problem(net, BOX, lambda u, z: d(u, 0)(z) + u(z), {"start": start})


@pytest.mark.parametrize("name", NETS)
def test_an_equation_takes_a_module_as_it_is(name):
    net, z = NETS[name](), jnp.array([0.3])
    problem = equation_with(net)
    params = problem.init(KEY)
    expected = net.apply({"params": params}, z) if name == "linen" else net(z)
    assert np.allclose(problem.field(params, z), expected, atol=1e-12)
    assert problem.residuals["interior"](params, z).shape == jnp.shape(expected)


@pytest.mark.slow
@pytest.mark.parametrize("name", NETS)
def test_an_equation_is_solved_by_a_module(name):
    recipe = angd.recipes.GaussNewton(interior=20, condition=2)
    fit = angd.fit(equation_with(NETS[name]()), recipe, steps=12, progress=False)
    assert np.allclose(jnp.ravel(fit(jnp.ones((1, 1)))), np.exp(-1.0), atol=0.02)


def test_what_is_a_model_already_stays_what_it_is():
    network = Network((3,))
    assert angd.as_model(network) is network
    assert angd.as_model(len) is len


NNX_NORM, LINEN_NORM = nnx.BatchNorm(2, rngs=nnx.Rngs(0)), linen.BatchNorm(use_running_average=True)
STATEFUL = {
    "equinox": (lambda: angd.as_model(eqx.nn.Sequential([eqx.nn.BatchNorm(2, "b", mode="ema")])), r"eqx.nn.State"),
    "nnx": (lambda: angd.as_model(nnx.Sequential(NNX_NORM)), r"state \(BatchStat\)"),
    "nnx, dropout": (lambda: angd.as_model(nnx.Dropout(0.5, rngs=nnx.Rngs(0))), r"state \(RngCount, RngKey\)"),
    "linen": (lambda: angd.as_model(LINEN_NORM).init(KEY, 2), r"state \(batch_stats\)"),
}


@pytest.mark.parametrize("name", STATEFUL)
def test_a_model_with_state_is_refused_in_one_sentence(name):
    action, words = STATEFUL[name]
    with pytest.raises(ValueError, match=words) as caught:
        action()
    assert "f(params, x) of the trained parameters alone" in str(caught.value)


def test_statistics_may_be_carried_as_constants():
    """What the sentence proposes: running values fixed, a function of the trained parameters."""
    variables = LINEN_NORM.init(KEY, jnp.zeros(2))
    statistics = {"mean": jnp.array([1.0, 2.0]), "var": jnp.array([4.0, 9.0])}

    def model(params, x):
        return LINEN_NORM.apply({"params": params, "batch_stats": statistics}, x)

    expected = (jnp.array([3.0, 5.0]) - statistics["mean"]) / jnp.sqrt(statistics["var"] + LINEN_NORM.epsilon)
    assert np.allclose(jnp.asarray(model(variables["params"], jnp.array([3.0, 5.0]))), expected, atol=1e-6)


PARAMS = {"a": jnp.ones(2), "b": {"c": jnp.zeros(3), "d": jnp.ones(1)}}


def test_a_mask_of_the_upper_part_is_enough():
    frozen = angd.Frozen(lambda p, x: p["a"].sum() * x, PARAMS, {"a": True, "b": False})
    assert [leaf.shape for leaf in jax.tree.leaves(frozen.init())] == [(2,)]
    whole = frozen.whole(jax.tree.map(lambda leaf: 3 * leaf, frozen.init()))
    assert jax.tree.structure(whole) == jax.tree.structure(PARAMS)
    assert np.allclose(whole["a"], 3.0)
    assert np.allclose(whole["b"]["d"], 1.0)
    deep = angd.Frozen(len, PARAMS, {"a": False, "b": {"c": False, "d": True}})
    assert [leaf.shape for leaf in jax.tree.leaves(deep.init())] == [(1,)]


@pytest.mark.parametrize(
    ("mask", "words"),
    [
        ({"a": True}, "no upper part"),
        ([True, False], "no upper part"),
        ({"a": True, "b": {"c": True, "e": False}}, "no upper part"),
        ({"a": 1.0, "b": 0.0}, "nothing else"),
        ({"a": False, "b": False}, "nothing would be trained"),
    ],
)
def test_a_mask_of_the_wrong_structure_is_refused_in_one_sentence(mask, words):
    with pytest.raises(ValueError, match=words):
        angd.Frozen(len, PARAMS, mask)
