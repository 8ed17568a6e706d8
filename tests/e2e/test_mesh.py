"""Training on a mesh: nothing depends on the number of devices, and no device ever sees all rows."""

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
import on_a_mesh
import pytest
from on_a_mesh import CHAIN, POINTS, SMALL, distance, ground_state, method, trained

import angd
from angd.method.jacobian import Chunked, Dense, Factored, MatrixFree, build
from angd.problems.pinn import Adaptive, Balanced, Network, Renewed, Rolling, Sobol, Uniform
from angd.problems.pinn.heat import heat
from angd.recipes.named import named
from angd.recipes.pinn import GaussNewton
from angd.train.communication import messages
from angd.train.fit import _setup, _task
from angd.train.loop import TrainState, call_of

FORMS = (Dense, Factored, Chunked, MatrixFree)
CLOSE = 1e-10
slow = pytest.mark.slow


def two():
    return angd.parallel.mesh(jax.devices()[:2])


def check(problem, method, **more):
    """Alone and on two devices: the same parameters."""
    alone, shared = (trained(mesh, problem, method, **more) for mesh in (None, two()))
    assert all(len(leaf.sharding.device_set) == 2 for leaf in jax.tree.leaves(shared.params))
    assert all(leaf.sharding.is_fully_replicated for leaf in jax.tree.leaves(shared.params))
    assert distance(alone.params, shared.params) < CLOSE
    assert distance(alone.params, alone.task.start(jax.random.key(0))) > 1e-3


def some(*quick):
    """Some cases in `make test`, the others in `make test-slow`; None is the form that shapes choose."""
    kinds = ("energy", "l2", "fisher-rao", "wasserstein")
    cases = [(metric, form) for metric in kinds for form in (None, *FORMS)]
    return [pytest.param(*case, marks=[] if case in quick else slow) for case in cases]


@pytest.mark.parametrize(("metric", "form"), some(("wasserstein", None)))
def test_two_devices_give_the_parameters_of_one(metric, form, monkeypatch):
    """Dense, factored, chunked (rows, energies and moves of the chain) and matrix-free."""
    monkeypatch.setattr(build, "ROWS", 8)
    if metric in ("energy", "l2"):
        check(SMALL, method(metric, form), samples=POINTS)
        return
    monkeypatch.setattr("angd.problems.vmc.sampling.CHUNK", 7 if form is Chunked else 64)
    problem, params = ground_state(5 if form is Chunked else None)
    check(problem, method(metric, form), samples=CHAIN, params=params)


@slow
@pytest.mark.parametrize("recipe", ["energy", "angd-l2", "adam", "ssbroyden", "angd-fr", "angd-w2", "angd-w2-kfac"])
def test_named_recipes_do_not_know_how_many_devices_there_are(recipe):
    if recipe in ("energy", "angd-l2", "adam", "ssbroyden"):
        check("heat", recipe)
        return
    problem, params = ground_state(None)
    options = {"walkers": 36, "moves": 2, "burn_in": 5, "measurements": 4}
    found = named(recipe).recipe.changed(options)
    check(problem, found, samples=CHAIN, params=params)


@slow
@pytest.mark.parametrize("kind", ["adaptive", "renewed", "rolling", "balanced", "sobol"])
def test_points_belong_to_no_device(kind):
    """Seven points of one term: what the devices do not divide is on each of them."""
    counts: dict[str, Any] = {"interior": 90, "initial": 20, "walls": 7}
    few: dict[str, Any] = {"interior": 9, "initial": 2, "walls": 2}
    samplers = {
        "adaptive": lambda: Adaptive(**counts),
        "renewed": lambda: Renewed(Uniform(**counts), 5),
        "rolling": lambda: Rolling(Adaptive(**counts), Uniform(**few)),
        "balanced": lambda: Balanced(Uniform(**counts)),
        "sobol": lambda: Sobol(**counts),
    }
    check(SMALL, method("energy", None), samples=samplers[kind]())


@slow
def test_molecules_are_pretrained_and_trained_alike_on_a_mesh():
    """In single precision: rounding is all that differs."""
    options = {"walkers": 32, "moves": 2, "burn_in": 5, "pretrain": 4, "measurements": 4}
    recipe = named("angd-fr").recipe.changed(options)
    alone, shared = (angd.fit("vmc-he", recipe, steps=8, mesh=mesh, progress=False) for mesh in (None, two()))
    assert distance(alone.params, shared.params) < 1e-3
    assert np.allclose(alone.history["loss"], shared.history["loss"], rtol=1e-3)


@pytest.mark.slow
def test_a_mesh_may_have_any_axes():
    """What `jax.make_mesh` makes is a row of devices to us."""
    square = jax.make_mesh((2, 1), ("data", "model"))
    fit = angd.fit(SMALL, GaussNewton(interior=20, condition=4, single_steps=0), steps=1, mesh=square, progress=False)
    assert all(len(leaf.sharding.device_set) == 2 for leaf in jax.tree.leaves(fit.params))


@pytest.mark.parametrize("metric", ["energy", pytest.param("l2", marks=slow), "fisher-rao"])
def test_a_step_sends_a_matrix_of_the_system_and_no_rows(metric):
    """What arrives on a device: one matrix, half of the rows for columns in a kernel, and nothing else as large."""
    problem, params = (heat(Network((16,))), None) if metric != "fisher-rao" else ground_state(5, width=20)
    task = _task(problem, POINTS if params is None else CHAIN, params)
    setup = _setup(task, method(metric, Dense), 0).over(two())
    step, arguments = call_of(setup.problem, setup.phases, TrainState(setup.params), setup.key)
    sent = messages(step.ahead(*arguments).as_text())
    p = sum(leaf.size for leaf in jax.tree.leaves(setup.params))
    n = sum(POINTS.counts.values()) if params is None else CHAIN.walkers
    large = [message for message in sent if np.prod(message.shape) > 8 * n]
    kinds = {message.kind for message in large}
    if metric == "fisher-rao":
        assert kinds <= {"all-to-all", "all-reduce", "all-gather"}
        assert sum(m.bytes for m in large if m.kind == "all-to-all") <= 8 * n * (p + 2) / 2
        assert all(m.shape == (n, n) for m in large if m.kind != "all-to-all")
    else:
        assert [(m.kind, m.shape) for m in large] == [("all-reduce", (p, p))]


@slow
def test_two_processes_of_two_devices_give_the_parameters_of_one_device():
    """On the loopback, by `jax.distributed`; bounded in time."""
    expected = on_a_mesh.digest(None)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    flags = "--xla_force_host_platform_device_count=2"
    members = [
        subprocess.Popen(
            [sys.executable, on_a_mesh.__file__, address, str(i)],
            env=os.environ | {"XLA_FLAGS": flags, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=Path(__file__).parent,
        )
        for i in range(2)
    ]
    try:
        said = [member.communicate(timeout=600)[0] for member in members]
    finally:
        for member in members:
            member.kill()
    assert all(member.returncode == 0 for member in members), "\n".join(said)
    for text in said:
        found = np.array([float.fromhex(word) for word in text.splitlines()[-1].split()])
        assert np.max(np.abs(found - expected)) < CLOSE
