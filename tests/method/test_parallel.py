"""What each of several hosts does to its own samples, without several hosts."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec

import angd
from angd import Samples, parallel


@pytest.mark.parametrize("named", [False, True], ids=["one batch", "one for each term"])
def test_weights_of_all_hosts_add_up_to_those_of_one(named, monkeypatch):
    """Three hosts hold a third of the samples each; together they are what one host would hold."""
    omega = np.random.default_rng(0).uniform(1, 2, size=(3, 4))
    hosts = SimpleNamespace(devices=np.array([SimpleNamespace(process_index=i) for i in range(3)]), size=3)
    monkeypatch.setattr(parallel, "mesh", lambda: hosts)
    monkeypatch.setattr(parallel, "NamedSharding", lambda mesh, spec: spec)
    monkeypatch.setattr(jax, "make_array_from_process_local_data", lambda sharding, leaf: (sharding, leaf))

    def on_host(i):
        samples = Samples(jnp.arange(4.0) + 10 * i, omega[i] / omega[i].sum())
        mine, width = angd.split(({"a": samples} if named else samples, jnp.asarray(0.5)))
        mine = mine["a"] if named else mine
        assert width[1] == 0.5, "what is no weight stays as it is"
        assert np.array_equal(mine.x[1], np.arange(4.0) + 10 * i)
        assert all(leaf[0] == PartitionSpec(parallel.AXIS) for leaf in (mine.x, mine.omega))
        return mine.omega[1]

    together = np.concatenate([on_host(i) for i in range(3)])
    assert np.allclose(together, (omega / omega.sum(axis=1, keepdims=True)).ravel() / 3)
    assert np.isclose(together.sum(), 1)
