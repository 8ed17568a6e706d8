"""Causal weights: an equation counts at a time when it holds at all earlier ones (Wang, Sankaran & Perdikaris 2022)."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from angd.method.samples import Samples
from angd.problems.pinn.problem import INTERIOR
from angd.problems.pinn.sampling import Sampler


class Causal(Sampler):
    """Another sampler's points, of which those inside weigh exp(−ε ∫ r²): the integral of its mean over earlier times.

    Time is the first coordinate, in units of its interval. With ε · loss ≪ 1 all times count alike again.

    **Arguments:**

    - `inner`: the other sampler.
    - `epsilon`: ε ≥ 0; 1 to 100. Larger makes later times wait longer.
    - `bins`: of time, for the integral.

    **Returns:** called as `sampler(key, problem, params)`, a dictionary of `Samples` by term.
    """

    inner: Sampler
    epsilon: float = 1.0
    bins: int = eqx.field(static=True, default=32)

    def __check_init__(self):
        if self.epsilon < 0 or self.bins < 1:
            raise ValueError(f"Causal: it takes ε ≥ 0 and bins ≥ 1, got {self.epsilon} and {self.bins}.")

    @property
    def every(self) -> float:
        return self.inner.every

    def __call__(self, key: Array, problem: Any, params: PyTree) -> dict[str, Samples]:
        samples = self.inner(key, problem, params)
        inside = samples[INTERIOR]
        r = jax.vmap(problem.residuals[INTERIOR], (None, 0))(params, inside.x)
        square = jnp.sum(r.reshape(len(r), -1) ** 2, axis=1)
        low, high = problem.domain.intervals[0]
        bin = jnp.floor((inside.x[:, 0] - low) / (high - low) * self.bins).astype(int).clip(0, self.bins - 1)
        ones = jnp.zeros(self.bins).at[bin].add(1.0)
        mean = jnp.zeros(self.bins).at[bin].add(square) / jnp.maximum(ones, 1.0)
        earlier = jnp.cumsum(mean) - mean
        weights = jnp.exp(-self.epsilon * earlier / self.bins)
        return samples | {INTERIOR: Samples(inside.x, inside.omega * weights[bin])}
