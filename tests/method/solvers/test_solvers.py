"""Every solver finds the same direction: the minimiser of ½ dᵀGd − vᵀd + ½λ‖d − c‖²; and the identities of momentum."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from angd.method.jacobian import Chunked, Dense, Factored, MatrixFree, jacobian, stack
from angd.method.samples import Samples
from angd.method.solvers import Iterative, Kernel, Normal, ProjectedMomentum, Scaled, WithFallback
from angd.method.system import Gram, Rows, row_weights

LAMBDA = 1e-2
SOLVERS = {
    "normal": Normal(LAMBDA),
    "kernel": Kernel(LAMBDA),
    "iterative": Iterative(LAMBDA, rtol=1e-13, max_steps=2000),
    "iterative, preconditioned": Iterative(LAMBDA, rtol=1e-13, max_steps=2000, rank=5),
    "with fallback": WithFallback(Normal(LAMBDA), Normal(1.0)),
}


def model(params, x):
    return jnp.tanh(x @ params["W"] + params["b"]) @ params["out"]


def make(n, centred, kind, m=1, dtype: Any = float, seed=0) -> tuple[Any, Any]:
    """A random network, samples with unequal weights, a right-hand side and a centre."""
    rng = np.random.default_rng(seed)

    def draw(*shape):
        return jnp.asarray(rng.normal(size=shape), dtype)

    params = {"W": draw(2, 4), "b": draw(4), "out": draw(4, m) if m > 1 else draw(4)}
    omega = rng.uniform(0.5, 1.5, n)
    samples = Samples(draw(n, 2), jnp.asarray(omega / omega.sum(), dtype))
    O = jacobian(model, params, samples.x)
    weights = row_weights(samples.omega, O)
    c = jax.tree.map(lambda leaf: draw(*leaf.shape), params)
    rows = Rows(O=O, b=draw(O.n_rows), omega=weights, centred=centred)
    return rows if kind == "rows" else Gram(O=O, v=rows.right_side(), omega=weights, centred=centred), c


@eqx.filter_jit
def solve(solver, system, c):
    """Both stages with the solver's own damping."""
    prepared, _ = solver.prepare(system, solver.init(system), solver.damping)
    return solver.solve(prepared, solver.damping, system, c)


def by_numpy(system, c, damping):
    """(G + λI)⁻¹(v + λc), from the dense Jacobian."""
    O, omega = np.asarray(system.O.dense(), dtype=float), np.asarray(system.omega, dtype=float)
    if system.centred:
        O = O - np.sum(omega[:, None] * O, axis=0, keepdims=True) / omega.sum()
    layout = system.O.layout
    v = O.T @ (omega * np.asarray(system.b)) if isinstance(system, Rows) else np.asarray(layout.ravel(system.v))
    A = O.T @ (omega[:, None] * O) + damping * np.eye(O.shape[1])
    return np.linalg.solve(A, v + damping * np.asarray(layout.ravel(c)))


@pytest.mark.matrix
@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("n", [6, 40], ids=["p > n", "p < n"])
@pytest.mark.parametrize("centred", [False, True], ids=["plain", "centred"])
@pytest.mark.parametrize("kind", ["rows", "gram"])
def test_every_solver_equals_the_regularised_least_squares_solution(name, n, centred, kind):
    system, c = make(n, centred, kind)
    found = solve(SOLVERS[name], system, c)
    assert bool(found.ok)
    assert np.allclose(system.O.layout.ravel(found.d), by_numpy(system, c, LAMBDA), atol=1e-8)


@pytest.mark.parametrize("inner", [Normal(LAMBDA), Kernel(LAMBDA), ProjectedMomentum(0.9, Normal(LAMBDA))])
@pytest.mark.parametrize("n", [6, 40], ids=["p > n", "p < n"])
@pytest.mark.parametrize("centred", [False, True], ids=["plain", "centred"])
def test_scaled_damping_is_in_the_units_of_each_parameter(inner, n, centred):
    """(G + λD) d = v + λDc with D = diag(G)^½ (and its floor), solved by numpy."""
    for kind in ("rows", "gram"):
        system, c = make(n, centred, kind)
        if kind == "gram" and inner.needs_rows:
            continue
        O, omega = np.asarray(system.O.dense()), np.asarray(system.omega)
        O = O - centred * np.sum(omega[:, None] * O, axis=0, keepdims=True) / omega.sum()
        G, layout = O.T @ (omega[:, None] * O), system.O.layout
        D = LAMBDA * np.diag(np.sqrt(np.diag(G) + 1e-10 * np.diag(G).max()))
        exact = np.linalg.solve(G + D, layout.ravel(system.right_side()) + D @ layout.ravel(c))
        found = solve(Scaled(inner), system, c)
        assert np.allclose(layout.ravel(found.d), exact, rtol=1e-7, atol=1e-8)


