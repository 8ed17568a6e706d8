"""Memory as a budget: what it changes is the way, never the step."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from catalogue import METRICS, batch, draw_params
from jax.flatten_util import ravel_pytree

import angd
from angd.method import memory, passes
from angd.method.jacobian import Dense, Factored, jacobian
from angd.method.jacobian.symmetric import by_rows, tiled
from angd.method.solvers.in_place import InPlace
from angd.sizes import in_bytes, written


def positive(n, seed=0):
    M = np.random.default_rng(seed).normal(size=(n, n + 2))
    return jnp.asarray(M @ M.T)


@pytest.mark.parametrize(
    ("text", "size"), [("8 GiB", 2**33), ("500MB", 5 * 10**8), (" 1.5kib ", 1536), (1e6, 10**6), ("64", 64)]
)
def test_a_budget_is_a_number_or_a_text(text, size):
    assert in_bytes(text) == size
    assert np.isclose(in_bytes(written(size)), size, rtol=5e-3)
    with memory.limited(text):
        assert memory.budget() == size


@pytest.mark.parametrize("bad", ["eight", "8 potatoes", 0, -1, float("nan"), True, None, "0"])
def test_another_budget_is_refused_in_a_sentence(bad):
    with pytest.raises(ValueError, match=r'must be a number of bytes, 1 at least, or a text such as "8 GiB", got'):
        in_bytes(bad)


def test_by_default_the_budget_is_a_part_of_what_the_computer_has():
    with open("/proc/meminfo") as file:
        total = int(file.readline().split()[1]) * 1024
    assert 0 < memory.computer_memory() <= total
    assert memory.budget() == int(memory.PART * memory.computer_memory())


def test_a_factor_in_place_solves_for_the_damping_of_the_step_and_for_others():
    A, y, lam = positive(7), jnp.arange(1.0, 8.0), jnp.asarray(0.3)

    @jax.jit
    def solved(A, y, lam, other):
        factor = InPlace.of(A, lam)
        return factor.solve(lam, y), factor.solve(other, y), factor.trace

    for other in (0.3, 2.0):
        mine, theirs, trace = solved(A, y, lam, other)
        assert np.allclose(mine, np.linalg.solve(A + 0.3 * np.eye(7), y), rtol=1e-12)
        assert np.allclose(theirs, np.linalg.solve(A + other * np.eye(7), y), rtol=1e-12)
        assert np.isclose(trace, np.trace(A))


def test_a_matrix_that_is_not_positive_has_no_solution_in_place():
    assert np.all(np.isnan(InPlace.of(-positive(5), 1e-3).solve(1e-3, jnp.ones(5))))


@pytest.mark.parametrize("n", [5, 8, 23])
def test_a_matrix_changed_in_its_own_buffer_is_changed_once(n, monkeypatch):
    monkeypatch.setattr("angd.method.jacobian.symmetric.STRIP", 8)
    K, v = positive(n), jnp.arange(float(n))
    with memory.limited(1):
        changed = by_rows(K, lambda part, rows: part * rows(v)[:, None] + v[None, :])
    assert np.allclose(changed, K * v[:, None] + v[None, :], rtol=1e-15)


@pytest.mark.parametrize(("n", "size", "m"), [(10, 4, 1), (9, 3, 2), (5, 5, 1), (7, 2, 3)])
def test_tiles_make_a_symmetric_matrix(n, size, m):
    rows = np.random.default_rng(1).normal(size=(n, m, 4))

    def tile(i, j):
        left, right = (jax.lax.dynamic_slice_in_dim(jnp.asarray(rows), k, size).reshape(size * m, 4) for k in (i, j))
        return left @ right.T

    whole = tiled(n, size, m, tile)
    assert np.allclose(whole, rows.reshape(-1, 4) @ rows.reshape(-1, 4).T, rtol=1e-13, atol=1e-13)
    assert np.array_equal(whole, whole.T)
    shared = sum(tiled(n, size, m, tile, worker=worker, workers=3) for worker in range(3))
    assert np.allclose(shared, whole, rtol=1e-13, atol=1e-13)


SOLVERS = {
    "Fisher-Rao": angd.Kernel(1e-3),
    "Energy": angd.Kernel(1e-3),
    "L2": angd.Normal(1e-3),
    "Wasserstein": angd.Normal(1e-3),
}


@pytest.mark.parametrize("metric", SOLVERS)
@pytest.mark.parametrize("controller", [angd.Constant(), angd.LevenbergMarquardt()], ids=["one λ", "several"])
def test_a_tight_budget_changes_the_way_and_not_the_step(metric, controller):
    if metric in ("Fisher-Rao", "Wasserstein") and not isinstance(controller, angd.Constant):
        pytest.skip("has no residuals")
    case, params, samples = METRICS[metric], draw_params(), batch()
    kernel = memory.matrix_bytes(len(samples.x), float)
    roomy, tight = (
        angd.ANGD(angd.ARGFlow.momentum(0.5, 0.1), case.metric, SOLVERS[metric], controller, memory=budget)
        for budget in (None, 5 * kernel)
    )
    ways = []
    for opt in (roomy, tight):
        state, now = opt.init(case.problem, params, samples), params
        for _ in range(2):
            now, _, state, info = eqx.filter_jit(opt.step)(case.problem, now, samples, state)
            assert bool(info.accepted)
        ways.append(ravel_pytree(now)[0])
    assert np.allclose(*ways, rtol=1e-9, atol=1e-12)


def test_what_cannot_fit_is_refused_before_any_work():
    case, params, samples = METRICS["Fisher-Rao"], draw_params(), batch()
    opt = angd.ANGD(angd.ARGFlow.gradient(0.1), case.metric, angd.Kernel(1e-3), memory=100)
    state = opt.init(case.problem, params, samples)
    with pytest.raises(ValueError, match=r"The 8 × 8 matrix .* would take 512 B, .* may take 100 B: .*raise memory="):
        opt.step(case.problem, params, samples, state)
    wide = jax.ShapeDtypeStruct((1000, 1000), jnp.float64)
    xs = jax.ShapeDtypeStruct((20_000, 1000), jnp.float64)
    with memory.limited("8 GiB"), pytest.raises(ValueError, match=r"20,000 × 1,000,000 numbers would take 149 GiB"):
        jax.eval_shape(lambda w, xs: jacobian(lambda w, x: jnp.sum(jnp.tanh(x @ w)), w, xs, form=Dense), wide, xs)


def network(params, x):
    return jnp.tanh(jnp.tanh(x @ params["a"]) @ params["b"])


def test_passes_in_batches_are_those_of_all_samples_at_once():
    rng = np.random.default_rng(0)
    params = {"a": jnp.asarray(rng.normal(size=(3, 20))), "b": jnp.asarray(rng.normal(size=(20, 2)))}
    xs, y = jnp.asarray(rng.normal(size=(23, 3))), jnp.asarray(rng.normal(size=(23, 2)))
    d = jax.tree.map(jnp.cos, params)
    found = []
    for budget in ("1 GiB", 20_000):
        with memory.limited(budget):
            sizes = [passes.batch_size(network, params, xs, part) for part in (passes.VALUES, passes.REVERSE)]
            found.append(
                (
                    passes.values(network, params, xs),
                    passes.pushed(network, params, d, xs),
                    passes.pulled(network, params, y, xs),
                )
            )
    assert sizes[0] >= sizes[1] > 1
    assert sizes[1] < 23
    for whole, batched in zip(*map(jax.tree.leaves, found), strict=True):
        assert np.allclose(whole, batched, rtol=1e-12, atol=1e-14)


def test_numbers_of_a_sample_are_counted_without_those_of_the_parameters():
    params = {"a": jnp.ones((3, 20)), "b": jnp.ones((20, 2))}
    # x a, tanh, h b, tanh
    assert passes.sample_bytes(network, params, jnp.ones((5, 3))) == 8 * (20 + 20 + 2 + 2)


def test_a_step_holds_one_kernel():
    """What XLA sets aside for a step in place: the kernel, and little besides."""
    n, params = 1500, [jnp.ones((2, 3)), jnp.ones((3, 1))]

    class Problem(eqx.Module):
        def log_density(self, params, x):
            return (jnp.tanh(x @ params[0]) @ params[1])[0]

        def variation(self, params, x):
            return self.log_density(params, x) - x[0]

    samples, kernel = angd.Samples(jnp.ones((n, 2))), memory.matrix_bytes(n, float)
    held = {}
    for name, budget in (("roomy", "8 GiB"), ("tight", 4 * kernel)):
        opt = angd.ANGD(angd.ARGFlow.gradient(0.1), angd.FisherRao(), angd.Kernel(1e-3), memory=budget)
        state = opt.init(Problem(), params, samples)
        step: Any = eqx.filter_jit(opt.step)
        compiled = step.lower(Problem(), params, samples, state).compile()
        held[name] = compiled.compiled.memory_analysis().temp_size_in_bytes / kernel
    assert held["tight"] < 2 < held["roomy"]


def test_the_form_follows_the_budget_in_force():
    params, xs = [jnp.ones((2, 80)), jnp.ones((80, 80)), jnp.ones((80, 1))], jnp.ones((50, 2))

    def value(params, x):
        return jnp.sum(jnp.tanh(jnp.tanh(x @ params[0]) @ params[1]) @ params[2])

    def held():
        return type(jax.eval_shape(lambda: jacobian(value, params, xs)))

    with memory.choices() as found:
        assert held() is Factored
    (choice,) = found
    assert str(choice).startswith("Jacobian of 50 × 6,640 as Factored, ")
    assert "its kernel is cheaper from layer factors than from rows of 2.53 MiB" in choice.why
    with memory.limited(2000):
        assert held() is not Factored
