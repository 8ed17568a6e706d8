"""Observables against what others compute: pyscf, quadrature, closed forms, chains of known memory."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from angd.problems import lattice
from angd.problems.observables import estimated, group_means
from angd.problems.statistics import autocorrelation_time
from angd.problems.vmc import (
    MOLECULES,
    AroundNuclei,
    Coulomb,
    Density,
    Dipole,
    Forces,
    GaussianStart,
    Graded,
    GroundState,
    HartreeFock,
    Metropolis,
    Molecule,
    PairDistribution,
    Trap,
    evaluate,
    extrapolate,
)

ION = Molecule.of([("H", (0.0, 0.0, -1.0)), ("H", (0.0, 0.0, 1.0))], units="bohr", charge=1, spin=1)


def bell(params, x):
    """ψ = exp(−a x²/2)."""
    return jnp.ones(()), -params * jnp.sum(x**2) / 2


def near(found, wanted, sigmas=4.0):
    """Is every component within its error bar of what it should be, and the bars not zero?"""
    assert np.all(found.error > 0)
    return np.all(np.abs(found.value - wanted) < sigmas * found.error)


def correlated(a, T, N, seed=0):
    """AR(1): x_{t+1} = a x_t + √(1 − a²) ξ, of variance 1 and memory a; stationary from the start."""
    rng = np.random.default_rng(seed)
    x = np.empty((T, N))
    x[0] = rng.normal(size=N)
    for t in range(1, T):
        x[t] = a * x[t - 1] + np.sqrt(1 - a * a) * rng.normal(size=N)
    return x


def groups_of(series):
    """What `evaluate` keeps of such chains."""
    look = jax.jit(lambda xs: group_means({"x": lambda params, x: x}, None, xs))
    seen = [look(jnp.asarray(row)) for row in series]
    return [np.stack([look["x"][i] for look in seen]) for i in (0, 1)]


@pytest.mark.parametrize("memory", [0.0, 0.8])
def test_error_bars_are_those_of_chains_of_known_memory(memory):
    """The mean of T values of N AR(1) chains has the variance τ/(TN), τ = (1 + a)/(1 − a); 100 walkers make 32 groups
    of unequal size."""
    T, N = 1000, 100
    found = estimated(*groups_of(correlated(memory, T, N)))
    tau = (1 + memory) / (1 - memory)
    assert found.error == pytest.approx(np.sqrt(tau / (T * N)), rel=0.1)
    means = [correlated(memory, 200, 4, seed).mean() for seed in range(400)]
    assert np.std(means) == pytest.approx(np.sqrt(tau / 800), rel=0.15), "the judge's own formula"


def test_each_component_has_its_own_memory():
    both = np.stack([correlated(0.9, 4000, 20), correlated(0.0, 4000, 20, 1)], axis=-1)
    assert autocorrelation_time(both) == pytest.approx([19, 1], rel=0.2)


def test_what_is_not_finite_is_left_out():
    series = correlated(0.0, 50, 40)
    spoilt = np.where(series > 1.5, np.nan, series)
    found = estimated(*groups_of(spoilt))
    assert found.value == pytest.approx(np.nanmean(spoilt))
    assert found.error == pytest.approx(np.nanstd(spoilt) / np.sqrt(np.isfinite(spoilt).sum()), rel=0.1)


def test_the_dipole_of_a_determinant_is_pyscf_s():
    pyscf = pytest.importorskip("pyscf")
    molecule = MOLECULES["LiH"]
    mol = pyscf.gto.M(atom=list(zip(molecule.symbols, molecule.places, strict=True)), unit="bohr", basis="ccpvdz")
    wanted = pyscf.scf.RHF(mol).run(verbose=0).dip_moment(unit="AU", verbose=0)
    chain = Graded(AroundNuclei(molecule), walkers=256, burn_in=200, moves=15)
    problem = GroundState(HartreeFock.of(molecule), lambda x: jnp.zeros(()))
    found = evaluate(problem, None, chain, jax.random.key(0), 40, {"dipole": Dipole(molecule)})
    dipole = found.observables["dipole"]
    assert near(dipole, wanted)
    assert abs(wanted[2]) > 30 * dipole.error[2]


def inside(r):
    """The share of hydrogen's electron within r: ∫ e^{−2r}/π."""
    return 1 - np.exp(-2 * r) * (1 + 2 * r + 2 * r**2)


