"""Ground states: exact cases, independent derivatives, chains with known laws, and a sentence for every mistake."""

import dataclasses
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import angd
from angd.method.baselines.base import slope
from angd.problems.energies import summarise
from angd.problems.statistics import autocorrelation_time, rhat
from angd.problems.vmc import (
    MOLECULES,
    AroundNuclei,
    Clipping,
    Coulomb,
    ElectronRefit,
    FermiNet,
    GaussianStart,
    Graded,
    GroundState,
    HartreeFock,
    Langevin,
    Metropolis,
    Molecule,
    OfHartreeFock,
    Pretraining,
    RefusedWave,
    Trap,
    Walkers,
    evaluate,
)
from angd.problems.vmc.ferminet import gather, slater
from angd.problems.vmc.molecules import as_task
from angd.problems.vmc.problem import kinetic_energy, kinetic_energy_by_loop
from angd.problems.vmc.sampling import homes_of

TINY: dict[str, Any] = {"hidden": ((6, 3), (6, 3)), "determinants": 2}
PAIR = Molecule.of([("Li", (0.0, 0.0, 0.0)), ("H", (0.0, 0.0, 3.0))], units="bohr")


def exponential(params, x):
    """ψ = exp(−ζ r): exact for hydrogen at ζ = 1."""
    return jnp.ones(()), -params * jnp.linalg.norm(x)


def bell(params, x):
    """ψ = exp(−a x²/2): exact in a trap at a = ω."""
    return jnp.ones(()), -params * jnp.sum(x**2) / 2


@pytest.mark.parametrize(
    ("wave", "potential", "shape", "energy"),
    [(exponential, Coulomb(MOLECULES["H"]), (1, 3), -0.5), (bell, Trap(), (3, 2), 3.0), (bell, Trap(), (1, 1), 0.5)],
)
def test_local_energies_of_exact_states_are_constant(wave, potential, shape, energy):
    problem = GroundState(wave, potential)
    xs = jax.random.normal(jax.random.key(0), (50, *shape))
    assert np.allclose(problem.local_energies(jnp.ones(()), xs), energy, atol=1e-10)


@pytest.mark.parametrize(
    ("optimiser", "wave", "potential", "shape", "energy"),
    [
        ("angd", exponential, Coulomb(MOLECULES["H"]), (1, 3), -0.5),
        ("spring", exponential, Coulomb(MOLECULES["H"]), (1, 3), -0.5),
        ("angd", bell, Trap(), (3, 2), 3.0),
    ],
)
def test_exact_states_are_found_with_no_variance(optimiser, wave, potential, shape, energy):
    """From ζ = 0.7, where ⟨E⟩ = ζ²/2 − ζ; and three particles in a plane trap, from a = 0.7."""
    problem = GroundState(wave, potential, Clipping(None))
    chain = Metropolis(GaussianStart(*shape), walkers=200, burn_in=100, moves=5)
    flow = angd.ARGFlow.momentum(0.5, 0.3)
    opt = (
        angd.ANGD(flow, angd.FisherRao(), angd.Kernel(1e-6))
        if optimiser == "angd"
        else angd.published.spring(0.5, 1e-6, C=None)
    )
    params = jnp.asarray(0.7)
    walkers = eqx.filter_jit(chain)(jax.random.key(0), problem, params)
    state, step, move = opt.init(problem, params, walkers), eqx.filter_jit(opt.step), eqx.filter_jit(chain.move)
    for k in range(60):
        params, walkers, state, _ = step(problem, params, walkers, state)
        walkers = move(jax.random.key(k), problem, params, walkers)
    found = evaluate(problem, params, chain, jax.random.key(1), 20)
    assert abs(found.energy - energy) < 1e-5
    assert found.variance < 1e-6


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_an_evaluation_is_in_the_precision_of_the_parameters_and_compiled_once(dtype):
    seen = []

    def watched(x):
        seen.append(x.dtype)
        return Trap()(x)

    chain = Metropolis(GaussianStart(2, 1), walkers=8, burn_in=2, moves=2)
    found = evaluate(GroundState(bell, watched), jnp.ones((), dtype), chain, jax.random.key(0), 4)
    assert seen == [dtype]
    assert abs(found.energy - 1.0) < 1e-5


