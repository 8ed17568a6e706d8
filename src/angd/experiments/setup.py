"""From a configuration to what the loop needs: problem, phases, start, and how to look at parameters."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from angd.experiments.config import Config
from angd.experiments.pinn import CASES, phases, test_loss
from angd.experiments.runner import Phase, Stand, cast


@dataclass(frozen=True)
class Setup:
    """A run, ready to begin."""

    problem: Any
    phases: list[Phase]
    params: PyTree
    key: Array
    errors: Callable[[PyTree], dict[str, float]]
    test_loss: Callable[[PyTree], float]

    def at_phase(self, phase: int) -> Stand:
        """A stand with the arrays of a phase, whatever their numbers."""
        chosen = self.phases[phase]
        params = cast(self.params, chosen.single)
        samples = cast(chosen.sampler(self.key, self.problem, params), chosen.single)
        state = chosen.optimiser.init(self.problem, params, samples)
        return replace(Stand(params), samples=samples, state=state, phase=phase)


@lru_cache
def _case(experiment: str, network: str, precision: str) -> tuple[Any, Any, Any]:
    """The problem and how it is looked at: the same objects for all runs of a process, so that they compile once."""
    case = CASES[experiment]
    problem = case.problem(network)
    return problem, case.errors(problem), test_loss(problem)


def prepare(config: Config) -> Setup:
    """Build it; sets the precision of the process. Runs with one seed share their start and their points."""
    jax.config.update("jax_enable_x64", config.precision == "f64")
    problem, errors, held_out = _case(config.experiment, config.network, config.precision)
    start = problem.init(jax.random.key(config.seed))
    return Setup(
        problem=problem,
        phases=phases(config.preset(), problem, config.seed),
        params=jax.tree.map(jnp.asarray, start),
        key=jax.random.key(1000 + config.seed),
        errors=errors,
        test_loss=held_out,
    )
