"""What a process says when it leaves others: who is gone, as far as JAX's pages of C++ tell."""

import socket

import pytest

from angd.program import hosts
from angd.program.machines import Machines
from angd.train.hosts.cluster import Cluster

SAID = """client.h:80] Terminating process because the JAX distributed service detected fatal errors. This most likely
indicates that another task died. UNAVAILABLE: The following tasks are unhealthy (stopped sending heartbeats):
{}
The tasks have crashed. Check the task logs for an earlier error, or scheduler events to debug further.

RPC: /xla.coordination.CoordinationService/PollForError
"""


def joined(processes=4, process=3):
    made = hosts._Joined(Cluster("node1:6543", processes, process), 0)
    made.met, made.hint = True, "go on with: angd run --resume out"
    return made


@pytest.mark.parametrize("words", ["2", "/job:jax_worker/replica:0/task:2"])
def test_the_process_that_is_gone_is_named_where_jax_knows_it(words):
    expected = "process 2 is gone or out of reach; go on with: angd run --resume out"
    assert hosts._sentence(joined(), SAID.format(words)) == expected
    assert hosts._sentence(joined()).startswith("another process is gone or out of reach; go on")
    assert hosts._sentence(joined(2, 0)).startswith("process 1 is gone")


def test_processes_that_never_came_are_told_from_those_that_went():
    made = joined()
    made.met = False
    expected = "the processes did not find each other at node1:6543 in 300 s; start all of them again."
    assert hosts._sentence(made) == expected


def test_a_port_that_is_taken_is_refused_before_jax_would_crash():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        place = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(ValueError, match=r"is taken here .*; choose another"):
            hosts.enter(Machines(cluster=Cluster(place, 2, 0)))
    assert not hosts.is_joined()


def test_a_process_alone_just_ends():
    assert hosts.leave(3) == 3
    assert hosts.watchdog(Machines(), "") is None
    assert hosts.watchdog(Machines(watchdog=60.0), "") is not None
    assert not hosts.is_lost(RuntimeError("Gloo"))
