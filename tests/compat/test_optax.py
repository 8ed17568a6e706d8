"""ANGD as an optax transformation: what optax expects of one, and the direction of `ANGD.step`."""

from functools import cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax import lax
from jax.flatten_util import ravel_pytree

import angd
from angd.compat.optax import angd as transformation

RATE, BETA, DAMPING = 0.01, 0.02, 1e-2


class Field(eqx.Module):
    """A network with one layer, and nothing else."""

    def field(self, params, x):
        return jnp.tanh(x @ params["w"] + params["b"]) @ params["a"]


class Everything(Field):
    """The same with all that any metric asks for."""

    def residual(self, params, x):
        return self.field(params, x) - jnp.sin(x[0])

    def variation(self, params, x):
        return self.residual(params, x) ** 3 + x[1]

    def cost(self, z, x):
        return jnp.log(jnp.cosh(z[0] - x[0]))

    def log_density(self, params, x):
        return self.field(params, x) - jnp.sum(x**2)

    def loss(self, params, samples):
        return loss(params, samples)


def loss(params, samples):
    return samples.mean((jax.vmap(Field().field, (None, 0))(params, samples.x) - jnp.sin(samples.x[:, 0])) ** 4)


@cache
def start(dtype=float):
    w, a, x = (jax.random.normal(key, shape) for key, shape in zip(keys(3), ((2, 4), (4,), (20, 2)), strict=True))
    params = {"w": w, "b": jnp.zeros(4), "a": a}
    return jax.tree.map(lambda leaf: leaf.astype(dtype), params), angd.Samples(x.astype(dtype))


def keys(n, seed=0):
    return jax.random.split(jax.random.key(seed), n)


def moving(metric=None, solver=None, **options: Any):
    flow = angd.ARGFlow.momentum(0.8, RATE, beta=BETA)
    return angd.ANGD(flow, metric or angd.L2(), solver or angd.Normal(DAMPING), **options)


def far(x, y):
    return float(optax.tree.norm(optax.tree.sub(x, y)))


def walk(tx: Any, params, batches, **options: Any):
    """Parameters after some updates, and the state."""
    state = tx.init(params)

    @jax.jit
    def one(params, state, samples):
        value, grads = jax.value_and_grad(loss)(params, samples)
        updates, state = tx.update(grads, state, params, samples=samples, value=value, **options)
        return optax.apply_updates(params, updates), state

    for samples in batches:
        params, state = one(params, state, samples)
    return params, state


def batches(samples, n=3):
    return [angd.Samples(samples.x + 0.1 * k) for k in range(n)]


METRICS = {
    "L2": angd.L2(),
    "Hs": angd.Hs(1),
    "L2Pointwise": angd.L2Pointwise(),
    "FisherRao": angd.FisherRao(),
    "Energy": angd.Energy(),
    "GGN": angd.GGN(),
}


def of_which_quick(*quick):
    """Metrics by name; the others in the slow suite."""
    return [name if name in quick else pytest.param(name, marks=pytest.mark.slow) for name in METRICS]


@pytest.mark.parametrize("name", of_which_quick("L2", "FisherRao"))
def test_updates_are_the_steps_of_angd(name):
    opt, (params, samples), problem = moving(METRICS[name]), start(), Everything()
    found, _ = walk(transformation(opt, problem, samples), params, batches(samples))
    state, step = opt.init(problem, params, samples), eqx.filter_jit(opt.step)
    for batch in batches(samples):
        params, _, state, info = step(problem, params, batch, state)
        assert info.ok
    assert far(found, params) < 1e-10


@cache
def plain() -> Any:
    """L² on a field that has no loss: the transformation, its compiled update, and where it starts."""
    params, samples = start()
    tx = transformation(moving(), Field(), samples)
    return tx, jax.jit(tx.update), tx.init(params), params, samples, jax.grad(loss)(params, samples)


def test_where_gradients_drive_the_problem_needs_a_field_only():
    _, update, state, params, samples, grads = plain()
    updates, _ = update(grads, state, params, samples=samples)
    opt, problem = moving(), Everything()
    after, *_ = eqx.filter_jit(opt.step)(problem, params, samples, opt.init(problem, params, samples))
    assert far(optax.apply_updates(params, updates), after) < 1e-12


def first_update(opt, grads, params, samples, problem=None, **options: Any) -> Any:
    tx = transformation(opt, problem or Everything(), samples)
    return jax.jit(lambda *given: tx.update(*given, samples=samples, **options))(grads, tx.init(params), params)