def test_the_sampled_gradient_is_that_of_the_quadrature_energy():
    """A particle in x²/2 + x⁴ with ψ = exp(−a x²/2 − b x⁴): E(θ) on a grid, differentiated numerically."""
    grid = jnp.linspace(-5.0, 5.0, 2001)

    def wave(params, x):
        return jnp.ones(()), -params[0] * jnp.sum(x**2) / 2 - params[1] * jnp.sum(x**4)

    problem = GroundState(wave, lambda x: jnp.sum(x**2) / 2 + jnp.sum(x**4), Clipping(None), chunk=100)
    xs = grid[:, None, None]

    def density(params):
        rho = jnp.exp(jax.vmap(problem.log_density, (None, 0))(params, xs))
        return rho / rho.sum()

    def energy(params):
        return jnp.sum(density(params) * problem.local_energies(params, xs))

    params, h = jnp.array([0.8, 0.1]), 1e-5
    numeric = [(energy(params + h * e) - energy(params - h * e)) / (2 * h) for e in jnp.eye(2)]
    samples = angd.Samples(xs, density(params))
    opt = angd.ANGD(angd.ARGFlow.gradient(1.0), angd.FisherRao(None, correction=False), angd.Kernel(1e6))
    moved, _, _, info = eqx.filter_jit(opt.step)(problem, params, samples, opt.init(problem, params, samples))
    assert np.allclose((params - moved) * 1e6, numeric, rtol=1e-4)
    assert info.loss is not None
    assert np.isclose(info.loss, energy(params))
    _, gradient, _ = slope(problem, params, samples)
    assert np.allclose(gradient, numeric, rtol=1e-6)


def test_fisher_rao_without_momentum_is_minsr_and_with_projection_spring():
    """θ ← θ − η X (XᵀX + λ)⁻¹ ε, X the centred scores of log|ψ|/√n: written out in numpy."""
    helium = MOLECULES["He"]
    network = FermiNet(helium, hidden=((4, 2),), determinants=1)
    problem, params = GroundState(network, Coulomb(helium), Clipping(None)), network.init(jax.random.key(0))
    samples = angd.Samples(AroundNuclei(helium)(jax.random.key(1), 20))
    rate, damping, mu = 0.02, 1e-3, 0.9
    flat, unravel = ravel_pytree(params)
    mine = {"minsr": angd.published.minsr(rate, damping), "spring": angd.published.spring(rate, damping, mu, C=None)}
    scores_of = jax.jit(jax.vmap(lambda t, x: jax.grad(lambda t: problem.log_psi(unravel(t), x)[1])(t), (None, 0)))
    energies_of = jax.jit(lambda t: problem.local_energies(unravel(t), samples.x))
    for name, opt in mine.items():
        theta, previous, found = flat, np.zeros(flat.size), params
        state, step = opt.init(problem, params, samples), eqx.filter_jit(opt.step)
        for _ in range(2):
            scores, e = np.asarray(scores_of(theta, samples.x)), np.asarray(energies_of(theta))
            X = (scores - scores.mean(0)) / np.sqrt(20)
            epsilon = -(e - e.mean()) / np.sqrt(20)
            pull = mu * previous if name == "spring" else 0 * previous
            T = X @ X.T + damping * np.eye(20)
            previous = X.T @ np.linalg.solve(T, epsilon - X @ pull) + pull
            theta = theta + rate * previous
            found, _, state, _ = step(problem, found, samples, state)
        assert np.allclose(ravel_pytree(found)[0], theta, atol=1e-8)


