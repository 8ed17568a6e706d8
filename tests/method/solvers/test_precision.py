"""Single precision: a step equals double-precision arithmetic on the same single-precision rows.

Rows of normalised densities often have a mean a thousand times their fluctuation, which drops out of the direction. It
may not take the digits of the fluctuation with it.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import angd
from angd import ANGD, ARGFlow, Samples
from angd.method.jacobian import Chunked, Dense, Factored, MatrixFree, jacobian
from angd.method.solvers import KFAC, Iterative, Kernel, Normal
from angd.method.solvers.positive import Cholesky
from angd.method.system import Gram, Rows

OFFSET, SINGLE = 1000.0, jnp.float32


def linear(params, x):
    return x @ params["w"]


def bilinear(params, x):
    """Wide enough for products of factors that never see a row."""
    return x["g"] @ params["W"] @ x["a"]


def offset(rng, n, width):
    """Vectors whose mean is a thousand times their fluctuation, of length one."""
    return jnp.asarray(rng.normal(size=width) + rng.normal(size=(n, width)) / OFFSET, SINGLE)


def vectors(rng, n, *shape):
    return {"w": jnp.asarray(rng.normal(size=shape), SINGLE)}, offset(rng, n, shape[0])


def pairs(rng, n):
    return {"W": jnp.asarray(rng.normal(size=(24, 24)), SINGLE)}, {"a": offset(rng, n, 24), "g": offset(rng, n, 24)}


MODELS = {
    "one component": (linear, lambda rng, n: vectors(rng, n, 20)),
    "three components": (linear, lambda rng, n: vectors(rng, n, 6, 3)),
    "products of factors": (bilinear, pairs),
}
FORMS = {"Dense": Dense, "Factored": Factored, "Chunked": Chunked, "MatrixFree": MatrixFree}


def make(model: str, form: Any, n: int) -> tuple[Any, Any]:
    """Centred rows with unequal weights, and an origin."""
    rng = np.random.default_rng(n)
    f, draw = MODELS[model]
    params, xs = draw(rng, n)
    O = jacobian(f, params, xs, form=form)
    weights = rng.uniform(0.5, 1.5, n)
    omega = jnp.repeat(jnp.asarray(weights / weights.sum(), SINGLE), O.components)
    b = jnp.asarray(rng.normal(size=O.n_rows) / OFFSET, SINGLE)
    c = jax.tree.map(lambda leaf: jnp.asarray(rng.normal(size=leaf.shape), SINGLE), params)
    return Rows(O=O, b=b, omega=omega, centred=True), c


def by_numpy(system: Any) -> tuple[Any, Any]:
    """G and v in double precision, from the rows that the system holds, each component centred by itself."""
    inner = getattr(system.O, "inner", system.O)
    O, omega = np.array((inner.wide() or inner).dense(), float), np.asarray(system.omega, float)
    m = inner.components
    for k in range(m if system.centred else 0):
        O[k::m] -= omega[k::m] @ O[k::m] / omega[k::m].sum()
    v = O.T @ (omega * np.asarray(system.b, float)) if isinstance(system, Rows) else inner.layout.ravel(system.v)
    return O.T @ (omega[:, None] * O), np.asarray(v, float)


@eqx.filter_jit
def solve(solver, system, c):
    prepared, _ = solver.prepare(system, solver.init(system), solver.damping)
    return solver.solve(prepared, solver.damping, system, c).d, solver.smallest(prepared)


def error(system: Any, c: Any, solver: Any) -> float:
    """Relative to numpy's direction."""
    G, v = by_numpy(system)
    c_flat = np.asarray(system.O.layout.ravel(c), float)
    reference = np.linalg.solve(G + solver.damping * np.eye(len(G)), v + solver.damping * c_flat)
    return float(
        np.linalg.norm(system.O.layout.ravel(solve(solver, system, c)[0]) - reference) / np.linalg.norm(reference)
    )


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("form", FORMS)
def test_rows_far_from_their_fluctuation_lose_no_digits(form, model):
    """Forward and reverse passes alone cannot take off a mean before they add up, and need more damping for it."""
    relative, allowed = (1.0, 3e-4) if form == "MatrixFree" else (1e-2, 1e-4)
    for n in (8, 60):
        system, c = make(model, FORMS[form], n)
        damping = relative * float(np.mean(np.linalg.eigvalsh(by_numpy(system)[0])[-n // 2 :]))
        assert error(system, c, Kernel(damping)) < allowed
        assert error(system, c, Normal(damping)) < allowed


@pytest.mark.parametrize("form", ["Dense", "Factored", "Chunked"])
def test_a_kernel_of_any_size_keeps_its_digits_where_its_null_vectors_are_filled(form):
    """Rows of 1e-6 beside a filling of 1 would lose all of them."""
    system, c = make("one component", FORMS[form], 8)
    small = eqx.tree_at(lambda s: s.omega, system, system.omega * 1e-6)
    assert error(small, jax.tree.map(jnp.zeros_like, c), Kernel(1e-16)) < 1e-4


class Exponential(eqx.Module):
    """log ρ = ⟨w, x⟩."""

    def log_density(self, params, x):
        return linear(params, x)

    def variation(self, params, x):
        return jnp.sin(OFFSET * x[0])


@pytest.mark.parametrize("solver", [Kernel, Normal])
def test_a_step_in_single_precision_equals_double_precision_on_the_same_rows(solver):
    params, x = vectors(np.random.default_rng(0), 60, 20)
    opt = ANGD(ARGFlow.gradient(1.0), angd.FisherRao(), solver(1e-8))

    def step(dtype):
        theta, samples = {"w": params["w"].astype(dtype)}, Samples(x.astype(dtype), jnp.full(60, 1 / 60, dtype))
        return eqx.filter_jit(opt.step)(Exponential(), theta, samples, opt.init(Exponential(), theta, samples))

    (_, _, narrow, _), (_, _, wide, _) = step(SINGLE), step(jnp.float64)
    d, reference = np.asarray(narrow.previous.d["w"], float), np.asarray(wide.previous.d["w"])
    assert np.linalg.norm(d - reference) < 1e-4 * np.linalg.norm(reference)


def test_each_component_is_centred_by_itself_and_has_a_null_vector_of_its_own():
    system, _ = make("three components", Dense, 8)
    nulls, kernel = np.asarray(system.null_vectors(), float), np.asarray(system.kernel(), float)
    assert nulls.shape == (24, 3)
    assert np.allclose(nulls.T @ nulls, np.eye(3), atol=1e-6)
    assert np.abs(kernel @ nulls).max() < 1e-4 * np.abs(kernel).max()
    means = np.einsum(
        "nm,nmp->mp", np.asarray(system.omega).reshape(8, 3), np.asarray(system.O.dense()).reshape(8, 3, -1)
    )
    assert np.abs(means).max() < 2e-7, "a mean of one is known to seven digits"
    rank = np.linalg.matrix_rank(kernel, tol=1e-4 * np.abs(kernel).max())
    assert rank == 18  # 3 × min(6 parameters, 7 free samples)


def nearly_singular(form: Any) -> tuple[Any, Any]:
    """Rows with one large common part, whose product in single precision is far from positive."""
    rng = np.random.default_rng(0)
    x = jnp.asarray(100 * rng.normal(size=(40, 1)) * rng.normal(size=20) + 1e-2 * rng.normal(size=(40, 20)), SINGLE)
    params = {"w": jnp.zeros(20, SINGLE)}
    O = jacobian(linear, params, x, form=form)
    v = {"w": jnp.asarray(rng.normal(size=20), SINGLE)}
    return Gram(O=O, v=v, omega=jnp.full(40, 1 / 40, SINGLE)), params


@pytest.mark.parametrize("form", ["Dense", "Factored"])
def test_a_product_that_rounding_made_indefinite_is_formed_again_in_double_precision(form):
    damping = 1e-4
    system, zero = nearly_singular(FORMS[form])
    assert np.linalg.eigvalsh(np.asarray(system.gram(), float))[0] < -damping / 10, "the case is too easy"
    _, smallest = solve(Normal(damping), system, zero)
    assert -damping / 10 <= smallest < damping
    assert error(system, zero, Normal(damping)) < 1e-4


class Fit(eqx.Module):
    def field(self, params, x):
        return linear(params, x)

    def variation(self, params, x):
        return linear(params, x) - 1.0

    residual = variation

    def loss(self, params, samples):
        return samples.mean(jax.vmap(self.variation, (None, 0))(params, samples.x) ** 2) / 2


def reported(solver, dtype, controller=None):
    """The smallest eigenvalue in `Info`, and numpy's."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 5)) * np.array([2.0, 1.5, 1.0, 1.0, 0.1])
    params, samples = {"w": jnp.zeros(5, dtype)}, Samples(jnp.asarray(x, dtype))
    opt = ANGD(ARGFlow.gradient(1.0), angd.Energy(), solver, controller or angd.Constant())
    info = eqx.filter_jit(opt.step)(Fit(), params, samples, opt.init(Fit(), params, samples))[3]
    return float(info.smallest), np.linalg.eigvalsh(x.T @ x / 40)[0]


def test_the_smallest_eigenvalue_is_reported_where_it_is_known():
    for found, true in (reported(Normal(1e-3), SINGLE), reported(Normal(1e-3), float, angd.TrustRegion())):
        assert np.isclose(found, true, rtol=1e-3)


@pytest.mark.parametrize("solver", [Normal(1e-3), KFAC(1e-3), Iterative(1e-3)], ids=lambda s: type(s).__name__)
def test_the_smallest_eigenvalue_is_no_number_where_it_is_not_known(solver):
    assert np.isnan(reported(solver, float)[0])


@pytest.mark.parametrize(("planted", "bad"), [(0.05, False), (0.15, True), (0.5, True), (0.9, True), (4.0, True)])
def test_an_eigenvalue_below_a_tenth_of_the_damping_is_seen(planted, bad):
    """Among 300 that reach over six decades, in ten random bases. Below −λ there is no factor: the answer is NaN."""
    damping, generator = 4e-3, np.random.default_rng(0)
    values = np.append(-planted * damping, np.geomspace(5e-4, 500, 299))
    for _ in range(10):
        basis = np.linalg.qr(generator.normal(size=(300, 300)))[0]
        smallest = float(Cholesky.of(jnp.asarray((basis * values) @ basis.T), damping, checked=True).smallest)
        assert (not smallest >= -damping / 10) == bad
        assert not smallest < values[0] - 0.05 * damping, "never far below the truth"
