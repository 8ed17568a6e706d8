"""Spins and fermions on lattices, judged by exact diagonalisation of matrices that are built another way."""

from functools import reduce

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import angd
from angd.problems.lattice import (
    RBM,
    Basis,
    Convolution,
    Enumerated,
    Exchange,
    Flip,
    Heisenberg,
    Hubbard,
    Lattice,
    LatticeState,
    Operator,
    TransverseIsing,
    both_spins,
    chain_of,
    evaluate,
    ground_state,
    lowest,
    ring,
    square,
)
from angd.problems.task import Task
from angd.program import reached

PAULI = {"x": np.array([[0, 1], [1, 0]]), "y": np.array([[0, -1j], [1j, 0]]), "z": np.diag([1, -1])}


def product(n, **at):
    """σ ⊗ σ ⊗ …, by site: product(4, s0="x", s1="x")."""
    return reduce(np.kron, [PAULI[at[f"s{i}"]] if f"s{i}" in at else np.eye(2) for i in range(n)])


def two(n, i, j, letter):
    return product(n, **{f"s{i}": letter, f"s{j}": letter})


def test_ising_energies_are_those_of_pauli_matrices():
    lattice = square(2, 3)
    expected = -sum(two(6, i, j, "z") for i, j in lattice.bonds()) - 0.7 * sum(
        product(6, **{f"s{i}": "x"}) for i in range(6)
    )
    np.testing.assert_allclose(
        lowest(Basis.of(TransverseIsing(lattice, 0.7)), 4), np.linalg.eigvalsh(expected)[:4], atol=1e-10
    )


@pytest.mark.parametrize("marshall", [True, False])
def test_heisenberg_energies_are_those_of_pauli_matrices(marshall):
    """In the sector of no magnetisation, which has the lowest of all."""
    lattice, j2 = ring(6), 0.4
    expected = sum(
        j / 4 * two(6, a, b, s) for shell, j in ((1, 1.0), (2, j2)) for a, b in lattice.bonds(shell) for s in "xyz"
    )
    found = lowest(Basis.of(Heisenberg(lattice, j2, marshall=marshall)), 1)
    np.testing.assert_allclose(found, np.linalg.eigvalsh(expected)[:1], atol=1e-10)


@pytest.mark.parametrize(
    ("hamiltonian", "energy"),
    [
        # Free fermions: −2 Σ sin of half-odd multiples of π/L.
        (TransverseIsing(ring(10)), -2 / np.sin(np.pi / 20)),
        # Majumdar and Ghosh 1969: −3/8 for each site.
        (Heisenberg(ring(8), 0.5), -3.0),
        (Heisenberg(ring(4)), -2.0),
        # Two sites share one bond: (U − √(U² + 16 t²)) / 2.
        (Hubbard(ring(2), (1, 1), U=3.0), (3 - 5) / 2),
        # Two free fermions in a field: momenta 0 and −1, each shifted by a sixth of the flux.
        (Hubbard(ring(6), (2,), flux=0.3), -2 * np.cos(0.05) - 2 * np.cos(np.pi / 3 - 0.05)),
        # Four free fermions on a square: levels −4 and −1 (thrice with periodic rows of three: −1, −1, 0 …).
        (Hubbard(square(3), (1, 1), U=0.0), -8.0),
    ],
)
def test_energies_are_the_known_ones(hamiltonian, energy):
    np.testing.assert_allclose(lowest(Basis.of(hamiltonian), 1)[0], energy, atol=1e-9)


def test_bonds_count_each_pair_once():
    assert len(square(4).bonds(1)) == len(square(4).bonds(2)) == 32
    assert len(ring(2).bonds()) == 1
    assert ring(5).bonds(2).tolist() == [[0, 2], [0, 3], [1, 3], [1, 4], [2, 4]]
    np.testing.assert_array_equal(ring(4).displacements()[:, 0], [1, -1, 1, 1])


SYSTEMS = {
    "ising": (TransverseIsing(ring(6)), ring(6).translations(), {}),
    "j1j2": (Heisenberg(ring(6), 0.5), ring(6).translations(), {"complex": True}),
    "hubbard": (Hubbard(ring(4), (1, 1)), both_spins(ring(4).translations()), {}),
}