@pytest.mark.parametrize(("name", "sparsity"), [("He", 0), ("LiH", 0), pytest.param("LiH", 6, marks=pytest.mark.slow)])
def test_the_forward_laplacian_is_the_loop_s(name, sparsity):
    network = FermiNet(MOLECULES[name], **TINY, last=5)
    params = network.init(jax.random.key(0))
    xs = AroundNuclei(MOLECULES[name])(jax.random.key(1), 3)
    forward, loop = (
        jax.jit(jax.vmap(lambda x, f=f: f(lambda y: network(params, y)[1], x)))(xs)
        for f in (partial(kinetic_energy, sparsity=sparsity), kinetic_energy_by_loop)
    )
    assert np.allclose(forward, loop, rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("Be", {"hidden": ((5, 3), (5, 3)), "last": 5}),
        ("H", {"hidden": ((4, 2),)}),
        ("LiH", {"hidden": ((4, 2), (6, 3)), "cusps": False}),
    ],
)
def test_a_network_s_own_laplacian_is_the_loop_s(name, shape):
    """Layers of equal and of other width, one spin alone, two nuclei; parameters as training might leave them."""
    molecule = MOLECULES[name]
    network, key = FermiNet(molecule, determinants=2, **shape), jax.random.key(3)
    params = jax.tree.map(lambda leaf: leaf + 0.1 * jax.random.normal(key, leaf.shape), network.init(jax.random.key(0)))
    xs, potential = AroundNuclei(molecule)(jax.random.key(1), 3), Coulomb(molecule)

    @jax.jit
    def energies(xs):
        loop = jax.vmap(lambda x: kinetic_energy_by_loop(lambda y: network(params, y)[1], x) + potential(x))(xs)
        return loop, GroundState(network, potential).local_energies(params, xs)

    loop, found = energies(xs)
    assert np.allclose(found, loop, rtol=1e-9)


def test_forces_are_finite_differences_of_independent_energies():
    """∇E_L, on which Wasserstein-2 rests, against differences of energies from a loop over coordinates."""
    network, potential = FermiNet(PAIR, ((4, 2),), determinants=1), Coulomb(PAIR)
    params, x = network.init(jax.random.key(0)), jax.random.normal(jax.random.key(1), (2, 4, 3))
    found = eqx.filter_jit(GroundState(network, potential, chunk=1).variation_gradients)(params, x)

    @jax.jit
    def energy(flat):
        y = flat.reshape(4, 3)
        return kinetic_energy_by_loop(lambda z: network(params, z)[1], y) + potential(y)

    flat, h = x[1].reshape(-1), 1e-5
    numeric = [(energy(flat.at[i].add(h)) - energy(flat.at[i].add(-h))) / (2 * h) for i in range(12)]
    assert np.allclose(found[1].reshape(-1), numeric, rtol=1e-5, atol=1e-4)


def test_electrons_velocities_are_refitted_by_their_distances():
    """The force on hydrogen's electron in exp(−0.8 r), clipped, on walkers that the fit has not seen: an affine field
    explains next to nothing of it. Equal electrons have equal fields, and what is in the span is found."""
    hydrogen = MOLECULES["H"]
    problem, params = GroundState(exponential, Coulomb(hydrogen)), jnp.asarray(0.8)
    chain = Metropolis(AroundNuclei(hydrogen), walkers=300, burn_in=100)
    x, at = (eqx.filter_jit(chain)(jax.random.key(k), problem, params).x.reshape(300, 3) for k in (0, 1))
    force = [jnp.clip(problem.variation_gradients(params, y[:, None]), -1, 1).reshape(300, 3) for y in (x, at)]
    omega = jnp.full(300, 1 / 300)

    def explained(refit):
        return 1 - jnp.sum((refit(x, force[0], omega, at) - force[1]) ** 2) / jnp.sum(force[1] ** 2)

    assert explained(ElectronRefit(hydrogen)) > 0.85
    assert explained(angd.AffineRefit()) < 0.2
    refit = ElectronRefit(PAIR, ridge=1e-12)
    xs = jax.random.normal(jax.random.key(2), (40, 4, 3))
    vectors = jax.vmap(refit.vectors)(xs)
    swapped = jax.vmap(refit.vectors)(xs[:, jnp.array([1, 0, 2, 3])])
    assert np.allclose(vectors[:, 0], swapped[:, 1])
    assert np.allclose(vectors[:, 2], swapped[:, 2])
    V = jnp.einsum("neki,k->nei", vectors, jnp.arange(vectors.shape[2]) - 7.0).reshape(40, 12)
    assert np.allclose(refit(xs.reshape(40, 12), V, jnp.full(40, 1 / 40), xs.reshape(40, 12)), V, rtol=1e-5, atol=1e-4)


