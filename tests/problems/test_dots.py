"""Quantum dots: exact states of the trap, exact cusps, and a network that is antisymmetric."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from angd.problems.library import TASKS
from angd.problems.vmc import DotNet, GroundState, Trap, quantum_dot
from angd.problems.vmc.dots import lowest_degrees, oscillator
from angd.problems.vmc.problem import kinetic_energy_by_loop

SMALL = {"hidden": ((5, 3), (5, 3)), "determinants": 2}


@pytest.mark.parametrize(("d", "omega", "slope", "energy"), [(2, 1.0, 1.0, 3.0), (3, 0.5, 0.5, 2.0)])
def test_the_reference_energies_of_two_electrons_are_exact(d, omega, slope, energy):
    """(1 + c r) exp(−ω Σ x²/2) is the ground state at these frequencies (Taut 1993, 1994)."""

    def exact(_, x):
        r = jnp.linalg.norm(x[0] - x[1])
        return jnp.ones(()), jnp.log1p(slope * r) - omega * jnp.sum(x**2) / 2

    xs = jax.random.normal(jax.random.key(0), (6, 2, d))
    found = GroundState(exact, Trap(omega, 1.0)).local_energies(None, xs)
    assert np.allclose(found, energy, atol=1e-9)
    assert TASKS[f"dot-{d}d"]().energy == energy


@pytest.mark.parametrize(("d", "count", "energy"), [(1, 4, 8.0), (2, 3, 5.0), (2, 6, 14.0), (3, 4, 9.0)])
def test_filled_shells_of_the_oscillator_have_its_energies(d, count, energy):
    def determinant(_, x):
        sign, log = jnp.linalg.slogdet(oscillator(x, count))
        return sign, log - jnp.sum(x**2) / 2

    xs = jax.random.normal(jax.random.key(0), (3, count, d))
    found = jax.vmap(lambda x: kinetic_energy_by_loop(lambda y: determinant(None, y)[1], x) + Trap()(x))(xs)
    assert np.allclose(found, energy, rtol=1e-6)
    assert sum(sum(state) + d / 2 for state in lowest_degrees(d, count)) == energy


@pytest.mark.slow
def test_the_network_is_antisymmetric_and_its_local_energies_are_the_loop_s():
    net = DotNet((2, 1), 2, 0.5, **SMALL)
    params, x = net.init(jax.random.key(0)), jax.random.normal(jax.random.key(1), (3, 2))
    params["jastrow"] = params["jastrow"] + 0.1
    problem = GroundState(net, Trap(0.5, 1.0, (2, 1)))
    problem.check_start(params, x)
    (sign, log), (other, same) = net(params, x), net(params, x[jnp.array([1, 0, 2])])
    assert (other, np.isclose(log, same)) == (-sign, True)
    loop = kinetic_energy_by_loop(lambda y: net(params, y)[1], x) + problem.potential(x)
    assert np.isclose(problem.variation(params, x), loop, rtol=1e-9)


@pytest.mark.parametrize(("d", "i", "j", "wanted"), [(2, 0, 2, 1.0), (3, 0, 2, 0.5), (2, 0, 1, 1 / 3), (3, 0, 1, 0.25)])
def test_cusps_are_exact(d, i, j, wanted):
    """∂ log|ψ|/∂r → 1/(d − 1), and 1/(d + 1) beside what makes ψ vanish, here r itself."""
    net = DotNet((2, 2), d, **SMALL)
    params, x = net.init(jax.random.key(0)), jax.random.normal(jax.random.key(1), (4, d))

    def at(r):
        y = x.at[j].set(x[i]).at[:, 0].add(jnp.zeros(4).at[i].set(-r / 2).at[j].set(r / 2))
        return net(params, y)[1] - (jnp.log(jnp.abs(r)) if wanted < 1 / (d - 1) else 0.0)

    slope = jax.jit(jax.grad(at))
    assert np.isclose(0.5 * (slope(1e-5) - slope(-1e-5)), wanted, atol=1e-3)


def test_what_cannot_be_is_refused():
    for make, words in (
        (lambda: DotNet((0, 0)), "it takes electrons"),
        (lambda: DotNet((1, 1), omega=0.0), "omega > 0"),
        (lambda: DotNet((1, 1), determinants=0), "must be positive"),
        (lambda: quantum_dot((1, 1), 1), "dimension must be 2 or 3"),
    ):
        with pytest.raises(ValueError, match=words):
            make()