@pytest.mark.parametrize("name", SYSTEMS)
def test_local_energies_are_those_of_the_matrix_and_orbits_lose_nothing(name):
    hamiltonian, symmetry, kind = SYSTEMS[name]
    problem = LatticeState(RBM(hamiltonian.size, 3, symmetry, spread=0.4, **kind), hamiltonian, chunk=7)
    full, orbits = Basis.of(hamiltonian), Basis.of(hamiltonian, symmetry)
    params = problem.init(jax.random.key(0))
    psi = np.exp(np.asarray(full.log_amplitudes(problem.log_amplitude, params)))
    expected = full.matrix() @ psi / psi
    np.testing.assert_allclose(eqx.filter_jit(problem.local_energies)(params, full.x), expected, atol=1e-10)
    np.testing.assert_allclose(full.local_energies(jnp.log(psi)), expected, atol=1e-10)
    energies = [eqx.filter_jit(Enumerated(basis).energy)(problem, params) for basis in (full, orbits)]
    np.testing.assert_allclose(energies, np.vdot(psi, full.matrix() @ psi).real / np.vdot(psi, psi).real, atol=1e-10)
    assert orbits.size < full.size / 2
    assert float(orbits.members.sum()) == full.size


def test_orbits_have_the_levels_of_states_that_translations_leave():
    hamiltonian = TransverseIsing(ring(6), 0.8)
    orbits, full = Basis.of(hamiltonian, ring(6).translations()), Basis.of(hamiltonian)
    H, levels = full.matrix().toarray(), lowest(orbits, orbits.size)
    moved = [
        np.flatnonzero((np.asarray(full.x) == row).all(1))[0]
        for row in np.asarray(full.x)[:, ring(6).translations()[1]]
    ]
    T = np.eye(full.size)[moved]
    P = sum(np.linalg.matrix_power(T, k) for k in range(6)) / 6
    expected = np.sort(np.linalg.eigvalsh(P @ H @ P + 100 * (np.eye(full.size) - P)))[: orbits.size]
    np.testing.assert_allclose(levels, expected, atol=1e-9)


@pytest.mark.parametrize("network", [RBM(6, 3, ring(6).translations(), complex=True), Convolution(ring(6), (2, 3))])
def test_networks_do_not_notice_translations(network):
    params = network.init(jax.random.key(0))
    x = jnp.asarray([1, 1, -1, 1, -1, -1])
    values = jax.vmap(network, (None, 0))(params, jnp.stack([x[row] for row in ring(6).translations()]))
    np.testing.assert_allclose(values, values[0] * jnp.ones(6), atol=1e-12)
    assert abs(network(params, x) - network(params, jnp.sort(x))) > 1e-8, "it should notice something"


def test_an_rbm_is_what_the_literature_writes():
    network = RBM(4, 2, complex=True, spread=0.5)
    params, x = network.init(jax.random.key(1)), jnp.asarray([1, -1, -1, 1])
    z = jax.tree.map(
        lambda p: np.asarray(p.real + 1j * p.imag), params, is_leaf=lambda p: hasattr(p, "imag") and hasattr(p, "real")
    )
    expected = np.exp(z["a"] @ x) * np.prod(np.cosh(z["b"] + z["W"] @ x))
    np.testing.assert_allclose(np.exp(network(params, x)), expected, rtol=1e-12)


CHAINS = {"flip": TransverseIsing(ring(4)), "exchange": Heisenberg(ring(6)), "two spins": Hubbard(ring(3), (1, 2))}


@pytest.mark.parametrize("name", ["flip", pytest.param("exchange", marks=pytest.mark.slow), "two spins"])
def test_chains_sample_the_density(name):
    hamiltonian = CHAINS[name]
    basis, traces = Basis.of(hamiltonian), []

    def amplitude(params, x):
        traces.append(x)
        return params["w"] @ x + 0.5 * x[0] * x[1]

    problem = LatticeState(amplitude, hamiltonian)
    params = {"w": 0.3 * jnp.arange(hamiltonian.size) - 0.4}
    chain = chain_of(hamiltonian, walkers=2000, moves=3, burn_in=8)
    walkers = eqx.filter_jit(chain)(jax.random.key(0), problem, params)
    move = eqx.filter_jit(chain.move)
    walkers = move(jax.random.key(1), problem, params, walkers)
    once = len(traces)
    walkers = move(jax.random.key(2), problem, params, walkers)
    assert len(traces) == once, "the second move was traced again"
    rho = np.asarray(basis.weights(basis.log_amplitudes(amplitude, params)))
    counts = (np.asarray(walkers.x)[:, None] == np.asarray(basis.x)[None]).all(-1).sum(0)
    assert counts.sum() == 2000, "a walker has left the configurations"
    expected = 2000 * rho
    chi2 = np.sum((counts - expected) ** 2 / np.maximum(expected, 1))
    assert chi2 < len(rho) + 5 * np.sqrt(2 * len(rho)), (counts, expected)
    assert 0.05 < float(walkers.acceptance) < 0.95


