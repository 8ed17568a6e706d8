"""Training on a mesh: nothing depends on the number of devices, and no device ever sees all rows."""

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import angd
from angd import recipes
from angd.method.jacobian import AbstractJacobian, Chunked, Dense, Factored, MatrixFree, build
from angd.problems.pinn import Adaptive, Network, Renewed, Rolling, Uniform
from angd.problems.pinn.heat import heat
from angd.problems.vmc import Clipping, GaussianStart, GroundState, Metropolis, Trap
from angd.recipes.named import named

FORMS = (Dense, Factored, Chunked, MatrixFree)
STEPS, CLOSE = 20, 1e-10


class Formed(angd.method.solvers.AbstractSolver):
    """A solver that wants the Jacobian in a form."""

    inner: angd.method.solvers.AbstractSolver
    kind: type[AbstractJacobian] | None = eqx.field(static=True)

    @property
    def damping(self):
        return self.inner.damping

    @property
    def form(self):
        return self.kind

    @property
    def needs_rows(self):
        return self.inner.needs_rows

    def prepare(self, *arguments):
        return self.inner.prepare(*arguments)

    def solve(self, *arguments):
        return self.inner.solve(*arguments)


class Wave(eqx.Module):
    """Two particles in a trap, nearly bound by a network."""

    def __call__(self, params, x):
        hidden = jnp.tanh(x.reshape(-1) @ params["W"] + params["b"])
        return jnp.ones(()), -jnp.exp(params["a"]) * jnp.sum(x**2) + hidden @ params["v"]


def wave():
    keys = jax.random.split(jax.random.key(7), 3)
    W, v = 0.5 * jax.random.normal(keys[0], (4, 5)), 0.1 * jax.random.normal(keys[1], (5,))
    return {"a": jnp.asarray(-1.0), "W": W, "b": jax.random.normal(keys[2], (5,)), "v": v}


def ground_state(chunk: int | None) -> tuple[GroundState, Any]:
    return GroundState(Wave(), Trap(), Clipping(2.0), chunk=chunk), wave()


CHAIN = Metropolis(GaussianStart(2, 2), walkers=36, moves=2, burn_in=5)
POINTS = Uniform(interior=96, initial=24, walls=21)
FLOW = angd.ARGFlow.momentum(0.5, 0.05)
SMALL = heat(Network((6, 6)))


def trained(mesh, problem, method, **more):
    fit = angd.fit(problem, method, steps=STEPS, mesh=mesh, progress=False, **more)
    assert np.sum(fit.history["accepted"]) > STEPS / 2
    return fit


def two():
    return angd.parallel.mesh(jax.devices()[:2])


def check(problem, method, **more):
    """Alone and on two devices: the same parameters."""
    alone, shared = (trained(mesh, problem, method, **more) for mesh in (None, two()))
    assert all(len(leaf.sharding.device_set) == 2 for leaf in jax.tree.leaves(shared.params))
    assert all(leaf.sharding.is_fully_replicated for leaf in jax.tree.leaves(shared.params))
    assert distance(alone.params, shared.params) < CLOSE
    assert distance(alone.params, alone.task.start(jax.random.key(0))) > 1e-3
    return shared


def distance(a, b):
    return max(float(jnp.max(jnp.abs(np.asarray(x) - np.asarray(y)))) for x, y in zip(*map(jax.tree.leaves, (a, b))))


def few(*quick):
    """Some cases in `make test`, the others in `make test-slow`."""
    kinds = ("energy", "l2", "fisher-rao", "wasserstein")
    cases = [(metric, form) for metric in kinds for form in (None, *FORMS)]
    return [pytest.param(*case, marks=[] if case in quick else pytest.mark.slow) for case in cases]


def method(metric: str, form: Any) -> Any:
    kernel = metric == "fisher-rao" and form is not MatrixFree
    inner = angd.Kernel(1e-3) if kernel else angd.Iterative(1e-2, 1e-12) if form is MatrixFree else angd.Normal(1e-2)
    spaces = {"energy": angd.Energy, "l2": angd.L2, "fisher-rao": angd.FisherRao, "wasserstein": angd.Wasserstein}
    controls = {"energy": angd.LevenbergMarquardt(floor=1e-3), "l2": angd.LineSearch()}
    return angd.ANGD(FLOW, spaces[metric](), Formed(inner, form), controls.get(metric, angd.StepNorm(0.05)))


@pytest.mark.parametrize(("metric", "form"), few(("energy", Dense), ("wasserstein", Chunked)))
def test_two_devices_give_the_parameters_of_one(metric, form, monkeypatch):
    """Dense, factored, chunked (rows, energies and moves) and matrix-free; None is what shapes choose."""
    monkeypatch.setattr(build, "ROWS", 8)
    chunk = 5 if form is Chunked else None
    if metric in ("energy", "l2"):
        check(SMALL, method(metric, form), samples=POINTS)
        return
    monkeypatch.setattr("angd.problems.vmc.sampling.CHUNK", 7 if form is Chunked else 64)
    problem, params = ground_state(chunk)
    check(problem, method(metric, form), samples=CHAIN, params=params)
