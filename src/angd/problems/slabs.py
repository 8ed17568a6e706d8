"""Time in slabs: u(t, ·) is a network of its own in each interval of time, and they are trained one after the other.

Where later times depend strongly on earlier ones (solitons, chaos), a network that sees all times at once
settles on a solution that begins elsewhere. Marching, each slab begins from the end of the one before, which is frozen,
and with its parameters. Time is the first coordinate.

    Slabs         the parameters of all of them, in place of those of one network
    at_time       those of the slab that a time belongs to
    Next          go to the next slab: what `Phase.grow` asks for
    InSlab        an optimiser of the present slab
    OfSlab        its points

The present slab sees a problem on the whole box whose clock runs slower, so that all slabs share one compiled step. At
its beginning every condition C that the problem has at the start asks for C(u) = C(u of the slab before): for u − u₀
that is u itself, for u_t the velocity, whatever the order of the equation.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

from angd.method.step import Info

TIME = 0  # the coordinate


class Slabs(eqx.Module):
    """Parameters of networks one after the other in time: in a `Problem` they stand for those of one.

    **Attributes:**

    - `parts`: of all of them, along a leading axis of every array.
    - `edges`: where they begin and end, shape (k + 1,).
    - `now`: the number of the one that is trained; later ones are not used yet.
    """

    parts: PyTree
    edges: Float[Array, " k_plus_1"]
    now: Int[Array, ""]

    @classmethod
    def of(cls, params: PyTree, interval: tuple[float, float], k: int) -> "Slabs":
        """k equal slabs, all with these parameters.

        **Arguments:** `params`, of one network; `interval`, of time; `k`, at least 1.
        """
        parts = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (k, *leaf.shape)), params)
        return cls(parts, jnp.linspace(*interval, k + 1), jnp.zeros((), int))

    def __getitem__(self, i: Any) -> PyTree:
        return jax.tree.map(lambda leaf: leaf[i], self.parts)


def at_time(params: PyTree, t: Float[Array, ""]) -> PyTree:
    """Parameters of the slab that a time belongs to; beyond the present slab, those of the present one.

    **Arguments:**

    - `params`: `Slabs`, or those of one network, which come back as they are.
    - `t`: the time.

    **Returns:** parameters of one network.
    """
    if not isinstance(params, Slabs):
        return params
    return params[jnp.minimum(jnp.sum(t >= params.edges[1:-1]), params.now)]


@dataclass(frozen=True)
class Next:
    """The next slab, which begins with the parameters of the present one: what `Phase.grow` asks for."""

    def __call__(self, key: Array, problem: Any, params: Slabs, loss: Any) -> Slabs:
        """**Arguments:** `params`; the others are not used.

        **Returns:** the parameters with which it begins.
        """
        parts = jax.tree.map(lambda leaf: leaf.at[params.now + 1].set(leaf[params.now]), params.parts)
        return Slabs(parts, params.edges, params.now + 1)


class InSlab(eqx.Module):
    """An optimiser of the present slab; the others are not touched.

    **Arguments:**

    - `inner`: an optimiser of problems with `residuals`, such as `angd.ANGD` with the energy metric.
    """

    inner: Any

    def init(self, problem: Any, params: Slabs, samples: Any) -> PyTree:
        """The inner optimiser's first state.

        **Arguments:** `problem`; `params`, `Slabs`; `samples`, of `OfSlab`.
        """
        return self.inner.init(SlabProblem(problem, params), params[params.now], samples)

    def step(self, problem: Any, params: Slabs, samples: Any, state: PyTree) -> tuple[Slabs, Any, PyTree, Info]:
        """One step of the inner optimiser.

        **Arguments:** as `init`; `state`, what it, or the step before, returned.

        **Returns:** as the inner optimiser.
        """
        part, own = SlabProblem(problem, params), params[params.now]
        own, samples, state, info = self.inner.step(part, own, samples, state)
        parts = jax.tree.map(lambda leaf, new: leaf.at[params.now].set(new), params.parts, own)
        return Slabs(parts, params.edges, params.now), samples, state, info


class OfSlab(eqx.Module):
    """Another sampler's points, for the present slab.

    **Arguments:**

    - `inner`: the other sampler, of a `Problem`.
    """

    inner: Any

    @property
    def every(self) -> float:
        return self.inner.every

    def __call__(self, key: Array, problem: Any, params: Slabs) -> PyTree:
        return self.inner(key, SlabProblem(problem, params), params[params.now])


class SlabProblem(eqx.Module):
    """The problem as the present slab sees it: on the whole box, whose points are moved into the slab."""

    problem: Any
    slabs: Slabs

    @property
    def domain(self) -> Any:
        return self.problem.domain

    def places(self) -> dict[str, Any]:
        return self.problem.places()

    def weight(self, name: str) -> float:
        return self.problem.weight(name)

    @property
    def residuals(self) -> dict[str, Callable[..., Array]]:
        """Of the network of this slab."""
        places = self.places()
        return {
            name: self._from_before(f) if at_start(places[name]) else self._inside(f)
            for name, f in self.problem.residuals.items()
        }

    def _inside(self, f: Callable[..., Array]) -> Callable[..., Array]:
        return lambda own, z: f(own, self._moved(z))

    def _from_before(self, f: Callable[..., Array]) -> Callable[..., Array]:
        def residual(own: PyTree, z: Any) -> Array:
            at, now = self._moved(z), self.slabs.now
            before = f(self.slabs[jnp.maximum(now - 1, 0)], at)
            return f(own, at) - jnp.where(now > 0, before, 0)

        return residual

    def _moved(self, z: Any) -> Any:
        """A point of the whole box, or nodes of an integral, in the slab."""
        if hasattr(z, "weights"):
            return eqx.tree_at(lambda nodes: nodes.z, z, jax.vmap(self._moved)(z.z))
        low, high = self.domain.intervals[TIME]
        start, end = self.slabs.edges[self.slabs.now], self.slabs.edges[self.slabs.now + 1]
        return z.at[TIME].set(start + (z[TIME] - low) / (high - low) * (end - start))


def at_start(place: Any) -> bool:
    """Is it where time begins?"""
    return all(part.axis == TIME and part.side == "lower" for part in _faces(place)) and bool(_faces(place))


def check(problem: Any, name: str) -> None:
    """Refuse problems that cannot be cut into slabs, in a sentence.

    **Arguments:** `problem`; `name`, how messages call the task.
    """
    from angd.problems.pinn import Box, Integral, Problem

    if not isinstance(problem, Problem) or not isinstance(problem.domain, Box) or problem.domain.dimension < 2:
        raise ValueError(f"{name}: slabs need a Problem on a Box with time as its first coordinate; leave slabs out.")
    if problem.unknowns:
        raise ValueError(f"{name}: slabs have no common unknowns; leave slabs out.")
    places = {key: place for key, place in problem.places().items() if key != "interior"}
    if not any(at_start(place) for place in places.values()):
        raise ValueError(
            f"{name}: slabs take the beginning of one from the end of another, and need the initial values as a "
            "condition on box.face(0, 'lower'), not built into the field."
        )
    for key, place in places.items():
        along = isinstance(place, Integral) and TIME not in place.over
        faces = _faces(place)
        sides = bool(faces) and all(part.axis != TIME for part in faces)
        if not (at_start(place) or sides or along or (isinstance(place, Box) and place == problem.domain)):
            raise ValueError(
                f"{name}: the condition {key!r} is neither at the start nor along all times, which slabs need; leave "
                "slabs out."
            )


def _faces(place: Any) -> tuple[Any, ...]:
    return getattr(place, "parts", (place,) if hasattr(place, "side") else ())


def slabs_like(params: PyTree, count: int) -> Slabs:
    """Slabs of the structure that saved ones have.

    **Arguments:** `params`, of one network; `count`, the length of their edges.
    """
    return Slabs.of(params, (0.0, 1.0), count - 1)