def test_gradients_drive_or_are_not_looked_at():
    _, update, state, params, samples, grads = plain()
    double = optax.tree.scale(2.0, grads)
    one, two = (update(g, state, params, samples=samples)[0] for g in (grads, double))
    assert far(two, optax.tree.scale(2.0, one)) < 1e-12
    assert far(two, one) > 1e-3
    tx = transformation(moving(angd.Energy()), Everything(), samples)
    state, update = tx.init(params), jax.jit(tx.update)
    one, two = (update(g, state, params, samples=samples)[0] for g in (grads, double))
    assert far(one, two) == 0
    assert far(one, optax.tree.zeros_like(one)) > 1e-3


def test_the_first_update_solves_the_damped_normal_equations():
    """Independent of any code of angd: the Jacobian by `jax.jacrev`."""
    _, update, state, params, samples, grads = plain()
    flat, unravel = ravel_pytree(params)
    J = jax.jacrev(lambda v: jax.vmap(Field().field, (None, 0))(unravel(v), samples.x))(flat)
    expected = -RATE * jnp.linalg.solve(J.T @ J / 20 + DAMPING * jnp.eye(16), ravel_pytree(grads)[0])
    found, _ = update(grads, state, params, samples=samples)
    np.testing.assert_allclose(ravel_pytree(found)[0], expected, rtol=1e-9)


@pytest.mark.parametrize("dtype", ["float64", pytest.param("float32", marks=pytest.mark.slow)])
def test_states_keep_their_structure_shapes_and_types(dtype):
    params, samples = start(dtype)
    tx, grads = transformation(moving(), Field(), samples), jax.grad(loss)(params, samples)
    state = tx.init(params)
    updates, after = jax.jit(tx.update)(grads, state, params, samples=samples)
    assert jax.tree.structure(after) == jax.tree.structure(state)
    assert all(map(eqx.is_array, jax.tree.leaves(state)))
    assert jax.tree.map(jax.typeof, after) == jax.tree.map(jax.typeof, state)
    assert jax.tree.map(jax.typeof, updates) == jax.tree.map(jax.typeof, params)


@pytest.mark.slow
def test_an_update_without_jit_is_the_same():
    tx, update, state, params, samples, grads = plain()
    jitted, eager = (f(grads, state, params, samples=samples)[0] for f in (update, tx.update))
    assert far(jitted, eager) < 1e-12


def test_updates_can_be_scanned():
    tx, update, state, params, samples, _ = plain()

    def one(carry, shift):
        params, state = carry
        batch = angd.Samples(samples.x + shift)
        updates, state = tx.update(jax.grad(loss)(params, batch), state, params, samples=batch)
        return (optax.apply_updates(params, updates), state), state.info.norm

    (found, after), norms = lax.scan(one, (params, state), 0.1 * jnp.arange(3))
    for batch in batches(samples):
        updates, state = update(jax.grad(loss)(params, batch), state, params, samples=batch)
        params = optax.apply_updates(params, updates)
    assert far(found, params) < 1e-10
    assert norms.shape == (3,)
    assert after.step.k == 3


@pytest.mark.slow
def test_gradients_can_be_accumulated():
    tx, _, _, params, samples, grads = plain()
    often = optax.MultiSteps(tx, 2)
    state, update = often.init(params), jax.jit(often.update)
    for k in range(2):
        updates, state = update(grads, state, params, samples=samples)
        assert (far(updates, optax.tree.zeros_like(updates)) > 0) == (k == 1)


def test_a_chain_clips_before_and_schedules_after():
    tx, update, own, params, samples, grads = plain()
    bound, rate = 0.01, optax.exponential_decay(0.5, 1, 0.5)
    chained = optax.chain(optax.clip_by_global_norm(bound), tx, optax.scale_by_schedule(rate))
    updates, state = jax.jit(chained.update)(grads, chained.init(params), params, samples=samples)
    clipped = optax.tree.scale(bound / optax.tree.norm(grads), grads)
    alone, own = update(clipped, own, params, samples=samples)
    assert far(updates, optax.tree.scale(0.5, alone)) < 1e-14
    # What comes after scales the step that is taken, and not the momentum.
    assert far(state[1].step.previous.d, own.step.previous.d) < 1e-14