@pytest.mark.slow
def test_many_electrons_have_sparse_local_energies_that_are_the_loop_s():
    """What a problem does by default from eight electrons on."""
    molecule = MOLECULES["H10"]
    network, potential = FermiNet(molecule, hidden=((16, 4),), determinants=1), Coulomb(molecule)
    params, xs = network.init(jax.random.key(0)), AroundNuclei(molecule)(jax.random.key(1), 2)
    found = eqx.filter_jit(GroundState(network, potential).local_energies)(params, xs)
    loop = jax.jit(jax.vmap(lambda x: kinetic_energy_by_loop(lambda y: network(params, y)[1], x) + potential(x)))(xs)
    assert np.allclose(found, loop, rtol=1e-6)


def test_ferminet_is_antisymmetric_and_has_its_sizes():
    network = FermiNet(MOLECULES["Be"], **TINY)
    params = network.init(jax.random.key(0))
    x = AroundNuclei(MOLECULES["Be"])(jax.random.key(1), 1)[0]
    sign, log = network(params, x)
    for order, factor in (([1, 0, 2, 3], -1), ([0, 1, 3, 2], -1), ([1, 0, 3, 2], 1)):
        other, same = network(params, x[jnp.array(order)])
        assert other == factor * sign
        assert np.isclose(log, same)
    assert network.orbitals(params, x).shape == (2, 4, 4)
    assert not any(leaf.weak_type for leaf in jax.tree.leaves(params))  # or every first step would be compiled twice
    assert as_task(MOLECULES["Be"], "medium").problem.log_psi == FermiNet.medium(MOLECULES["Be"])
    published = FermiNet.published(MOLECULES["Be"])
    assert as_task(MOLECULES["Be"], "published").problem.log_psi == published
    shapes = jax.eval_shape(published.init, jax.random.key(0))
    assert published.determinants == 16
    assert [layer["one"][0].shape[1] for layer in shapes["layers"]] == [256] * 4


def test_layers_of_ferminet_see_each_electron_all_means_and_its_pairs():
    """One product with everything side by side, as the architecture is written."""
    rng = np.random.default_rng(0)
    h, means, pairs = (jnp.asarray(rng.normal(size=shape)) for shape in ((4, 5), (1, 10), (4, 6)))
    W, b = jnp.asarray(rng.normal(size=(21, 7))), jnp.asarray(rng.normal(size=7))
    whole = np.concatenate([h, np.broadcast_to(means, (4, 10)), pairs], axis=1) @ np.asarray(W) + np.asarray(b)[None]
    assert np.allclose(gather((W, b), h, means, pairs), whole)


@pytest.mark.parametrize(("i", "j", "slope"), [(0, 1, 0.25), (0, 2, 0.5)])
def test_the_jastrow_factor_has_the_cusps(i, j, slope):
    """∂ log|ψ|/∂r → ¼ for equal and ½ for opposite spins as electrons meet."""
    network = FermiNet(MOLECULES["Be"], **TINY)
    params = network.init(jax.random.key(0))
    x = AroundNuclei(MOLECULES["Be"])(jax.random.key(1), 1)[0]

    def at(r):
        return network.jastrow(params, x.at[j].set(x[i] + jnp.array([r, 0.0, 0.0])))

    other = jax.jit(jax.grad(at))
    assert np.isclose(0.5 * (other(1e-7) - other(-1e-7)), slope, atol=1e-5)


