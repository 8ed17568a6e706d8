"""Samples as samplers: whatever gives points is asked in the same way, `(key, problem, params)` → samples."""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from angd.method.parallel import constrained
from angd.method.samples import Samples
from angd.tree import count


class Drawn(eqx.Module):
    """A sampler for a problem that draws by itself, `draw(params, key, n)`: independent samples, no Markov chain.

    **Arguments:** `n`, how many; `every`, steps that they serve. Wasserstein-2 moves them in between, as particles.
    """

    n: int = eqx.field(static=True)
    every: float = eqx.field(static=True, default=1)

    def __call__(self, key: Array, problem: Any, params: PyTree) -> PyTree:
        return problem.draw(params, key, self.n)


class Given(eqx.Module):
    """A sampler that returns the same samples for ever."""

    samples: PyTree

    @property
    def every(self) -> float:
        return math.inf

    def __call__(self, key: Array, problem: Any, params: PyTree) -> PyTree:
        return self.samples


def as_sampler(samples: Any, name: str = "samples") -> Any:
    """A sampler from samples, a sampler, or a Markov chain.

    **Arguments:** `samples`: `Samples`, a dictionary of them, an array of points, or a function
    `(key, problem, params)`, perhaps with `every` or `move`; `name`, how messages call the task.

    **Returns:** a function `(key, problem, params)` → samples.
    """
    if callable(samples):
        return samples
    if isinstance(samples, Samples):
        return Given(samples)
    if isinstance(samples, dict) and samples and all(isinstance(part, Samples) for part in samples.values()):
        return Given(samples)
    if getattr(samples, "ndim", 0):
        return Given(Samples(jnp.asarray(samples)))
    raise ValueError(
        f"{name}: samples must be Samples, a dictionary of Samples, an array of points, a function "
        f"(key, problem, params), or a Markov chain, got a {type(samples).__name__}."
    )


def count_rows(task: Any, interior: int, condition: int) -> float:
    """How many residuals a task has: at its own samples, or at so many points of its domain."""
    sampler = None if task.samples is None else task.sampler()
    if sampler is None and hasattr(task.problem, "places"):
        from angd.problems.pinn import Uniform

        sampler = Uniform(**task.counts(interior, condition))
    if sampler is None:
        return math.inf
    shapes = eqx.filter_eval_shape(_residuals, task.problem, sampler, task.start(jax.random.key(0)))
    return count(shapes)


def _residuals(problem: Any, sampler: Any, params: PyTree) -> PyTree:
    samples = sampler(jax.random.key(0), problem, params)
    if hasattr(problem, "residuals"):
        return {n: jax.vmap(f, (None, 0))(params, samples[n].x) for n, f in problem.residuals.items()}
    return jax.vmap(problem.residual, (None, 0))(params, samples.x)


class Spread(eqx.Module):
    """A sampler whose samples are split over the devices of a mesh."""

    sampler: Any
    mesh: Any = eqx.field(static=True)

    @staticmethod
    def over(sampler: Any, mesh: Any) -> "Spread":
        """The same kind of sampler: one that moves its samples, or one that does not."""
        return (SpreadChain if hasattr(sampler, "move") else Spread)(sampler, mesh)

    @property
    def every(self) -> float:
        return getattr(self.sampler, "every", 1)

    def __call__(self, key: Array, problem: Any, params: PyTree) -> PyTree:
        return constrained(self.sampler(key, problem, params), self.mesh)


class SpreadChain(Spread):
    """The same for a Markov chain."""

    @property
    def start(self) -> Any:
        return self.sampler.start

    def move(self, key: Array, problem: Any, params: PyTree, samples: PyTree) -> PyTree:
        """The samples, some moves later."""
        return constrained(self.sampler.move(key, problem, params, samples), self.mesh)