def test_the_density_of_hydrogen_is_the_exact_one():
    """In shells, along a line, where it is e^{−2|z|}(|z| + ½), and on a plane, which sums up to the line."""
    hydrogen = MOLECULES["H"]
    problem = GroundState(lambda zeta, x: (jnp.ones(()), -zeta * jnp.linalg.norm(x)), Coulomb(hydrogen))
    chain = Metropolis(AroundNuclei(hydrogen), walkers=400, burn_in=100, moves=10, width=0.8)
    z, x = (0.0, 0.0, 1.0), (1.0, 0.0, 0.0)
    cells = {
        "shells": Density(span=((0.0, 4.0),), bins=10),
        "line": Density((z,), ((-3.0, 3.0),), bins=12),
        "plane": Density((z, x), ((-3.0, 3.0), (-30.0, 30.0)), bins=12),
    }
    found = evaluate(problem, jnp.ones(()), chain, jax.random.key(0), 40, cells).observables
    edges = np.linspace(0, 4, 11)
    assert near(found["shells"], np.diff(inside(edges)) / np.diff(4 / 3 * np.pi * edges**3))
    middle = np.asarray(cells["line"].at["z"])
    fine = middle[:, None] + np.linspace(-0.25, 0.25, 201)[None]
    assert near(found["line"], np.mean(np.exp(-2 * abs(fine)) * (abs(fine) + 0.5), axis=1))
    assert np.allclose(found["plane"].value.sum(axis=1) * 5.0, found["line"].value, rtol=1e-5)
    assert list(cells["plane"].at) == ["z", "x"]


def test_the_pair_distribution_of_a_correlated_gaussian_is_the_exact_one():
    """log ψ = −a (x₁² + x₂²)/2 − b u²/2 in the plane: u has the variance 1/(a + 2b) in each direction."""
    a, b = 1.0, 0.7

    def wave(params, x):
        return jnp.ones(()), -a * jnp.sum(x**2) / 2 - b * jnp.sum((x[0] - x[1]) ** 2) / 2

    chain = Metropolis(GaussianStart(2, 2), walkers=400, burn_in=100, moves=10, width=0.7)
    pairs = PairDistribution((0.0, 2.5), 10)
    found = evaluate(GroundState(wave, Trap()), None, chain, jax.random.key(0), 40, {"pair": pairs})
    beyond = np.exp(-(a + 2 * b) * np.linspace(0, 2.5, 11) ** 2 / 2)
    assert near(found.observables["pair"], -np.diff(beyond) / np.diff(np.pi * np.linspace(0, 2.5, 11) ** 2))
    assert pairs(jnp.zeros((1, 3))).tolist() == [0.0] * 10


def lcao(zeta, x):
    """e^{−ζ r_A} + e^{−ζ r_B}."""
    r = jnp.linalg.norm(x - jnp.asarray(ION.places, x.dtype), axis=-1)
    return jnp.ones(()), jax.nn.logsumexp(-zeta * r)


def around_a_nucleus(points=60):
    """Gauss–Legendre points and weights in spheres around the first nucleus of the ion, with the other on a seam."""
    t, w = np.polynomial.legendre.leggauss(points)
    ends = np.array([0.0, 2.0, 6.0, 20.0])
    half, middle = np.diff(ends)[:, None] / 2, (ends[1:, None] + ends[:-1, None]) / 2
    r, dr = (middle + half * t).ravel(), (half * w).ravel()
    x = np.stack([r[:, None] * np.sqrt(1 - t**2), np.zeros((len(r), points)), r[:, None] * t - 1.0], axis=-1)
    return x.reshape(-1, 1, 3), (2 * np.pi * r[:, None] ** 2 * dr[:, None] * w).ravel()