def test_envelopes_begin_as_shells_of_the_nuclei():
    """Two cores of each spin, on both nuclei; hydrogen has no core, and takes part in bonds alone."""
    zeta, share = map(np.asarray, slater(MOLECULES["N2"]))
    assert np.sum(zeta.min(axis=1) > 5) == 4
    assert np.isclose(zeta.max(), 6.65)
    assert np.isclose(zeta.min(), 1.95)
    assert (share == 1).all()
    zeta, share = map(np.asarray, slater(MOLECULES["LiH"]))
    assert share.tolist() == 2 * [[1, 0], [1, 1]]
    assert np.allclose(zeta[:2, 0], [2.65, 0.65])


@pytest.mark.parametrize("name", ["H", "Be", "LiH"])
def test_hartree_fock_orbitals_are_pyscf_s(name):
    pyscf = pytest.importorskip("pyscf")
    molecule = MOLECULES[name]
    mean_field = HartreeFock.of(molecule)
    atoms = list(zip(molecule.symbols, molecule.places, strict=True))
    mol = pyscf.gto.M(atom=atoms, unit="bohr", basis="ccpvdz", spin=molecule.spins[0] - molecule.spins[1], verbose=0)
    points = np.random.default_rng(0).normal(size=(5, 3))
    found = np.stack([mean_field.functions(jnp.asarray(point)) for point in points])
    assert np.allclose(found, mol.eval_gto("GTOval_sph", points), atol=1e-12)


def test_pretraining_brings_orbitals_to_hartree_fock():
    molecule = MOLECULES["He"]
    network, mean_field = FermiNet(molecule, **TINY), HartreeFock.of(molecule)
    chain = OfHartreeFock(Metropolis(AroundNuclei(molecule), walkers=50, burn_in=50, moves=3), mean_field)
    before, params = Pretraining(network, mean_field, rate=1e-2), network.init(jax.random.key(0))
    walkers = eqx.filter_jit(chain)(jax.random.key(1), None, params)
    state, step, move = before.init(None, params, walkers), eqx.filter_jit(before.step), eqx.filter_jit(chain.move)
    losses = []
    for k in range(80):
        params, walkers, state, info = step(None, params, walkers, state)
        walkers = move(jax.random.key(k), None, params, walkers)
        losses.append(float(info.loss))
    assert losses[-1] < 0.05 * losses[0]


@pytest.mark.parametrize("chain", [Metropolis, Langevin])
def test_chains_sample_the_density_and_find_their_width(chain):
    """ψ = exp(−x²/2): every coordinate of |ψ|² has variance ½."""
    problem = GroundState(bell, Trap())
    made = chain(GaussianStart(2, 1, spread=3.0), walkers=1000, burn_in=200, moves=20)
    walkers = eqx.filter_jit(made)(jax.random.key(0), problem, jnp.ones(()))
    walkers = eqx.filter_jit(made.move)(jax.random.key(1), problem, jnp.ones(()), walkers)
    assert abs(walkers.acceptance - made.target) < 0.1
    assert np.isclose(np.var(walkers.x), 0.5, rtol=0.1)
    assert abs(float(np.mean(walkers.x))) < 0.06


def test_one_electron_moves_sample_the_same():
    problem = GroundState(bell, Trap())
    made = Metropolis(GaussianStart(3, 1, spread=3.0), walkers=600, burn_in=400, moves=1, one=True)
    walkers = eqx.filter_jit(made)(jax.random.key(0), problem, jnp.ones(()))
    assert np.isclose(np.var(walkers.x), 0.5, rtol=0.1)
    moved = made.move(jax.random.key(1), problem, jnp.ones(()), walkers)
    assert set(np.unique((moved.x != walkers.x).sum(axis=(1, 2)))) <= {0, 1}


