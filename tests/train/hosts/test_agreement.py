"""Processes agree on the clock of the first, on signals of any, and on when they agree next."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import angd
from angd.train.hosts.agreement import Agreement
from angd.train.hosts.peers import Alone, is_gone, peers_of
from angd.train.hosts.placement import beside, copied, divided

PHASE = (0, 0)


class Seat(Alone):
    """One of two processes that take turns in one: the second is told what both have said."""

    count = 2

    def __init__(self, number, table):
        self.number, self.table = number, table

    def shared(self, numbers):
        row = np.asarray(numbers, float)
        if self.number == 0:
            self.table.first = row
            row = np.array([0.0, 0.0, 0.0, self.table.signal]) if len(row) == 4 else np.zeros(1)
        return np.stack([self.table.first, row])


class Table:
    """Where the two sit: what was said last, the second one's signal, and what each has heard."""

    def __init__(self):
        self.signal, self.heard = 0, [[], []]

    def of(self, number):
        own = self.heard[number].append
        return Agreement(Seat(number, self), lambda: self.signal if number else 0, own)


def test_all_hold_what_the_first_has_measured_and_agree_at_the_same_steps():
    table = Table()
    first, second = table.of(0), table.of(1)
    spent, seen = 3.0, []
    for k in range(200):
        spent += 0.01
        one, two = first((spent, 2 * spent), PHASE), second((spent / 7 + k, 0.0), PHASE)
        assert tuple(one) == tuple(two)
        assert abs(one[0] - spent) < 1e-9, "steps of one length: the pace says when"
        seen.append(first.steps)
    assert 15 < seen.count(0) < 30, "about ten times a second"


def test_a_signal_to_the_second_is_heard_by_both_at_one_step():
    table = Table()
    first, second = table.of(0), table.of(1)
    when = []
    for k in range(60):
        table.signal = 15 if k > 30 else 0
        first((0.01 * k, 0.0), PHASE)
        second((0.01 * k, 0.0), PHASE)
        when.append([len(heard) for heard in table.heard])
    assert all(a == b for a, b in when)
    assert table.heard[0][0] == table.heard[1][0] == 15
    assert when[30] == [0, 0]
    assert when[45] != [0, 0]


def test_a_new_phase_is_agreed_on_at_once():
    table = Table()
    first = table.of(0)
    for k in range(50):
        first((1e-4 * k, 0.0), PHASE)
    assert first((70.0, 80.0), (1, 0)) == (70.0, 80.0)


def test_one_process_measures_for_itself():
    agreement = Agreement(Alone(), lambda: 15, lambda number: pytest.fail("nobody else is there"))
    assert agreement((1.5, 2.5), PHASE) == (1.5, 2.5)
    assert type(peers_of(None)) is type(peers_of(angd.parallel.mesh())) is Alone


def test_whole_arrays_are_put_on_all_devices():
    mesh = angd.parallel.mesh()
    tree = {"x": jnp.arange(6.0).reshape(6, 1), "odd": jnp.arange(3.0), "key": jax.random.key(3), "one": 2.0}
    for place in (copied, divided):
        placed = place(tree, mesh)
        assert placed["x"].sharding.mesh is mesh
        assert np.array_equal(placed["x"], tree["x"])
        assert np.array_equal(placed["odd"], tree["odd"])
        assert placed["odd"].sharding.is_fully_replicated
        assert np.array_equal(jax.random.key_data(placed["key"]), jax.random.key_data(tree["key"]))
    assert divided(tree, mesh)["x"].sharding.shard_shape((6, 1)) == (3, 1)
    state = beside(copied(tree["x"], mesh), {"count": jnp.zeros((), int)})
    assert state["count"].sharding.mesh is mesh
    assert beside(tree["x"], state) is state


def test_an_error_of_a_transport_is_told_from_others():
    assert is_gone(jax.errors.JaxRuntimeError("UNKNOWN: Gloo all-reduce failed: Connection reset by peer"))
    assert not is_gone(jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory"))
    assert not is_gone(ValueError("Connection"))
    wrapped = OSError(5, "The checkpoint could not be written")
    wrapped.__cause__ = jax.errors.JaxRuntimeError("UNKNOWN: Gloo AllGather failed: Connection closed by peer")
    assert is_gone(wrapped)
