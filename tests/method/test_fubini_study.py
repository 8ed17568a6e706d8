"""Amplitudes with a phase, on systems that are small enough to sum over all their states."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from scipy.integrate import solve_ivp

import angd
from angd import ANGD, ARGFlow, FisherRao, FubiniStudy, Kernel, Normal, Samples
from angd.problems.lattice import RBM, Basis, Enumerated, Heisenberg, Hubbard, LatticeState, TransverseIsing, ring

FRUSTRATED = Heisenberg(ring(6), 0.6, marshall=False)
IN_A_FIELD = Hubbard(ring(6), (2,), V=1.0, flux=0.7)


def state(hamiltonian, hidden=3):
    """A problem, parameters that are nothing special, and a sampler."""
    problem = LatticeState(RBM(hamiltonian.size, hidden, complex=True, spread=0.3), hamiltonian)
    return problem, problem.init(jax.random.key(1)), Enumerated(Basis.of(hamiltonian))


@eqx.filter_jit
def amplitudes(problem, params, basis):
    """ψ, normalised."""
    psi = jnp.exp(jax.vmap(problem.log_amplitude, (None, 0))(params, basis.x))
    return psi / jnp.linalg.norm(psi)


def linearised(opt, problem, params, samples):
    """The system of a first step."""
    context = opt._context(problem, params, samples, opt.init(problem, params, samples).previous, opt.flow.step(0, 1.0))
    return eqx.filter_jit(opt.metric.linearise)(context)


def test_rows_times_local_energies_are_the_gradient_of_the_energy():
    problem, params, sampler = state(IN_A_FIELD)
    H = jnp.asarray(sampler.basis.matrix().toarray())

    def energy(params):
        psi = amplitudes(problem, params, sampler.basis)
        return jnp.real(jnp.vdot(psi, H @ psi))

    samples = sampler(None, problem, params)
    found = linearised(ANGD(ARGFlow.gradient(0.1), FubiniStudy(), Normal(1e-3)), problem, params, samples)
    expected = jax.grad(energy)(params)
    assert np.abs(ravel_pytree(expected)[0]).max() > 1e-2
    np.testing.assert_allclose(ravel_pytree(found.gradient)[0], ravel_pytree(expected)[0], atol=1e-12)
    np.testing.assert_allclose(found.loss, energy(params), atol=1e-12)


def test_the_metric_is_four_times_the_squared_distance_of_rays():
    problem, params, sampler = state(IN_A_FIELD)
    system = linearised(
        ANGD(ARGFlow.gradient(0.1), FubiniStudy(), Normal(1e-3)), problem, params, sampler(None, problem, params)
    ).system
    theta, unravel = ravel_pytree(params)
    rng, here = np.random.default_rng(0), amplitudes(problem, params, sampler.basis)
    for _ in range(2):
        d, epsilon = jnp.asarray(rng.normal(size=theta.size)), 1e-4
        there = amplitudes(problem, unravel(theta + epsilon * d), sampler.basis)
        overlap = jnp.vdot(here, there)
        angle = jnp.arctan2(jnp.linalg.norm(there - overlap * here), jnp.abs(overlap))
        np.testing.assert_allclose(system.square_length(unravel(d)), 4 * (angle / epsilon) ** 2, rtol=1e-3)


def test_of_a_positive_wave_function_it_is_fisher_rao():
    hamiltonian = TransverseIsing(ring(5))
    problem, sampler = LatticeState(RBM(5, 4, spread=0.3), hamiltonian), Enumerated(Basis.of(hamiltonian))
    flow, courses = ARGFlow.momentum(0.8, 0.1, beta=0.1), []
    for metric in (FisherRao(), FubiniStudy()):
        opt, params = ANGD(flow, metric, Kernel(1e-3)), problem.init(jax.random.key(0))
        carried, step = opt.init(problem, params, sampler(None, problem, params)), eqx.filter_jit(opt.step)
        for _ in range(4):
            params, _, carried, _ = step(problem, params, sampler(None, problem, params), carried)
        courses.append(ravel_pytree(params)[0])
    np.testing.assert_allclose(*courses, atol=1e-11)


class Gauged(eqx.Module):
    """Another norm and phase, which depend on the parameters."""

    problem: LatticeState

    def log_amplitude(self, params, x):
        norm, phase = (sum(jnp.sum(f(leaf)) for leaf in jax.tree.leaves(params)) for f in (jnp.sin, jnp.square))
        return self.problem.log_amplitude(params, x) + norm + 1j * phase

    def variation(self, params, x):
        return self.problem.variation(params, x) + 3.0 - 2.0j


@pytest.mark.filterwarnings("ignore:the parameter")  # of the gauge, which taps do not follow
def test_norm_and_phase_change_no_direction():
    problem, params, sampler = state(FRUSTRATED)
    samples, opt = (
        sampler(None, problem, params),
        ANGD(ARGFlow.momentum(0.7, 0.1, beta=0.1), FubiniStudy(), Normal(1e-3)),
    )
    plain = Samples(samples.x, samples.omega)
    directions = []
    for one in (problem, Gauged(problem)):
        theta, carried, step = params, opt.init(one, params, plain), eqx.filter_jit(opt.step)
        for _ in range(2):
            theta, _, carried, _ = step(one, theta, plain, carried)
        directions.append(ravel_pytree(carried.previous.d)[0])
    np.testing.assert_allclose(*directions, rtol=1e-8, atol=1e-10)


class Free(eqx.Module):
    """Every amplitude of three states is a parameter."""

    H: jax.Array

    def log_amplitude(self, params, x):
        return params["re"][x] + 1j * params["im"][x]

    def variation(self, params, x):
        psi = jnp.exp(params["re"] + 1j * params["im"])
        return (self.H @ psi)[x] / psi[x]


def on_the_sphere(H, psi, alpha, beta, t1):
    """ψ(t₁) of the flow on rays, q̈ = −|q̇|² q − α q̇ − β P ẇ − w, where w = (H − E) q / 2."""
    n = len(psi)

    def split(y):
        return y[:n] + 1j * y[n : 2 * n], y[2 * n : 3 * n] + 1j * y[3 * n :]

    def rates(t, y):
        q, v = split(y)
        E = np.vdot(q, H @ q).real
        w = (H @ q - E * q) / 2
        dE = 2 * np.vdot(H @ q, v).real
        dw = (H @ v - E * v - dE * q) / 2
        dw = dw - np.vdot(q, dw) * q
        a = -np.vdot(v, v).real * q - alpha * v - beta * dw - w
        return np.concatenate([v.real, v.imag, a.real, a.imag])

    rest = np.zeros(2 * n)
    y = solve_ivp(rates, (0, t1), np.concatenate([psi.real, psi.imag, rest]), rtol=1e-11, atol=1e-12).y[:, -1]
    return split(y)[0]


@pytest.mark.parametrize("beta", [pytest.param(0.0, marks=pytest.mark.slow), 0.3])
def test_the_scheme_is_of_first_order_in_the_flow_on_rays(beta):
    """Independent: the flow on the sphere of normalised amplitudes, in their own coordinates."""
    rng = np.random.default_rng(3)
    A = rng.normal(size=(3, 3)) + 1j * rng.normal(size=(3, 3))
    H, alpha, t1 = (A + A.conj().T) / 3, 1.0, 1.5
    start = {"re": jnp.array([0.1, -0.2, 0.3]), "im": jnp.array([0.5, 0.0, -0.4])}
    problem, x = Free(jnp.asarray(H)), jnp.arange(3)

    def psi(params):
        found = jnp.exp(params["re"] + 1j * params["im"])
        return np.asarray(found / jnp.linalg.norm(found))

    expected, errors = on_the_sphere(H, psi(start), alpha, beta, t1), []
    for steps in (40, 80):
        h = t1 / steps
        opt = ANGD(ARGFlow(alpha=alpha, beta=beta, h=h, t0=0.0), FubiniStudy(limit=None), Normal(1e-10))
        params, step = start, eqx.filter_jit(opt.step)
        carried = opt.init(problem, params, Samples(x, jnp.abs(psi(params)) ** 2))
        for _ in range(steps):
            params, _, carried, _ = step(problem, params, Samples(x, jnp.abs(jnp.asarray(psi(params))) ** 2), carried)
        found = psi(params)
        errors.append(np.linalg.norm(found - np.vdot(expected, found) * expected))
    assert errors[1] < 0.02
    assert 0.85 < np.log2(errors[0] / errors[1]) < 1.15, errors


def test_the_limit_bounds_the_modulus_of_the_velocity():
    problem, params, sampler = state(IN_A_FIELD)
    samples, limit, h = sampler(None, problem, params), 0.2, 0.5
    opt = ANGD(ARGFlow(alpha=1 / h, h=h), FubiniStudy(limit=limit), Normal(1e-3))
    d = jax.tree.map(lambda leaf: 3 * jnp.cos(jnp.arange(leaf.size) * 1.0).reshape(leaf.shape), params)
    previous = eqx.tree_at(lambda p: p.d, opt.init(problem, params, samples).previous, d)
    context = opt._context(problem, params, samples, previous, opt.flow.step(1, 1.0))
    _, phi = jax.jvp(lambda p: jax.vmap(problem.log_amplitude, (None, 0))(p, samples.x), (params,), (d,))
    phi = 2 * (phi - jnp.sum(samples.omega * phi))
    assert float(jnp.max(jnp.abs(phi))) > 2 * limit / h, "the test needs a velocity beyond the limit"
    phi = phi * jnp.minimum(1, limit / h / jnp.abs(phi))
    energies = jax.jit(problem.local_energies)(params, samples.x)
    b = -h / 2 * phi**2 - h * (energies - jnp.sum(samples.omega * energies))
    b = b - jnp.sum(samples.omega * b)
    found = eqx.filter_jit(opt.metric.linearise)(context).system.b
    np.testing.assert_allclose(found, jnp.stack([b.real, b.imag], 1).reshape(-1), atol=1e-12)


def test_a_model_with_complex_parameters_is_trained_as_pairs_of_real_ones():
    def log_psi(params, x):
        return jnp.sum(params["k"] * x) + params["c"] * x[0]

    z = {"k": jnp.array([0.3 + 0.2j, -0.1j]), "c": jnp.array(0.5)}
    adapted, theta, x = angd.OfPairs(log_psi), angd.paired(z), jnp.array([1, -1])
    np.testing.assert_array_equal(adapted(theta, x), log_psi(z, x))
    assert jax.tree.all(jax.tree.map(lambda a, b: bool(jnp.all(a == b)), angd.unpaired(theta), z))
    assert all(jnp.isrealobj(leaf) for leaf in jax.tree.leaves(theta))
    holomorphic = jax.grad(lambda k: log_psi(z | {"k": k}, x), holomorphic=True)(z["k"])
    both = jax.grad(lambda p: adapted(p, x).real)(theta)["k"], jax.grad(lambda p: adapted(p, x).imag)(theta)["k"]
    np.testing.assert_allclose(both[0].real + 1j * both[1].real, holomorphic)
    np.testing.assert_allclose(both[0].imag + 1j * both[1].imag, 1j * holomorphic)


class Bare(eqx.Module):
    """Of one parameter, for mistakes."""

    def log_density(self, params, x):
        return jnp.real(params) * x

    def log_amplitude(self, params, x):
        return params * jnp.stack([x, x])

    def variation(self, params, x):
        return x


class Silent(eqx.Module):
    """Without an amplitude."""

    def variation(self, params, x):
        return x


@pytest.mark.parametrize(
    ("metric", "problem", "params", "words"),
    [
        (FisherRao(), Bare(), 1.0 + 1.0j, "complex128: only real .*angd.paired makes pairs"),
        (FubiniStudy(), Bare(), 1.0 + 1.0j, "complex128: only real .*angd.paired makes pairs"),
        (FubiniStudy(), Bare(), 1.0, "must be one number at a point"),
        (FubiniStudy(), Silent(), 1.0, "has no log_amplitude"),
    ],
)
def test_mistakes_are_told_in_a_sentence(metric, problem, params, words):
    with pytest.raises(ValueError, match=words) as refusal:
        ANGD(ARGFlow.gradient(0.1), metric, Normal(1e-3)).init(problem, jnp.asarray(params), Samples(jnp.arange(4.0)))
    assert "\n" not in str(refusal.value)


def test_a_limit_that_is_not_positive_is_refused():
    with pytest.raises(ValueError, match="limit must be positive"):
        FubiniStudy(limit=0.0)


def test_a_real_metric_names_the_one_that_knows_the_phase():
    problem, params, sampler = state(FRUSTRATED)
    with pytest.raises(ValueError, match="needs FubiniStudy"):
        ANGD(ARGFlow.gradient(0.1), FisherRao(), Normal(1e-3)).init(problem, params, sampler(None, problem, params))