def test_graded_moves_sample_the_density_near_and_far_from_nuclei():
    """Two electrons of exp(−Σ ζ r) with ζ = 8 and 1 around one nucleus: E[r] = 3/(2ζ), E[r²] = 3/ζ²."""

    def shells(zeta, x):
        return jnp.ones(()), -jnp.sum(zeta * jnp.linalg.norm(x, axis=-1))

    made, zeta = Graded(AroundNuclei(MOLECULES["He"]), walkers=2000, burn_in=600, moves=1), jnp.array([8.0, 1.0])
    problem = GroundState(shells, Coulomb(MOLECULES["He"]))
    walkers = eqx.filter_jit(made)(jax.random.key(0), problem, zeta)
    r = np.linalg.norm(walkers.x, axis=-1)
    assert np.allclose(r.mean(axis=0), 1.5 / zeta, rtol=0.05)
    assert np.allclose((r**2).mean(axis=0), 3 / zeta**2, rtol=0.1)
    moved = made.move(jax.random.key(1), problem, zeta, walkers)
    assert abs(moved.acceptance - made.target) < 0.1


def test_bad_walkers_are_respawned_and_counted():
    def wave(params, x):
        return jnp.ones(()), jnp.where(jnp.sum(x) > 100, jnp.nan, -jnp.sum(x**2))

    walkers = Walkers(jnp.array([1.0, 2.0, 500.0])[:, None, None], 1e-6)
    chain = Metropolis(GaussianStart(1, 1), walkers=3, moves=1)
    found = chain.move(jax.random.key(0), GroundState(wave, Trap()), None, walkers)
    assert np.allclose(found.x.ravel(), [1.0, 2.0, 1.0], atol=1e-4)
    assert np.allclose(found.omega, 1 / 3)
    assert found.respawned == 1


def test_between_two_steps_log_density_is_asked_once_for_the_walkers_and_once_for_each_move():
    asked = []

    def wave(params, x):
        jax.debug.callback(lambda: asked.append(1))
        return jnp.ones(()), -jnp.sum(x**2)

    problem, chain = GroundState(wave, Trap()), Metropolis(GaussianStart(1, 1), walkers=1, moves=7, burn_in=0)
    walkers = chain(jax.random.key(0), problem, None)
    jax.block_until_ready(chain.move(jax.random.key(1), problem, None, walkers).x)
    jax.effects_barrier()
    assert len(asked) == 1 + 7


@pytest.mark.parametrize("metric", [angd.FisherRao(), angd.Wasserstein(), angd.ParametricWasserstein(), None])
def test_walkers_with_energies_that_are_not_finite_are_masked_and_respawned(metric):
    """ψ, its score and its energy are not numbers beyond x = 100: the step is the one that the others would make."""

    def wave(params, x):
        log = -params[0] * jnp.sum(x**2) / 2 - params[1] * x[0, 0]
        return jnp.ones(()), log * jnp.sqrt(100 - jnp.sum(x)) / jnp.sqrt(100 - jnp.sum(x))

    if metric is None:
        method = angd.baselines.sgd(0.1)
    else:
        solver = angd.Kernel(1e-3) if metric.rows else angd.Normal(1e-3)
        method = angd.ANGD(angd.ARGFlow.gradient(0.1), metric, solver)
    problem, params = GroundState(wave, Trap(), Clipping(None)), jnp.array([1.3, 0.1])
    good = jnp.array([0.3, -1.1, 0.8, 1.9])[:, None, None]
    spoilt = Walkers(jnp.concatenate([good, jnp.full((1, 1, 1), 500.0)]), 0.1)
    step = eqx.filter_jit(method.step)
    wanted, *_ = step(problem, params, Walkers(good, 0.1), method.init(problem, params, Walkers(good, 0.1)))
    found, walkers, _, info = step(problem, params, spoilt, method.init(problem, params, spoilt))
    assert info.accepted
    assert np.allclose(found, wanted, rtol=1e-6)
    assert not np.allclose(found, params)
    assert float(jnp.max(walkers.x)) < 5.0
    assert walkers.respawned == 1
    assert np.allclose(walkers.omega, 0.2)


def test_local_energies_that_are_not_finite_do_not_reach_the_force():
    energies = jnp.array([1.0, jnp.nan, 3.0, 2.0, jnp.inf, 100.0])
    found = Clipping(1.0)(energies)
    assert np.isfinite(found).all()
    assert found[1] == found[4] == np.median([1.0, 2.0, 3.0, 100.0])
    assert found[5] < 100.0
    assert np.allclose(Clipping(None, "mean")(energies[jnp.array([0, 2, 3])]), [1.0, 3.0, 2.0])


