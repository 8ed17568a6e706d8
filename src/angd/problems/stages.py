"""Networks on top of one another: u = N(θ₁) + ε (N(θ₂) − N(θ₂⁰)) + …, of which only the last is trained.

After some hundreds of steps of Gauss–Newton type it is the bend of the network that holds the error: steps must be
short. A second network on the frozen first one begins anew, on a problem that is nearly linear, because u needs only a
small change. It sees residuals r(u)/ε with ε = rms of r(N(θ₁)), and starts from θ₂⁰, which is θ₁ with a little noise,
for that has found where the solution bends. Its own start is subtracted, so that at first nothing changes; this needs
no knowledge of the model. Conditions that are built into the field act on the sum, so that they hold as before.

    Staged      the parameters of all of them, in place of those of one
    total       what a problem asks of its network, asked of all
    Grow        one more on top
    OnTop       an optimiser of the last one
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from angd.method.step import Info
from angd.problems.slabs import slabs_like


class Staged(eqx.Module):
    """Parameters of networks on top of one another, u = Σ εᵢ N(θᵢ): in a `Problem` they stand for those of one.

    Each stage adds two: its start with −ε, which stays, and itself with ε.

    **Attributes:**

    - `frozen`: those of the networks below, from the first on, along a leading axis of every array.
    - `scales`: εᵢ of all of them, shape (k,); the first is 1.
    - `last`: those of the network on top.
    """

    frozen: PyTree
    scales: Float[Array, " k"]
    last: PyTree


def total(f: Callable[[PyTree], Array], params: PyTree) -> Array:
    """f(θ), or Σ εᵢ f(θᵢ) for networks on top of one another.

    **Arguments:**

    - `f`: of the parameters of one network, its value at a point for one.
    - `params`: of one network, or `Staged`.

    **Returns:** the value of all.
    """
    if not isinstance(params, Staged):
        return f(params)
    below = jax.vmap(f)(params.frozen)
    return jnp.tensordot(params.scales[:-1], below, 1) + params.scales[-1] * f(params.last)


@dataclass(frozen=True)
class Grow:
    """One more network on top: what `Phase.grow` asks for.

    **Arguments:**

    - `noise`: each weight is that of the network before it times 1 + `noise` × a normal number; 0.1 is good.
    """

    noise: float = 0.1

    def __call__(self, key: Array, problem: Any, params: PyTree, loss: Any) -> Staged:
        """**Arguments:** `key`; `problem`; `params`, of the networks so far; `loss`, ½ Σ ω r² of them at new points.

        **Returns:** the parameters of one more.
        """
        if not isinstance(params, Staged):
            params = Staged(jax.tree.map(lambda x: x[None][:0], params), jnp.ones(1), params)
        start, scale = _noisy(params.last, key, self.noise), jnp.sqrt(2 * jnp.asarray(loss, params.scales.dtype))
        frozen = jax.tree.map(_with, params.frozen, params.last, start)
        return Staged(frozen, jnp.concatenate([params.scales, jnp.stack([-scale, scale])]), start)


def _with(below: Array, *more: Array) -> Array:
    """An array of several networks, and those of others."""
    return jnp.concatenate([below, jnp.stack(more)])


def _noisy(params: PyTree, key: Array, noise: float) -> PyTree:
    """Every number times 1 + noise × a normal one."""
    leaves, structure = jax.tree.flatten(params)
    keys = jax.random.split(key, len(leaves))
    changed = [x * (1 + noise * jax.random.normal(k, x.shape, x.dtype)) for x, k in zip(leaves, keys, strict=True)]
    return structure.unflatten(changed)


class OnTop(eqx.Module):
    """An optimiser of the last network: the parameters are `Staged`, and the others are not touched.

    It sees residuals in units of ε. The loss that it reports is that of the problem.

    **Arguments:**

    - `inner`: an optimiser of problems with `residuals`, such as `angd.ANGD` with the energy metric.
    """

    inner: Any

    def init(self, problem: Any, params: Staged, samples: Any) -> PyTree:
        """The inner optimiser's first state.

        **Arguments:** `problem`, with `residuals`; `params`, a `Staged`; `samples`.
        """
        return self.inner.init(self.part(problem, params), params.last, samples)

    def step(self, problem: Any, params: Staged, samples: Any, state: PyTree) -> tuple[Staged, Any, PyTree, Info]:
        """One step of the inner optimiser.

        **Arguments:** as `init`; `state`, what it, or the step before, returned.

        **Returns:** as the inner optimiser.
        """
        last, samples, state, info = self.inner.step(self.part(problem, params), params.last, samples, state)
        unit = params.scales[-1] ** 2
        info = eqx.tree_at(lambda i: (i.loss, i.slope), info, (unit * info.loss, unit * info.slope))
        return Staged(params.frozen, params.scales, last), samples, state, info

    def part(self, problem: Any, params: Staged) -> "_Part":
        """The problem as the last network sees it, in units of ε."""
        return _Part(problem, params.frozen, params.scales)


class _Part(eqx.Module):
    """The problem as the last network sees it."""

    problem: Any
    frozen: PyTree
    scales: Float[Array, " k"]

    @property
    def residuals(self) -> dict[str, Callable[..., Array]]:
        """In units of ε."""
        return {name: self._scaled(f) for name, f in self.problem.residuals.items()}

    def _scaled(self, f: Callable[..., Array]) -> Callable[..., Array]:
        return lambda last, z: f(Staged(self.frozen, self.scales, last), z) / self.scales[-1]


def staged_like(params: PyTree, arrays: Mapping[str, Any]) -> PyTree:
    """Parameters of the structure that saved ones have, by name; `params` are those of one network."""
    scales, edges = (
        next((array for name, array in arrays.items() if name in (end, f"['params']{end}")), None)
        for end in (".scales", ".edges")
    )
    if edges is not None:
        return slabs_like(params, len(edges))
    if scales is None:
        return params
    k = len(scales)
    return Staged(jax.tree.map(lambda x: jnp.zeros((k - 1, *x.shape), x.dtype), params), jnp.ones(k), params)
