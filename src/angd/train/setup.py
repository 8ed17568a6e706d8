"""From a configuration to what the loop needs: problem, phases, start, and how to look at parameters."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from angd.problems.solution import Solution, relative_errors
from angd.program.catalogue import experiment
from angd.recipes import pinn, vmc
from angd.recipes.base import Vmc
from angd.train.config import Config
from angd.train.loop import Phase, Stand, cast


@dataclass(frozen=True)
class Look:
    """Errors by field, and where there are such things the test loss and the state of the Markov chain."""

    errors: dict[str, float]
    test_loss: float | None = None
    chain: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Setup:
    """A run, ready to begin.

    **Attributes:** `look(stand, loss)` gives what is to be seen besides the loss; `finish(params)` a final evaluation
    with `error` and `standard_error`, where looks are not the last word; `solution(params)` fields on a grid.
    """

    problem: Any
    phases: list[Phase]
    params: PyTree
    key: Array
    look: Callable[[Stand, float], Look]
    finish: Callable[[PyTree], dict[str, float]] | None = None
    solution: Callable[[PyTree], Solution] | None = None

    def at_phase(self, phase: int) -> Stand:
        """A stand with the shapes of a phase instead of numbers."""

        def begin(params: PyTree) -> tuple[PyTree, PyTree, PyTree]:
            params = cast(params, chosen.single)
            samples = cast(chosen.sampler(self.key, self.problem, params), chosen.single)
            return params, samples, chosen.optimiser.init(self.problem, params, samples)

        chosen = self.phases[phase]
        params, samples, state = eqx.filter_eval_shape(begin, self.params)
        return replace(Stand(params), samples=samples, state=state, phase=phase)


def prepare(config: Config) -> Setup:
    """Build it; sets the precision of the process. Runs with one seed share their start and their points."""
    jax.config.update("jax_enable_x64", config.precision == "f64")
    name = experiment(config.experiment).molecule
    return _equation(config) if name is None else _ground_state(config, name)


@lru_cache
def _case(experiment: str, network: str, precision: str) -> tuple[Any, Any, Any]:
    """The problem and how it is looked at: the same objects for all runs of a process, so that they compile once."""
    case = pinn.CASES[experiment]
    problem = case.problem(network)
    return problem, case.solution(problem), pinn.test_loss(problem)


def _equation(config: Config) -> Setup:
    problem, solution, held_out = _case(config.experiment, config.network, config.precision)
    return Setup(
        problem=problem,
        phases=pinn.phases(config.preset(), problem, config.seed),
        params=jax.tree.map(jnp.asarray, problem.init(jax.random.key(config.seed))),
        key=jax.random.key(1000 + config.seed),
        look=lambda stand, loss: Look(relative_errors(solution(stand.params)), held_out(stand.params)),
        solution=solution,
    )


def _ground_state(config: Config, name: str) -> Setup:
    options = config.preset()
    assert isinstance(options, Vmc)
    made = vmc.system(name, config.network)
    problem, exact = made.problem(options), made.molecule.exact
    params, key = made.network.init(jax.random.key(config.seed)), jax.random.key(1000 + config.seed)
    problem.check_start(params, made.chain(options).start(key, 1)[0])

    def look(stand: Stand, loss: float) -> Look:
        """Training energies, for the curve only; the loss of pretraining is none."""
        pretraining = stand.phase == 0
        errors = {} if exact is None or pretraining else {"energy": loss - exact}
        return Look(errors, chain=vmc.chain_report(problem, stand, not pretraining))

    def finish(params: PyTree) -> dict[str, float]:
        return vmc.final(made, options, params, jax.random.fold_in(key, 2**31 - 1))

    return Setup(problem, vmc.phases(options, made), params, key, look, finish)
