"""How good a fitted density is, by importance weights w = target/ρ of fresh samples."""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from angd.problems.inference.problems import ReverseKL


@dataclass(frozen=True)
class Quality:
    """What fresh samples of a fitted density say about it.

    **Attributes:**

    - `bound`: E_ρ[log target − log ρ], the lower bound of the log evidence.
    - `evidence`: log E_ρ[w], an estimate of the log evidence itself.
    - `gap`: `evidence` − `bound`, an estimate of KL(ρ ‖ target) where the weights are well-behaved.
    - `effective`: (E w)²/E w², the share of samples that count: 1 for an exact fit.
    """

    bound: float
    evidence: float
    gap: float
    effective: float


def judge(problem: ReverseKL, params: PyTree, key: Array, n: int = 10_000) -> Quality:
    """Judge a fit on fresh samples.

    **Arguments:**

    - `problem`: a `ReverseKL`.
    - `params`: of its model.
    - `key`: of the samples.
    - `n`: how many.

    **Returns:** a `Quality`.
    """
    bound, evidence, effective = map(float, weighed(problem, params, key, n))
    return Quality(bound, evidence, evidence - bound, effective)


@eqx.filter_jit
def weighed(problem: Any, params: PyTree, key: Array, n: int) -> tuple[Array, Array, Array]:
    """Lower bound, log evidence, and the share of samples that count."""
    x = problem.model.sample(params, key, n)
    logs = -jax.vmap(problem.variation, (None, 0))(params, x)
    evidence = jax.nn.logsumexp(logs) - jnp.log(n)
    effective = jnp.exp(2 * jax.nn.logsumexp(logs) - jax.nn.logsumexp(2 * logs)) / n
    return jnp.mean(logs), evidence, effective