def test_zero_gradients_leave_the_momentum_and_from_rest_nothing():
    _, update, state, params, samples, grads = plain()
    nothing = optax.tree.zeros_like(params)
    updates, _ = update(nothing, state, params, samples=samples)
    assert far(updates, nothing) == 0
    first, state = update(grads, state, params, samples=samples)
    updates, _ = update(nothing, state, params, samples=samples)  # parameters held where they were
    # From rest d = −h n, and μ d + β n is left where gradients vanish.
    assert far(updates, optax.tree.scale(0.8 - BETA / RATE**0.5, first)) < 1e-10 * far(first, nothing)


class Half(eqx.Module):
    """The same field as a function of the last layer, written down once more."""

    rest: Any

    def field(self, params, x):
        return jnp.tanh(x @ self.rest["w"] + self.rest["b"]) @ params

    def residual(self, params, x):
        return self.field(params, x) - jnp.sin(x[0])

    def log_density(self, params, x):
        return self.field(params, x) - jnp.sum(x**2)

    def variation(self, params, x):
        return self.residual(params, x) ** 3 + x[1]

    def cost(self, z, x):
        return jnp.log(jnp.cosh(z[0] - x[0]))

    def loss(self, params, samples):
        return loss(self.rest | {"a": params}, samples)


@pytest.mark.parametrize("name", of_which_quick("Energy"))
def test_a_mask_trains_a_part_and_the_rest_stands_still(name):
    params, samples = start()
    opt, labels = moving(METRICS[name]), {"w": "still", "b": "still", "a": "moves"}
    inner = transformation(opt, Everything(), samples, whole=params)
    tx = optax.partition({"moves": inner, "still": optax.set_to_zero()}, labels)
    found: Any = params
    state, update = tx.init(params), jax.jit(tx.update)
    for batch in batches(samples):
        updates, state = update(jax.grad(loss)(found, batch), state, found, samples=batch, whole=found)
        found = optax.apply_updates(found, updates)
    problem, last = Half(params), params["a"]
    own, step = opt.init(problem, last, samples), eqx.filter_jit(opt.step)
    for batch in batches(samples):
        last, _, own, _ = step(problem, last, batch, own)
    assert far(found["a"], last) < 1e-10
    assert far(last, params["a"]) > 1e-3
    assert all(jnp.array_equal(found[name], params[name]) for name in ("w", "b"))


def test_a_group_of_its_own_follows_what_another_method_does_to_the_rest():
    """The frozen part is read from `whole` at every step, not from where it once was."""
    params, samples = start()
    labels = {"w": "adam", "b": "adam", "a": "angd"}
    inner = transformation(moving(), Field(), samples, whole=params)
    tx = optax.partition({"angd": inner, "adam": optax.adam(0.1)}, labels)
    update: Any = jax.jit(tx.update)
    state: Any = tx.init(params)
    updates, state = update(jax.grad(loss)(params, samples), state, params, samples=samples, whole=params)
    params: Any = optax.apply_updates(params, updates)
    updates, _ = update(jax.grad(loss)(params, samples), state, params, samples=samples, whole=params)
    opt, step = moving(), state.inner_states["angd"].inner_state.step
    expected, *_ = eqx.filter_jit(opt.step)(Half(params), params["a"], samples, bare(step))
    assert far(updates["a"], expected - params["a"]) < 1e-10


def bare(state):
    """A state for one array in place of those of masked parameters."""

    def of(node):
        return isinstance(node, dict)

    return jax.tree.map(lambda node: node["a"] if of(node) else node, state, is_leaf=of)


def test_injected_hyper_parameters_act_at_once():
    params, samples = start()

    def make(damping, rate):
        opt = angd.ANGD(angd.ARGFlow.momentum(0.8, rate), angd.L2(), angd.Normal(damping))
        return transformation(opt, Field(), samples)

    tx = optax.inject_hyperparams(make)(damping=1e-3, rate=optax.exponential_decay(0.1, 1, 0.5))
    state: Any = tx.init(params)
    grads, update = jax.grad(loss)(params, samples), jax.jit(tx.update)
    for damping, rate in ((1e-3, 0.1), (1e-1, 0.05)):
        state.hyperparams["damping"] = jnp.asarray(damping)
        plain = make(damping, rate)
        expected, _ = jax.jit(plain.update)(grads, state.inner_state, params, samples=samples)
        updates, state = update(grads, state, params, samples=samples)
        assert far(updates, expected) < 1e-7 * far(expected, optax.tree.zeros_like(expected))
        assert np.isclose(state.inner_state.info.damping, damping)