def test_a_wave_function_without_finite_energies_is_refused_and_frozen_chains_are_seen():
    chain = Metropolis(GaussianStart(1, 1), walkers=4, burn_in=1, moves=1)
    broken = GroundState(lambda params, x: (jnp.ones(()), jnp.nan * x.sum()), Trap())
    with pytest.raises(RefusedWave, match="log_psi is not finite"):
        evaluate(broken, None, chain, jax.random.key(0), 4)
    with pytest.raises(RefusedWave, match="no local energy is finite"):
        evaluate(GroundState(bell, lambda x: jnp.nan * x.sum()), jnp.ones(()), chain, jax.random.key(0), 4)
    assert rhat(np.broadcast_to(np.arange(5.0), (10, 5))) == np.inf
    assert rhat(np.ones((10, 5))) == 1.0


def test_walkers_over_two_devices_have_the_same_energies_and_are_not_gathered():
    problem = GroundState(lambda a, x: (jnp.ones(()), -a * jnp.sum(x**2)), lambda x: jnp.sum(x**4), chunk=4)
    chain = Metropolis(GaussianStart(2, 3), walkers=24, burn_in=3, moves=2)
    params, walkers = jnp.asarray(0.7), eqx.filter_jit(chain)(jax.random.key(0), problem, jnp.asarray(0.7))
    mesh = angd.parallel.mesh(jax.devices()[:2])
    split, here = angd.split(walkers, mesh), angd.replicate(params, mesh)
    assert isinstance(split, Walkers)
    assert len(split.x.sharding.device_set) == 2
    energies = jax.jit(lambda params, xs: problem.local_energies(params, xs))
    assert np.allclose(energies(here, split.x), energies(params, walkers.x))
    assert "all-gather" not in str(energies.lower(here, split.x).compile().as_text())
    odd = dataclasses.replace(problem, chunk=5)  # two devices cannot share five, and five do not divide 24
    shared = jax.jit(lambda params, xs: odd.local_energies(params, xs))
    assert "all-gather" not in str(shared.lower(here, split.x).compile().as_text())
    assert len({str(shard.index) for shard in shared(here, split.x).addressable_shards}) == 2
    assert np.allclose(shared(here, split.x), energies(params, walkers.x))
    moved = eqx.filter_jit(chain.move)(jax.random.key(1), problem, here, split)
    assert np.allclose(moved.x, eqx.filter_jit(chain.move)(jax.random.key(1), problem, params, walkers).x)
    for few in (1, 7):
        every = jax.vmap(problem.variation, (None, 0))(params, walkers.x[:few])
        assert np.allclose(problem.local_energies(params, walkers.x[:few]), every)


def test_two_sets_of_energies_are_clipped_by_one_window():
    """An outlier that disappears changes nothing elsewhere, and what is missing in one is missing in both."""
    new = jnp.array([0.0, 1.0, 2.0, 30.0, 4.0])
    old = new.at[3].set(3.0).at[0].set(jnp.nan)
    now, before = Clipping(1.0).together(new, old)
    assert now[0] == before[0] == np.median([1.0, 2.0, 30.0, 4.0])
    assert np.allclose(now[jnp.array([1, 2, 4])], before[jnp.array([1, 2, 4])])
    assert now[3] > before[3]
    problem = GroundState(bell, Trap(), Clipping(1.0))
    x, a, b = jnp.array([0.1, 0.5, 3.0])[:, None, None], jnp.asarray(1.0), jnp.asarray(1.3)
    expected = Clipping(1.0).together(problem.local_energies(a, x), problem.local_energies(b, x))
    assert np.allclose(problem.variations(a, angd.Samples(x), b)[1:], expected)