def test_forces_have_the_mean_of_quadrature_and_a_finite_variance():
    """On the nuclei of H₂⁺ in a sum of two exponentials: integrals around a nucleus, where the bare force r⁻² meets a
    volume r²; and on walkers, where the correction takes its infinite variance away."""
    zeta, (x, weights) = jnp.asarray(1.2), around_a_nucleus()
    bare, corrected = Forces(ION), Forces(ION, lcao)
    rho = weights * np.exp(2 * jax.vmap(lcao, (None, 0))(zeta, jnp.asarray(x))[1])
    rho /= rho.sum()
    values = [np.asarray(jax.vmap(f, (None, 0))(zeta, jnp.asarray(x)))[:, 0, 2] for f in (bare, corrected)]
    wanted = rho @ values[0]
    assert rho @ values[1] == pytest.approx(wanted, abs=2e-4)
    variance = rho @ (values[1] - wanted) ** 2
    chain = Metropolis(AroundNuclei(ION), walkers=400, burn_in=100, moves=10, width=1.0)
    found = evaluate(
        GroundState(lcao, Coulomb(ION)), zeta, chain, jax.random.key(0), 40, {"bare": bare, "corrected": corrected}
    )
    force, plain = found.observables["corrected"], found.observables["bare"]
    assert near(force, np.array([[0, 0, wanted], [0, 0, -wanted]]))
    assert np.all(np.abs(plain.value - force.value) < 5 * plain.error)
    assert np.all(force.error < 0.2 * plain.error)
    samples = np.sqrt(variance / found.effective)
    assert 0.5 * samples < force.error[0, 2] < 2 * samples


def test_forces_of_an_exact_atom_vanish_on_every_walker():
    """Zero variance, as its authors call it."""
    hydrogen = MOLECULES["H"]
    exact = Forces(hydrogen, lambda zeta, x: (jnp.ones(()), -zeta * jnp.linalg.norm(x)))
    x = jax.random.normal(jax.random.key(0), (20, 1, 3))
    assert np.allclose(jax.vmap(exact, (None, 0))(jnp.ones(()), x), 0, atol=1e-12)


class Ising:
    """A small chain with a wave function without symmetry."""

    hamiltonian = lattice.TransverseIsing(lattice.ring(6))
    functions = {"bond": lambda x: x[0] * x[1], "all": lambda params, x: x + params["shift"]}  # noqa: RUF012

    @staticmethod
    def amplitude(params, x):
        return 0.3 * (x[0] * x[1] + x[2] * x[3]) + 0.1 * x[0] + 0.0 * params["shift"]

    @classmethod
    def brute(cls, params):
        """Sums over all 64 configurations, in numpy."""
        x = np.array(np.meshgrid(*[[-1, 1]] * 6)).reshape(6, -1).T
        rho = np.exp(2 * (0.3 * (x[:, 0] * x[:, 1] + x[:, 2] * x[:, 3]) + 0.1 * x[:, 0]))
        rho /= rho.sum()
        return rho @ (x[:, 0] * x[:, 1]), rho @ x + params["shift"]


def test_functions_of_configurations_are_measured_by_the_same_code():
    params = {"shift": jnp.asarray(2.0)}
    problem = lattice.LatticeState(Ising.amplitude, Ising.hamiltonian)
    chain = lattice.Flip(Ising.hamiltonian, walkers=200, burn_in=20)
    found = evaluate(problem, params, chain, jax.random.key(0), 40, Ising.functions).observables
    bond, all_sites = Ising.brute(params)
    assert near(found["bond"], bond)
    assert near(found["all"], all_sites)
    states = lattice.Enumerated(lattice.Basis.of(Ising.hamiltonian, lattice.ring(6).translations()))
    functions = {"bond": lambda p, x: x[0] * x[1], "all": Ising.functions["all"]}
    exact = states.means(functions, problem, params)
    assert exact["bond"] == pytest.approx(bond), "the basis has one of each orbit, the sum all"
    assert np.allclose(exact["all"], all_sites)


def test_extrapolation_finds_the_end_of_a_line_with_its_error():
    """E = −3 + 0.4 σ² with known noise: pulls have unit variance; a line that is none is noticed."""
    rng, V = np.random.default_rng(0), np.array([0.1, 0.2, 0.4, 0.7, 1.0])
    pulls, misfits = [], []
    for _ in range(300):
        dE, dV = np.full(5, 1e-3), np.full(5, 2e-3)
        noisy = -3 + 0.4 * V + dE * rng.normal(size=5), V + dV * rng.normal(size=5)
        states = [
            SimpleNamespace(energy=e, error=a, variance=v, variance_error=b)
            for e, v, a, b in zip(*noisy, dE, dV, strict=True)
        ]
        found = extrapolate(states)
        pulls.append((found.energy + 3) / found.error)
        misfits.append(found.misfit)
    assert np.std(pulls) == pytest.approx(0.9, abs=0.15), "bars grow where misfit is above 1, and never shrink"
    assert abs(np.mean(pulls)) < 0.2
    assert np.mean(np.square(misfits)) == pytest.approx(1, abs=0.15)
    bent = [SimpleNamespace(energy=v**2, error=1e-3, variance=v, variance_error=0.0) for v in V]
    assert extrapolate(bent).misfit > 20
    with pytest.raises(ValueError, match="two states of different variance"):
        extrapolate(bent[:1])


