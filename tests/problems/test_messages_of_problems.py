"""What problems say to those who describe them wrongly: one sentence, before any work."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import pytest

import angd
from angd.problems.pinn import Network
from angd.problems.vmc import GaussianStart, GroundState, Metropolis, Trap

KEY = jax.random.key(0)
OPTIMISER = angd.ANGD(angd.ARGFlow(h=0.1), angd.FisherRao(), angd.Kernel())

UNTYPED = """
from angd.problems.pinn import Box, Network, Problem

class Untrained:
    pass

box, network = Box((0, 1)), Network((3,))
def equation(u, z): return u(z)
for make in (
    lambda: Problem(Untrained(), box, equation, {}),
    lambda: Problem(Network, box, equation, {}),
    lambda: Problem(network, "unit square", equation, {}),
    lambda: Problem(network, box, equation, []),
    lambda: Problem(network, box, equation, None),
    lambda: Problem(network, box, equation, {"wall": equation}),
    lambda: Network((3, "4")),
):
    try:
        make()
    except ValueError as refusal:
        print(refusal)
"""


def test_a_pinn_of_things_of_the_wrong_kind_is_refused_by_name():
    """In a process of its own, without the type checks that the tests switch on."""
    said = subprocess.run([sys.executable, "-c", UNTYPED], capture_output=True, text=True, check=True).stdout
    module, kind, domain, a_list, nothing, values, widths = said.splitlines()
    assert "which Untrained does not: use Network((20, 20))" in module
    assert "which Network does not" in kind
    assert domain == "Problem: the domain must be a Box, `Box((0, 1), (-1, 1))`, got 'unit square'."
    assert a_list.endswith("a dictionary from names to Condition, {} for none, got list.")
    assert nothing.endswith("got NoneType.")
    assert values.endswith("got other values.")
    assert widths == "Network: widths must be positive whole numbers, (20, 20), got (3, '4')."


def test_one_width_is_a_network_of_one_layer():
    assert Network(20) == Network((20,))


LIGHT = "import sys, angd.problems.pinn; print('jax' in sys.modules, 'scipy.stats' in sys.modules)"


def test_pinns_do_not_import_the_statistics_of_scipy():
    """It costs as much as importing JAX, and only `Sobol` needs it."""
    said = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True, check=True).stdout
    assert said.split() == ["True", "False"]


def gaussian(params, x):
    return jnp.ones(()), -params["a"] * jnp.sum(x**2)


MISUSES = {
    "log|ψ| alone": (lambda p, x: gaussian(p, x)[1], Trap(), r"a pair of numbers \(sign, log\|ψ\|\).*shape \(\)"),
    "log|ψ| of every particle": (
        lambda p, x: (jnp.ones(()), -p["a"] * x[:, 0] ** 2),
        Trap(),
        r"a pair of numbers .*shape \(\(\), \(2,\)\)",
    ),
    "an array as potential": (
        gaussian,
        lambda x: x[:, 0] ** 2,
        r"The potential must return one number at x of shape \(2, 1\), got an array of shape \(2,\)",
    ),
}


@pytest.mark.parametrize("misuse", MISUSES)
def test_a_ground_state_that_is_described_wrongly_is_one_sentence(misuse):
    log_psi, potential, words = MISUSES[misuse]
    problem, params = GroundState(log_psi, potential), {"a": jnp.ones(())}
    with pytest.raises(ValueError, match=words) as refusal:
        OPTIMISER.init(problem, params, angd.Samples(jnp.ones((4, 2, 1))))
    assert "\n" not in str(refusal.value)


def test_walkers_are_not_drawn_from_half_a_wave_function():
    chain = Metropolis(GaussianStart(2, 1), walkers=4, burn_in=1, moves=1)
    with pytest.raises(ValueError, match="a pair of numbers"):
        chain(KEY, GroundState(lambda p, x: gaussian(p, x)[1], Trap()), {"a": jnp.ones(())})