def test_autocorrelation_and_mixing_are_measured():
    """An AR(1) chain with coefficient 0.8 has τ = 9; independent numbers have τ = 1; chains apart have a large R̂."""
    rng = np.random.default_rng(0)
    noise, series = rng.normal(size=(2000, 50)), np.zeros((2000, 50))
    for t in range(1, 2000):
        series[t] = 0.8 * series[t - 1] + noise[t]
    assert abs(autocorrelation_time(series) - 9) < 1.0
    assert autocorrelation_time(noise) < 1.1
    assert rhat(noise) < 1.01
    assert rhat(noise + np.arange(50)) > 3
    found = summarise(series, 0.5)
    assert np.isclose(found.error, np.sqrt(series.var() / series.size * found.time))


def test_electrons_begin_at_the_nuclei_and_molecules_are_read():
    assert sorted(homes_of(MOLECULES["N2"])) == [0] * 7 + [1] * 7
    assert homes_of(MOLECULES["H10"])[:5] == [0, 2, 4, 6, 8]
    text = "2\nlithium hydride\nLi 0 0 0\nH 0 0 1.5949\n"
    read = Molecule.from_xyz(text)
    assert read.spins == (2, 2)
    assert np.isclose(read.places[1][2], 3.0139, atol=1e-3)
    assert Molecule.of([("Li", (0.0, 0.0, 0.0))], units="bohr", charge=1).spins == (1, 1)


NITROGEN = [("N", (0.0, 0.0, 0.0))]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Molecule.of(NITROGEN, units="bohr", spin=2), "cannot have"),
        (lambda: Molecule.of(NITROGEN, units="bohr", spin=9), "cannot have"),
        (lambda: Molecule.of(NITROGEN, units="bohr", charge=7), "leaves 0 electrons"),
        (lambda: Molecule.of(NITROGEN * 2, units="bohr"), "same place"),
        (lambda: Molecule.of([("Xx", (0.0, 0.0, 0.0))], units="bohr"), "no element called 'Xx'"),
        (lambda: Molecule.of(NITROGEN, units="miles"), "units must be"),
        (lambda: Molecule.of([], units="bohr"), "at least one atom"),
        (lambda: Molecule.of([("N", (0.0, 0.0, float("nan")))], units="bohr"), "not finite"),
        (lambda: Molecule(("H",), ((0.0, 0.0, 0.0),), (5, -3)), "has a place for every atom, and electrons"),
        (lambda: Molecule.from_xyz("water.xyz"), "pass pathlib.Path"),
        (lambda: Molecule.from_xyz("nonsense"), "An XYZ file has"),
        (lambda: Molecule.from_xyz("3\n\nH 0 0 0\n"), "promises 3 atoms and has 1"),
        (lambda: Metropolis(AroundNuclei(PAIR), walkers=0), "at least one, got 0"),
        (lambda: Graded(AroundNuclei(PAIR), moves=0), "moves ≥ 1"),
        (lambda: Langevin(AroundNuclei(PAIR), moves=0), "moves ≥ 1"),
        (lambda: Clipping(-1.0), "width positive"),
        (lambda: FermiNet(PAIR, determinants=0), "must be positive"),
    ],
)
def test_mistakes_are_answered_in_a_sentence(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_waves_that_cannot_be_are_refused():
    x = jax.random.normal(jax.random.key(0), (2, 3))
    broken = GroundState(lambda params, x: (jnp.ones(()), jnp.nan * x.sum()), Trap())
    with pytest.raises(ValueError, match="not finite"):
        broken.check_start(None, x)
    with pytest.raises(RefusedWave, match="not antisymmetric"):
        GroundState(bell, Trap()).check_start(jnp.ones(()), x, (2, 0))
    GroundState(bell, Trap()).check_start(jnp.ones(()), x, (1, 1))
    triplet = Molecule.of([("He", (0, 0, 0))], units="bohr", spin=2)
    opt = angd.ANGD(angd.ARGFlow.gradient(0.1), angd.FisherRao(), angd.Kernel(1e-3))
    with pytest.raises(RefusedWave, match="not antisymmetric"):
        opt.init(GroundState(bell, Coulomb(triplet)), jnp.ones(()), Walkers(x[None], 0.1))