def test_a_walker_where_there_is_no_density_is_replaced():
    problem = LatticeState(lambda p, x: jnp.where(x[0] == 1, 0.0, p), TransverseIsing(ring(3)))
    chain = Flip(problem.hamiltonian, walkers=40, burn_in=0)
    walkers = eqx.filter_jit(chain)(jax.random.key(0), problem, jnp.zeros(()))
    gone = int(jnp.sum(walkers.x[:, 0] != 1))
    walkers = eqx.filter_jit(chain.move)(jax.random.key(1), problem, jnp.asarray(-jnp.inf), walkers)
    assert gone > 0
    assert int(walkers.respawned) == gone
    assert bool(jnp.all(walkers.x[:, 0] == 1))


def test_shares_of_draws_are_counts_of_the_density():
    hamiltonian = TransverseIsing(ring(4))
    problem = LatticeState(RBM(4, 4, spread=0.5), hamiltonian)
    params, basis = problem.init(jax.random.key(0)), Basis.of(hamiltonian)
    rho = Enumerated(basis)(None, problem, params).omega
    drawn = Enumerated(basis, 20_000)(jax.random.key(1), problem, params).omega
    np.testing.assert_allclose(jnp.sum(drawn), 1.0)
    np.testing.assert_allclose(drawn * 20_000, jnp.round(drawn * 20_000), atol=1e-8)
    assert float(jnp.sum((drawn - rho) ** 2 / rho)) * 20_000 < 16 + 5 * np.sqrt(32)


def test_a_task_is_trained_to_the_energy_of_exact_diagonalisation():
    hamiltonian = Heisenberg(ring(8))
    symmetry = ring(8).translations()
    task = ground_state(hamiltonian, RBM(8, 4, symmetry), symmetry=symmetry)
    assert task.energy is not None
    fit = angd.fit(task, steps=100)
    np.testing.assert_allclose(task.energy, -3.651093408937, atol=1e-9)
    assert abs(fit.summary["evaluation"]["energy"] / task.energy - 1) < 1e-6
    assert fit.summary["standard_error"] == 0.0
    said = reached.energy(fit.summary["error"], 0.0, fit.summary["evaluation"])
    assert said.startswith(f"energy {fit.summary['evaluation']['energy']:.7f} (")
    assert "a sum over 10 states" in said


def test_a_complex_rbm_finds_the_ground_state_in_a_magnetic_field():
    """Four fermions with a flux: the wave function has signs and phases, which no positive one could have."""
    hamiltonian = Hubbard(ring(6), (2,), V=1.0, flux=0.5)
    fit = angd.fit(ground_state(hamiltonian, RBM(6, 6, complex=True)), steps=150)
    assert abs(fit.summary["evaluation"]["energy"] / fit.task.energy - 1) < 1e-5
    psi = np.linalg.eigh(Basis.of(hamiltonian).matrix().toarray())[1][:, 0]
    assert np.abs(np.imag(psi / psi[0])).max() > 0.1


@pytest.mark.slow
def test_a_sampled_energy_agrees_with_the_exact_one():
    hamiltonian = Heisenberg(ring(6))
    problem = LatticeState(RBM(6, 3, spread=0.3), hamiltonian)
    params = problem.init(jax.random.key(0))
    found = evaluate(problem, params, Exchange(hamiltonian, 500), jax.random.key(1), 12)
    exact = float(Enumerated(Basis.of(hamiltonian)).energy(problem, params))
    assert abs(found.energy - exact) < 5 * found.error
    assert found.error < 0.02
    assert found.rhat < 1.1