def test_diagonals_are_the_same_in_every_form():
    system, _ = make(7, False, "rows", m=2)
    rng = np.random.default_rng(0)
    params = {"W": jnp.asarray(rng.normal(size=(2, 4))), "b": jnp.zeros(4), "out": jnp.ones((4, 2))}
    xs, weights = jnp.asarray(rng.normal(size=(7, 2))), jnp.asarray(rng.uniform(size=14))
    held = [jacobian(model, params, xs, form=form) for form in (Dense, Factored, Chunked, MatrixFree)]
    exact = np.einsum("i,ij->j", weights, np.asarray(held[0].dense()) ** 2)
    for O in [*held, stack(held[1:3], keep=True)]:
        w = jnp.concatenate([weights, weights]) if O.n_rows == 28 else weights
        assert np.allclose(O.squares(w), exact * O.n_rows / 14, rtol=1e-12)
    assert np.allclose(system.diagonal(), np.diag(system.gram()), rtol=1e-12)


@pytest.mark.parametrize("n", [4, 30], ids=["p > N", "p < N"])
def test_vector_valued_rows_work_alike(n):
    system, c = make(n, False, "rows", m=3)
    for solver in SOLVERS.values():
        assert np.allclose(system.O.layout.ravel(solve(solver, system, c).d), by_numpy(system, c, LAMBDA), atol=1e-8)


@pytest.mark.parametrize("name", SOLVERS)
def test_projected_momentum_replaces_the_centre_in_any_solver(name):
    system, c = make(6, False, "rows")
    solver = ProjectedMomentum(0.9, SOLVERS[name])
    d_prev = jax.tree.map(lambda leaf: 0.3 * leaf + 1, c)
    centre = solver.origin(c, d_prev)
    found = solve(solver, system, centre).d
    scaled = jax.tree.map(lambda leaf: 0.9 * leaf, d_prev)
    assert np.allclose(system.O.layout.ravel(found), by_numpy(system, scaled, LAMBDA), atol=1e-8)


def test_projected_momentum_without_damping_is_the_projection_formula():
    """λ → 0: d = O⁺b + η (I − O⁺O) d_prev."""
    system, d_prev = make(6, False, "rows")
    solver = ProjectedMomentum(0.8, Kernel(1e-13))
    ravel = system.O.layout.ravel
    found = ravel(solve(solver, system, solver.origin(d_prev, d_prev)).d)
    O, previous = np.asarray(system.O.dense()), np.asarray(ravel(d_prev))
    inverse = np.linalg.pinv(O)
    expected = inverse @ np.asarray(system.b) + 0.8 * (previous - inverse @ (O @ previous))
    assert np.allclose(found, expected, atol=1e-6)


def test_two_rates_of_momentum():
    """b = μ O d_prev − f: momentum μ in the sampled subspace, η in its complement; μ = η is the heavy ball."""
    system, d_prev = make(6, False, "rows")
    ravel = system.O.layout.ravel
    O, previous = np.asarray(system.O.dense()), np.asarray(ravel(d_prev))
    inverse, f = np.linalg.pinv(O), np.asarray(system.b)
    solver = ProjectedMomentum(0.5, Kernel(1e-13))

    def step(mu):
        rows = Rows(O=system.O, b=mu * system.push(d_prev) - system.b, omega=system.omega)
        return np.asarray(ravel(solve(solver, rows, solver.origin(d_prev, d_prev)).d))

    inside = inverse @ (O @ previous)
    assert np.allclose(step(0.9), -inverse @ f + 0.9 * inside + 0.5 * (previous - inside), atol=1e-6)
    assert np.allclose(step(0.5), -inverse @ f + 0.5 * previous, atol=1e-6)


def test_duplicated_samples_make_no_trouble_with_damping_and_are_reported_without():
    params = {"W": jnp.ones((2, 4)), "b": jnp.zeros(4), "out": jnp.ones(4)}
    samples = Samples(jnp.ones((3, 2)))
    O = jacobian(model, params, samples.x)
    system = Rows(O=O, b=jnp.ones(3), omega=row_weights(samples.omega, O))
    assert bool(solve(Kernel(1e-3), system, jax.tree.map(jnp.zeros_like, params)).ok)
    singular = Rows(O=O, b=jnp.array([1.0, 2.0, 3.0]), omega=row_weights(samples.omega, O))
    assert not bool(solve(Kernel(0.0), singular, jax.tree.map(jnp.zeros_like, params)).ok)


