"""What a run would cost: sizes, the memory of its compiled step, and the time of one. Nothing is written."""

import time
from dataclasses import replace
from statistics import median
from typing import Any

import equinox as eqx
import jax

from angd.method.samples import Samples
from angd.train.config import Config
from angd.train.loop import Clock, TrainState, call_of
from angd.train.run import budget_of
from angd.train.setup import Setup
from angd.tree import count

TIMED = 16  # steps that are taken, of which the later half counts: the first ones are slow
PATIENCE = 10.0  # seconds after which no further ones are taken


def forecast(setup: Setup, config: Config) -> dict[str, Any]:
    """Compile the step of the last phase, the long one, and take a few.

    **Arguments:** `setup` and `config` of a run.

    **Returns:** what would run (`task`, `recipe`, `options`), how large it is (`parameters`, `samples` by name, `rows`
    of the Jacobian, `memory_bytes`), and how long it takes (`seconds_to_compile`, `seconds_per_step`,
    `cpu_seconds_per_step`, and about how many `steps` and `seconds` the budget allows).
    """
    now = replace(TrainState(setup.params), phase=len(setup.phases) - 1)
    function, arguments = call_of(setup.problem, setup.phases, now, setup.key)
    before = time.perf_counter()
    compiled, memory = function.ahead(*arguments)
    compiling = time.perf_counter() - before
    samples, wall, cpu = _timed(setup, now, compiled)
    return {
        "task": setup.task.name,
        "recipe": config.recipe,
        "options": config.to_dict()["options"],
        "parameters": count(setup.params),
        "samples": _counts(samples),
        "rows": _rows(setup, samples),
        "memory_bytes": _bytes(memory),
        "seconds_to_compile": round(compiling, 3),
        "seconds_per_step": wall,
        "cpu_seconds_per_step": cpu,
        **_whole(config, wall, cpu, compiling),
    }


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


def _counts(samples: Any) -> dict[str, int]:
    """How many samples each term has."""
    terms = samples if isinstance(samples, dict) else {"samples": samples}
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


def _whole(config: Config, wall: float, cpu: float, compiling: float) -> dict[str, float]:
    """Steps and seconds of the whole run."""
    budget = budget_of(config)
    limits = (budget.steps, (budget.seconds - compiling) / wall, (budget.cpu_seconds - compiling) / max(cpu, 1e-9))
    steps = max(1, int(min(limits)))
    return {"steps": steps, "seconds": round(compiling + steps * wall, 3)}