@pytest.mark.slow
def test_searches_compare_losses_by_value_fn():
    *_, params, samples, grads = plain()
    opt = moving(controller=angd.LineSearch(6))
    updates, state = first_update(opt, grads, params, samples, Field(), value_fn=lambda p: loss(p, samples))
    own = opt.init(Everything(), params, samples)
    after, *_ = eqx.filter_jit(opt.step)(Everything(), params, samples, own)
    assert far(optax.apply_updates(params, updates), after) < 1e-10
    assert np.isclose(state.info.loss, loss(params, samples))
    with pytest.raises(ValueError, match=r"^compat.optax: LineSearch compares losses: call update\(..., value_fn"):
        first_update(opt, grads, params, samples, Field(), value=1.0)


def test_a_loss_that_is_not_finite_moves_nothing_and_is_told():
    _, update, state, params, samples, grads = plain()
    updates, after = update(grads, state, params, samples=samples, value=jnp.nan)
    assert far(updates, optax.tree.zeros_like(updates)) == 0
    assert after.info.result == angd.RESULTS.loss_not_finite
    _, after = update(grads, state, params, samples=samples, value=0.5)
    assert after.info.loss == 0.5
    assert jnp.isnan(update(grads, state, params, samples=samples)[1].info.loss)


def test_it_trains_a_module_of_flax():
    nnx = pytest.importorskip("flax.nnx")

    class Net(nnx.Module):
        def __init__(self, rngs):
            self.first, self.last = nnx.Linear(2, 4, rngs=rngs), nnx.Linear(4, 1, rngs=rngs)

        def __call__(self, x):
            return self.last(jnp.tanh(self.first(x)))

    model, samples = Net(nnx.Rngs(0)), start("float32")[1]
    graph, first = nnx.split(model)
    params = nnx.as_pure(first)

    class Problem(eqx.Module):
        def field(self, params, x):
            return nnx.merge(graph, params)(x)

        def loss(self, params, samples):
            return error(nnx.merge(graph, params))

    def error(model):
        return jnp.mean((model(samples.x)[:, 0] - jnp.sin(samples.x[:, 0])) ** 2) / 2

    opt = moving()
    optimizer = nnx.Optimizer(model, transformation(opt, Problem(), samples), wrt=nnx.Param)

    @nnx.jit
    def train(model, optimizer, samples):
        value, grads = nnx.value_and_grad(error)(model)
        optimizer.update(model, grads, samples=samples, value=value)
        return value

    values = [train(model, optimizer, samples) for _ in range(3)]
    state, step = opt.init(Problem(), params, samples), eqx.filter_jit(opt.step)
    for value in values:
        params, _, state, info = step(Problem(), params, samples, state)
        assert np.isclose(info.loss, value, rtol=1e-5)
    assert far(nnx.as_pure(nnx.state(model)), params) < 1e-4
    assert values[-1] < values[0]


SAMPLES = start()[1]
MISTAKES = {
    "the first argument must be an angd.ANGD, got GradientTransformation": lambda: transformation(
        optax.adam(1e-3), Field(), SAMPLES
    ),
    "Wasserstein moves its samples, for which optax has no place": lambda: transformation(
        moving(angd.Wasserstein()), Everything(), SAMPLES
    ),
    "samples must be angd.Samples": lambda: transformation(moving(), Field(), SAMPLES.x),
    "samples are missing: call update": lambda: update(samples=None),
    "the step depends on where it starts": lambda: update(params=None),
    "grads and params have different structures": lambda: update(grads={"w": 1.0}),
    "some parameters are masked and the model needs them all": lambda: masked(whole=None),
    "whole must be the parameters as they are before masking": lambda: masked(whole={"w": jnp.ones((2, 4))}),
    "params has no arrays": lambda: masked(keep=False),
    "L2 needs field": lambda: transformation(moving(), object(), SAMPLES).init(start()[0]),
    "only real floating-point leaves can be trained": lambda: transformation(moving(), Field(), SAMPLES).init(
        start()[0] | {"count": 0}
    ),
}


def update(**wrong: Any):
    tx, _, state, params, samples, grads = plain()
    given = {"grads": grads, "params": params, "samples": samples} | wrong
    tx.update(given["grads"], state, given["params"], samples=given["samples"])


def masked(keep=True, **wrong: Any):
    params, samples = start()
    inner = transformation(moving(), Field(), samples, **wrong)
    optax.masked(inner, {"w": False, "b": False, "a": keep}).init(params)


@pytest.mark.parametrize("words", MISTAKES)
def test_mistakes_are_told_in_one_sentence(words):
    with pytest.raises(ValueError, match=words) as error:
        MISTAKES[words]()
    assert len(str(error.value).splitlines()) == 1
