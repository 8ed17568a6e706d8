"""What a run would cost, phase by phase: sizes, the memory of a compiled step, its time. Nothing is written."""

import time
from collections.abc import Sequence
from dataclasses import replace
from statistics import median
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from angd.method.memory import choices, device_memory
from angd.method.samples import Samples
from angd.recipes.base import INFINITE, Phase
from angd.train.config import Config
from angd.train.loop import Clock, TrainState, call_of
from angd.train.run import budget_of
from angd.train.setup import Setup, within
from angd.tree import count

TIMED = 16  # steps that are taken, of which the later half counts: the first ones are slow
PATIENCE = 10.0  # seconds after which no further ones are taken


def forecast(setup: Setup, config: Config) -> dict[str, Any]:
    """Compile the step of every phase up to the first without a fixed end, and take a few of each.

    **Arguments:** `setup` and `config` of a run.

    **Returns:** what would run (`task`, `recipe`, `options`, the number of `parameters`), its `phases`, about how
    many `steps` and `seconds` the budget allows, and the `memory_budget` in bytes. A phase has its `steps`, at most
    (None if they have no end); whether it is `pretraining`; how large it is (`samples` by name, `rows` of the Jacobian,
    `memory_bytes`); what was chosen by the budget, and why (`choices`); and how long it takes (`seconds_to_compile`, 0
    where it shares the step of one before it, `seconds_per_step` and `cpu_seconds_per_step`).
    """
    setup = within(setup, config.memory)
    compiler = _Compiler(setup)
    phases = [_phase(setup, number, compiler) for number in range(_known(setup.phases))]
    return {
        "task": setup.task.name,
        "recipe": config.recipe,
        "options": config.to_dict()["options"],
        "parameters": count(setup.params),
        "memory_budget": config.memory or device_memory(),
        "phases": phases,
        **_whole(config, phases),
    }


def _known(phases: Sequence[Phase]) -> int:
    """How many phases come for sure: one that ends by its losses is the last."""
    return next((number for number, phase in enumerate(phases, 1) if phase.steps == INFINITE), len(phases))


class _Compiler:
    """Compiled steps; phases whose steps differ in the values of arrays alone share one, as they do in a run."""

    def __init__(self, setup: Setup):
        self.setup, self.known = setup, []

    def __call__(self, now: TrainState) -> tuple[Any, int, float]:
        """The step from a state, its bytes, and the seconds that its compilation took."""
        function, arguments = call_of(self.setup.problem, self.setup.phases, now, self.setup.key)
        shapes = [(jnp.shape(leaf), jnp.result_type(leaf)) for leaf in jax.tree.leaves(arguments) if eqx.is_array(leaf)]
        for other, their, compiled in self.known:
            if other.shares(function) and their == shapes:
                return function.with_arrays(compiled), _bytes(compiled.memory_analysis()), 0.0
        before = time.perf_counter()
        compiled = function.ahead(*arguments)
        self.known.append((function, shapes, compiled))
        return function.with_arrays(compiled), _bytes(compiled.memory_analysis()), time.perf_counter() - before


def _phase(setup: Setup, number: int, compiler: _Compiler) -> dict[str, Any]:
    """Sizes, memory and time of one phase."""
    phase, now = setup.phases[number], replace(TrainState(_begun(setup, number)), phase=number)
    with choices() as chosen:
        compiled, memory, compiling = compiler(now)
    samples, wall, cpu = _timed(setup, now, compiled)
    return {
        "steps": None if phase.steps == INFINITE else int(phase.steps),
        "pretraining": phase.pretraining,
        "samples": _counts(samples, "walkers" if hasattr(phase.sampler, "move") else "points"),
        "rows": None if phase.pretraining else _rows(setup, samples),
        "memory_bytes": memory,
        "choices": [str(choice) for choice in chosen],
        "seconds_to_compile": round(compiling, 3),
        "seconds_per_step": wall,
        "cpu_seconds_per_step": cpu,
    }


def _begun(setup: Setup, number: int) -> Any:
    """Parameters of the structure with which a phase begins."""
    params = setup.params
    for phase in setup.phases[1 : number + 1]:
        params = params if phase.grow is None else phase.grow(setup.key, setup.problem, params, 1.0)
    return params


def _timed(setup: Setup, now: TrainState, compiled: Any) -> tuple[Any, float, float]:
    """The last samples, and the seconds and CPU seconds of a step, drawing or moving its samples included."""
    found, begun = [], time.perf_counter()
    while not found or (len(found) < TIMED and time.perf_counter() - begun < PATIENCE):
        clock = Clock()
        _, arguments = call_of(setup.problem, setup.phases, now, setup.key)
        (params, samples, state), _ = jax.block_until_ready(compiled(*arguments))
        now = replace(now, params=params, samples=samples, state=state, k=now.k + 1)
        found.append(clock.read())
    late = found[len(found) // 2 :]
    return now.samples, median(wall for wall, _ in late), median(cpu for _, cpu in late)


def _counts(samples: Any, name: str) -> dict[str, int]:
    """How many samples each term has; `name` is what they are where there is one term."""
    terms = samples if isinstance(samples, dict) else {name: samples}
    return {name: jax.tree.leaves(part)[0].shape[0] for name, part in terms.items()}


def _rows(setup: Setup, samples: Any) -> int | None:
    """Rows of the Jacobian: residuals, or values of a field or density; None where that is not known."""
    task = setup.task

    def values(params: Any, samples: Any) -> Any:
        residuals = getattr(setup.problem, "residuals", None)
        if residuals is not None:
            return {name: jax.vmap(f, (None, 0))(params, samples[name].x) for name, f in residuals.items()}
        if hasattr(setup.problem, "residual"):
            return jax.vmap(setup.problem.residual, (None, 0))(params, samples.x)
        return task.field(params, samples.x)

    if not (task.is_residual or isinstance(samples, Samples)):
        return None
    shapes = eqx.filter_eval_shape(values, setup.params, samples)
    return count(shapes)


def _bytes(memory: Any) -> int:
    """Arguments, results and intermediate numbers of a compiled step."""
    sizes = ("argument_size_in_bytes", "output_size_in_bytes", "temp_size_in_bytes")
    return sum(getattr(memory, name) for name in sizes) - memory.alias_size_in_bytes


def _whole(config: Config, phases: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Steps and seconds of the whole run, phase by phase until the budget is spent."""
    budget, steps, wall, cpu = budget_of(config), 0, 0.0, 0.0
    for phase in phases:
        wall, cpu = wall + phase["seconds_to_compile"], cpu + phase["seconds_to_compile"]
        each = phase["seconds_per_step"], max(phase["cpu_seconds_per_step"], 1e-9)
        most = INFINITE if phase["steps"] is None else phase["steps"]
        limits = (budget.steps - steps, (budget.seconds - wall) / each[0], (budget.cpu_seconds - cpu) / each[1])
        taken = max(1 if steps == 0 else 0, int(min(most, *limits)))
        steps, wall, cpu = steps + taken, wall + taken * each[0], cpu + taken * each[1]
        if taken < most:
            break
    return {"steps": steps, "seconds": round(wall, 3)}