def oscillator(a):
    """E and σ² of exp(−a x²/2) in x²/2."""
    return (a + 1 / a) / 4, (1 - a**2) ** 2 / (8 * a**2)


def test_states_of_an_oscillator_lead_to_its_ground_state():
    problem, chain = GroundState(bell, Trap()), Metropolis(GaussianStart(1, 1), walkers=300, burn_in=50, moves=10)
    look = [evaluate(problem, jnp.asarray(a), chain, jax.random.key(i), 30) for i, a in enumerate((1.1, 1.25, 1.4))]
    for a, found in zip((1.1, 1.25, 1.4), look, strict=True):
        energy, variance = oscillator(a)
        assert abs(found.energy - energy) < 4 * found.error
        assert abs(found.variance - variance) < 4 * found.variance_error
    found = extrapolate(look)
    assert abs(found.energy - 0.5) < 4 * found.error
    exact = [
        SimpleNamespace(energy=oscillator(a)[0], error=1e-6, variance=oscillator(a)[1], variance_error=0.0)
        for a in (1.05, 1.1)
    ]
    end = extrapolate(exact)
    assert abs(end.energy - 0.5) < 0.02 * (exact[0].energy - 0.5)
    assert end.slope == pytest.approx(0.5, rel=0.01)


MISTAKES = [
    ({"f": 3.0}, "must be a function of one walker"),
    ({"f": Dipole}, "must be a function of one walker"),
    ({"f": lambda a, b, c: a}, "takes 3 arguments"),
    ({"f": lambda x: x.no}, r"'f' fails at one walker of shape \(1, 1\): AttributeError"),
    ({"f": lambda x: (x, x)}, "must give a number or an array, got tuple"),
    ([len], "must be a dictionary"),
]


@pytest.mark.parametrize(("observables", "words"), MISTAKES)
def test_what_is_no_observable_is_refused_before_any_walker_moves(observables, words):
    def never(key, walkers):
        jax.debug.callback(lambda: pytest.fail("a walker was placed"))
        return jnp.zeros((walkers, 1, 1))

    chain = Metropolis(never, walkers=8, burn_in=2, moves=2)
    with pytest.raises(ValueError, match=words):
        evaluate(GroundState(bell, Trap()), jnp.ones(()), chain, jax.random.key(0), 4, observables)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Density(((1.0, 1.0, 0.0),), ((0.0, 1.0),)), "orthonormal"),
        (lambda: Density(((1.0, 0.0, 0.0),), ((0.0, 1.0), (0.0, 1.0))), "a span for each"),
        (lambda: Density(span=((-1.0, 1.0),)), "begins at 0"),
        (lambda: Density(bins=0), "bins must be a whole number"),
        (lambda: PairDistribution((2.0, 1.0)), "rising order"),
        (lambda: Dipole.of(GroundState(bell, Trap())), "dipole is measured of molecules"),
    ],
)
def test_cells_that_cannot_be_are_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_the_usual_density_suits_the_molecule():
    """An atom has shells; LiH the plane z, x; water, which lies in y and z, that plane."""
    water = Molecule.of([("O", (0, 0, 0.2)), ("H", (0, 1.4, -0.9)), ("H", (0, -1.4, -0.9))], units="bohr")

    def usual(molecule):
        return Density.of(SimpleNamespace(log_psi=SimpleNamespace(molecule=molecule)))

    assert list(usual(MOLECULES["Be"]).at) == ["r"]
    assert list(usual(MOLECULES["LiH"]).at) == ["z", "x"]
    assert sorted(usual(water).at) == ["y", "z"]