def test_an_operator_of_ones_own_is_a_hamiltonian():
    """A field along x and z on each of three spins: the levels add up."""

    def function(x):
        flips = x[None] * (1 - 2 * jnp.eye(3, dtype=x.dtype))
        return jnp.concatenate([x[None], flips]), jnp.concatenate([-0.6 * jnp.sum(x)[None], -0.8 * jnp.ones(3)])

    np.testing.assert_allclose(lowest(Basis.of(Operator(function, 3)), 1), [-3.0], atol=1e-12)


def raising(x):
    return jnp.stack([x, x.at[0].set(1)]), jnp.array([0.0, 1.0])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Lattice(()), "at least two sites"),
        (lambda: ring(0), "at least two sites"),
        (lambda: square(1), "at least two sites"),
        (lambda: Basis.of(Operator(raising, 3)), "Operator is not Hermitian"),
        (lambda: Flip(Operator(raising, 60)), "Operator is not Hermitian"),
        (lambda: RBM(0, 2), "at least 1, got 0 and 2"),
        (lambda: Basis.of(Operator(raising, 4, counts=(2,))), "counts says what it conserves"),
        (lambda: Basis.of(TransverseIsing(ring(40))), "too many to enumerate"),
        (lambda: Basis.of(Heisenberg(ring(4), up=5)), "there are no"),
        (lambda: Heisenberg(ring(5)), "marshall=False"),
        (lambda: Hubbard(ring(3), (4,)), "at most 3"),
        (lambda: Flip(Heisenberg(ring(4))), "take Exchange"),
        (lambda: Exchange(TransverseIsing(ring(4))), "take Flip"),
        (lambda: Flip(TransverseIsing(ring(4)), walkers=0), "walkers ≥ 1"),
        (lambda: Enumerated(Basis.of(TransverseIsing(ring(2))), draws=1), "at least 2"),
        (lambda: LatticeState(lambda p, x: p, TransverseIsing(ring(4))).init(jax.random.key(0)), "no init"),
    ],
)
def test_mistakes_are_told_in_a_sentence(make, words):
    with pytest.raises(ValueError, match=words) as refusal:
        make()
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("metric", [angd.Wasserstein(), angd.ParametricWasserstein()])
def test_wasserstein_does_not_move_integers(metric):
    problem = LatticeState(RBM(4, 2), TransverseIsing(ring(4)))
    params, sampler = problem.init(jax.random.key(0)), Enumerated(Basis.of(problem.hamiltonian))
    with pytest.raises(ValueError, match="moves samples, so their coordinates must be floating-point") as refusal:
        angd.ANGD(angd.ARGFlow.gradient(0.1), metric, angd.Normal(1e-3)).init(
            problem, params, sampler(None, problem, params)
        )
    assert "\n" not in str(refusal.value)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "goal"), [("heisenberg", 1e-6), ("tfim", 1e-6), ("hubbard", 1e-5), ("j1j2", 1e-2)])
def test_built_in_lattices_reach_the_energy_of_exact_diagonalisation(name, goal):
    from angd.problems.library import TASKS

    fit = angd.fit(TASKS[name](), steps=300, seconds=180)
    assert abs(fit.summary["evaluation"]["energy"] / fit.task.energy - 1) < goal


@pytest.mark.slow
@pytest.mark.parametrize("make", [TransverseIsing, Heisenberg])
def test_sampled_chains_of_sixteen_sites_reach_1e_4_in_three_minutes(make):
    symmetry = ring(16).translations()
    task = ground_state(make(ring(16)), RBM(16, 8, symmetry), symmetry=symmetry, exact=False)
    fit = angd.fit(task, seconds=150)
    assert abs(fit.summary["evaluation"]["energy"] / task.energy - 1) < 1e-4


def test_a_task_of_a_large_lattice_is_sampled_and_has_no_reference():
    task = ground_state(TransverseIsing(square(6)), RBM(36, 4))
    assert isinstance(task, Task)
    assert isinstance(task.samples, Flip)
    assert task.energy is None


@pytest.mark.parametrize(
    "hamiltonian",
    [
        TransverseIsing(square(6)),
        Hubbard(ring(20), (7, 8), U=2.0, flux=0.7),
        Operator(TransverseIsing(ring(30)).connections, 30),
    ],
)
def test_what_is_hermitian_is_sampled_though_nobody_can_look_at_all_of_it(hamiltonian):
    """Random configurations, and the way back from each that H connects them with."""
    assert chain_of(hamiltonian, walkers=2).hamiltonian is hamiltonian
