"""Small problems that are trained alone, on several devices, and by several processes, which run this file."""

import os
import sys
from typing import Any

import jax

if __name__ == "__main__":
    os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=2")
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(sys.argv[1], 2, int(sys.argv[2]))

import equinox as eqx
import jax.numpy as jnp
import numpy as np

import angd
from angd.method.jacobian import AbstractJacobian, Dense, MatrixFree
from angd.method.solvers import AbstractSolver
from angd.problems.pinn import Network, Uniform
from angd.problems.pinn.heat import heat
from angd.problems.vmc import Clipping, GaussianStart, GroundState, Metropolis, Trap

STEPS = 20


class Formed(AbstractSolver):
    """A solver that wants the Jacobian in a form."""

    inner: AbstractSolver
    kind: type[AbstractJacobian] | None = eqx.field(static=True)

    def __init__(self, inner: AbstractSolver, kind: type[AbstractJacobian] | None):
        self.inner, self.kind = inner, kind

    @property
    def damping(self) -> Any:
        return self.inner.damping

    @property
    def form(self) -> type[AbstractJacobian] | None:
        return self.kind

    @property
    def needs_rows(self) -> bool:
        return self.inner.needs_rows

    def prepare(self, system: Any, state: Any, damping: Any, many: bool = False) -> Any:
        return self.inner.prepare(system, state, damping, many)

    def solve(self, prepared: Any, damping: Any, system: Any, c: Any) -> Any:
        return self.inner.solve(prepared, damping, system, c)


class Wave(eqx.Module):
    """Two particles in a trap, nearly bound by a network."""

    def __call__(self, params: Any, x: Any) -> Any:
        hidden = jnp.tanh(x.reshape(-1) @ params["W"] + params["b"])
        return jnp.ones(()), -jnp.exp(params["a"]) * jnp.sum(x**2) + hidden @ params["v"]


def ground_state(chunk: int | None, width: int = 5) -> tuple[GroundState, Any]:
    """A problem and its first parameters, local energies in chunks or all at once."""
    keys = jax.random.split(jax.random.key(7), 3)
    W, v = 0.5 * jax.random.normal(keys[0], (4, width)), 0.1 * jax.random.normal(keys[1], (width,))
    params = {"a": jnp.asarray(-1.0), "W": W, "b": jax.random.normal(keys[2], (width,)), "v": v}
    return GroundState(Wave(), Trap(), Clipping(2.0), chunk=chunk), params


CHAIN = Metropolis(GaussianStart(2, 2), walkers=36, moves=2, burn_in=5)
POINTS = Uniform(interior=96, initial=24, walls=21)  # the last are not divided by two
SMALL = heat(Network((5,)))


def method(metric: str, form: type[AbstractJacobian] | None) -> Any:
    """With momentum, and so much damping that rounding is not amplified."""
    flow = angd.ARGFlow.momentum(0.5, 0.05)
    rows = metric == "fisher-rao" and form is not MatrixFree
    inner = angd.Kernel(1e-3) if rows else angd.Iterative(1e-2, 1e-14) if form is MatrixFree else angd.Normal(1e-2)
    spaces = {"energy": angd.Energy, "l2": angd.L2, "fisher-rao": angd.FisherRao, "wasserstein": angd.Wasserstein}
    controls = {"energy": angd.LevenbergMarquardt(floor=1e-3), "l2": angd.LineSearch()}
    return angd.ANGD(flow, spaces[metric](), Formed(inner, form), controls.get(metric, angd.StepNorm(0.05)))


def trained(mesh: Any, problem: Any, method: Any, **more: Any) -> Any:
    """After twenty steps, most of which were taken."""
    fit = angd.fit(problem, method, steps=STEPS, mesh=mesh, progress=False, **more)
    assert np.sum(fit.history["accepted"]) > STEPS / 2
    return fit


def distance(a: Any, b: Any) -> float:
    """The largest difference of any two parameters."""
    pairs = zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    return max(float(np.max(np.abs(np.asarray(x) - np.asarray(y)))) for x, y in pairs)


def digest(mesh: Any) -> np.ndarray:
    """Parameters of a PINN and of two wave functions after their training."""
    problem, params = ground_state(5)
    fits = [
        trained(mesh, SMALL, method("energy", None), samples=POINTS),
        trained(mesh, problem, method("fisher-rao", Dense), samples=CHAIN, params=params),
        trained(mesh, problem, method("wasserstein", None), samples=CHAIN, params=params),
    ]
    return np.concatenate([np.ravel(leaf) for fit in fits for leaf in jax.tree.leaves(fit.params)])


if __name__ == "__main__":
    assert len(jax.devices()) == 4
    assert len(jax.local_devices()) == 2
    print(*(float(x).hex() for x in digest(angd.parallel.mesh())), flush=True)
    jax.distributed.shutdown()