def test_one_preparation_serves_many_dampings():
    """By eigenvalues (`many`) and by Cholesky alike."""
    system, c = make(6, True, "rows")
    for many in (False, True):
        prepared, _ = Normal().prepare(system, None, 1e-3, many)
        for damping in (1e-4, 1e-2, 1.0):
            found = system.O.layout.ravel(Normal().solve(prepared, damping, system, c).d)
            assert np.allclose(found, by_numpy(system, c, damping), atol=1e-7)


def test_preconditioner_saves_iterations_on_a_spread_spectrum():
    """Few iterations leave a large error without it and a small one with it."""
    system, c = make(60, False, "gram", seed=3)
    expected = by_numpy(system, c, 1e-6)

    def error(rank):
        found = solve(Iterative(1e-6, rtol=1e-14, max_steps=8, rank=rank), system, c)
        return np.linalg.norm(system.O.layout.ravel(found.d) - expected) / np.linalg.norm(expected)

    assert error(14) < 1e-3 * error(0)


def test_an_iteration_that_stops_early_says_so():
    system, c = make(60, False, "gram", seed=3)
    short, long = Iterative(1e-6, rtol=1e-12, max_steps=2), Iterative(1e-2, rtol=1e-6, max_steps=500)
    assert not bool(solve(short, system, c).converged)
    assert bool(solve(long, system, c).converged)
    exact = solve(Normal(1e-6), system, c).d
    fallen_back = solve(WithFallback(short, Normal(1e-6)), system, c).d
    assert np.allclose(system.O.layout.ravel(fallen_back), system.O.layout.ravel(exact), atol=1e-8)


def test_a_parameter_that_no_row_depends_on_does_not_end_the_iteration():
    """Its entries of right-hand side and residual are zero, and 0/0 passed for convergence."""
    params = {"w": jnp.arange(1.0, 4.0), "unused": jnp.zeros(2)}
    xs = jnp.asarray(np.random.default_rng(0).normal(size=(9, 3)))
    O = jacobian(lambda params, x: jnp.tanh(x @ params["w"]) * x[0], params, xs)
    system = Rows(O=O, b=jnp.sin(jnp.arange(9.0)), omega=jnp.full(9, 1 / 9))
    nothing = jax.tree.map(jnp.zeros_like, params)
    exact, found = (solve(solver, system, nothing) for solver in (Kernel(1e-3), Iterative(1e-3, rtol=1e-12)))
    assert bool(found.converged)
    assert np.allclose(found.d["w"], exact.d["w"], rtol=1e-9)
    assert np.all(np.asarray(found.d["unused"]) == 0)


def test_fallback_takes_over_where_the_first_solver_fails():
    params = {"W": jnp.ones((2, 4)), "b": jnp.zeros(4), "out": jnp.ones(4)}
    samples = Samples(jnp.ones((3, 2)))
    O = jacobian(model, params, samples.x)
    singular = Rows(O=O, b=jnp.array([1.0, 2.0, 3.0]), omega=row_weights(samples.omega, O))
    zero = jax.tree.map(jnp.zeros_like, params)
    found = solve(WithFallback(Kernel(0.0), Kernel(1e-3)), singular, zero)
    assert bool(found.ok)
    assert np.allclose(O.layout.ravel(found.d), O.layout.ravel(solve(Kernel(1e-3), singular, zero).d))


def test_fisher_kernel_survives_single_precision():
    """A centred kernel is singular; in float32 it is even indefinite by rounding."""
    system, c = make(10, True, "rows", dtype=jnp.float32)
    found = solve(Kernel(1e-4), system, c)
    reference = by_numpy(system, c, 1e-4)
    assert bool(found.ok)
    assert found.d["W"].dtype == jnp.float32
    assert np.linalg.norm(system.O.layout.ravel(found.d) - reference) < 2e-2 * np.linalg.norm(reference)


@pytest.mark.parametrize(
    ("make_it", "words"),
    [
        (lambda: Normal(-1.0), "damping must be finite and ≥ 0"),
        (lambda: Kernel(float("nan")), "damping must be finite and ≥ 0"),
        (lambda: Iterative(1e-3, rtol=0.0), "must be positive"),
        (lambda: ProjectedMomentum(1.0, Normal()), r"eta must lie in \[0, 1\)"),
        (lambda: solve(Normal(0.0), *make(6, False, "gram")), "give damping > 0"),
        (lambda: Samples(jnp.zeros((0, 2))), "at least one point"),
        (lambda: Samples(jnp.zeros((3, 2)), jnp.ones(2)), "3 points but weights of shape"),
    ],
)
def test_misuse_is_refused_with_a_sentence(make_it, words):
    with pytest.raises(ValueError, match=words):
        make_it()
