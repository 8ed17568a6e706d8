"""One pure step of accelerated natural gradient descent.

    flow (α, β, γ, h)  →  metric  →  sampled system  →  solver  →  θ ← θ + h d

`ANGD` holds the four choices; `init` and `step` are pure functions to be jitted by the caller.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PyTree

from angd.flow.coefficients import ARGFlow
from angd.flow.schedules import Constant, is_concrete
from angd.metrics.base import AbstractMetric, Memory, Setting
from angd.samples import Samples
from angd.solvers.base import AbstractSolver
from angd.system import AbstractSystem
from angd.transport import JVP, AbstractTransport


class State(eqx.Module):
    """What survives from step to step."""

    k: Int[Array, ""]
    t: Float[Array, ""]
    beta_prev: Float[Array, ""]
    memory: Memory


class Info(eqx.Module):
    """What one step reports: the length of the direction, and whether it was used.

    A direction that is not finite never reaches the parameters: the step is refused and momentum starts again.
    """

    norm: Float[Array, ""]
    ok: Bool[Array, ""]


class ANGD(eqx.Module):
    """Accelerated natural gradient descent: a flow, a metric, a solver, and how momentum is carried."""

    flow: ARGFlow
    metric: AbstractMetric
    solver: AbstractSolver
    transport: AbstractTransport = JVP()

    def init(self, problem: Any, params: PyTree, samples: Samples) -> State:
        """The state at rest."""
        first = self.flow.step(0, self.flow.t0)
        return State(jnp.zeros((), int), jnp.asarray(self.flow.t0, float), first.beta, Memory.fresh(params))

    def step(self, problem: Any, params: PyTree, samples: Samples, state: State) -> tuple[PyTree, Samples, State, Info]:
        """New parameters, the samples, the new state and a report."""
        c = self.flow.step(state.k, state.t, state.beta_prev)
        setting = Setting(problem, params, samples, c, state.memory, self.transport, self._may_damp())
        system = self.metric.system(setting)
        centre = self.solver.centre(self.metric.centre(setting), state.memory.d)
        solution = self.solver.solve(system, centre)
        leaves = jax.tree.leaves(solution.d)
        norm = jnp.sqrt(sum((jnp.sum(leaf**2) for leaf in leaves[1:]), jnp.sum(leaves[0] ** 2)))
        ok = solution.ok & jnp.isfinite(norm)
        moved = jax.tree.map(lambda p, d: p + (c.h * d).astype(p.dtype), params, solution.d)
        memory = Memory(params, solution.d, *self.metric.remember(setting, system, self._invert), jnp.ones((), bool))
        kept, memory = _where(ok, (moved, memory), (params, Memory.fresh(params)))
        return kept, samples, State(state.k + 1, state.t + c.h, c.beta, memory), Info(norm, ok)

    def _invert(self, system: AbstractSystem) -> PyTree:
        """The direction of another system, without a centre."""
        v = system.right_side()
        return self.solver.solve(system, jax.tree.map(jnp.zeros_like, v)).d

    def _may_damp(self) -> bool:
        """Whether β can be non-zero; a constant 0 saves a second evaluation of the force."""
        beta = self.flow.beta
        return not (isinstance(beta, Constant) and is_concrete(beta.value) and float(beta.value) == 0)


def _where(condition: Array, yes: PyTree, no: PyTree) -> PyTree:
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), yes, no)
