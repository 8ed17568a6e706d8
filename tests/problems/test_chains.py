"""The exam of Markov chains: every one samples the hydrogen atom, and moves its walkers without being traced again."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from angd.problems.vmc import MOLECULES, AroundNuclei, Coulomb, Graded, GroundState, Langevin, Metropolis, sampling

START = AroundNuclei(MOLECULES["H"])
CHAINS = {
    "Metropolis": Metropolis(START, walkers=1500, burn_in=200, moves=20),
    "one at a time": Metropolis(START, walkers=1500, burn_in=200, moves=20, one=True),
    "Langevin": Langevin(START, walkers=1500, burn_in=200, moves=20),
    "Graded": Graded(START, walkers=1500, burn_in=200, moves=20),
}


def orbital(zeta, x):
    return jnp.ones(()), -zeta * jnp.linalg.norm(x[0])


@pytest.mark.parametrize("name", CHAINS)
def test_every_chain_samples_the_hydrogen_atom(name):
    """|ψ|² = exp(−2r): E[r] = 3/2 and E[r²] = 3."""
    chain, traces = CHAINS[name], []

    def counted(zeta, x):
        traces.append(x)
        return orbital(zeta, x)

    problem, zeta = GroundState(counted, Coulomb(MOLECULES["H"])), jnp.ones(())
    walkers = eqx.filter_jit(chain)(jax.random.key(0), problem, zeta)
    move = eqx.filter_jit(chain.move)
    walkers = move(jax.random.key(1), problem, zeta, walkers)
    once = len(traces)
    walkers = move(jax.random.key(2), problem, zeta, walkers)
    assert len(traces) == once, "the second move was traced again"
    r = np.linalg.norm(walkers.x[:, 0], axis=-1)
    assert np.isclose(r.mean(), 1.5, rtol=0.06)
    assert np.isclose((r**2).mean(), 3.0, rtol=0.12)
    assert abs(walkers.acceptance - chain.target) < 0.1
    assert int(walkers.respawned) == 0


def test_walkers_move_alike_however_many_at_a_time(monkeypatch):
    """Chunks of a size that does not divide the walkers, against all at once."""
    problem, zeta = GroundState(orbital, Coulomb(MOLECULES["H"])), jnp.ones(())
    chain, found = Graded(START, walkers=37, moves=5, burn_in=5), []
    for size in (37, 8):
        monkeypatch.setattr(sampling, "CHUNK", size)
        found.append(jax.jit(lambda key: chain(key, problem, zeta))(jax.random.key(0)))
    assert np.allclose(found[0].x, found[1].x, atol=1e-12)
    assert np.isclose(found[0].width, found[1].width)
    assert np.isclose(found[0].acceptance, found[1].acceptance)


def test_every_chain_sits_the_exam():
    """Whoever adds a chain adds it to CHAINS."""
    known = {cls.__name__ for cls in sampling.AbstractChain.__subclasses__() if cls.__module__.startswith("angd.")}
    missing = known - {type(chain).__name__ for chain in CHAINS.values()}
    assert not missing, f"add {sorted(missing)} to CHAINS of {__file__}"
