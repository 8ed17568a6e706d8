"""Where the equations are asked to hold: samplers give each term its points.

Whoever runs the steps asks for new points every `sampler.every` steps: in each by default, every k with `Renewed`,
never again with `Fixed`.
"""

import abc
import warnings
import zlib
from collections.abc import Mapping
from numbers import Integral
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from angd.method.parallel import spread
from angd.method.samples import Samples
from angd.problems.pinn.domains import Faces
from angd.problems.pinn.problem import INTERIOR
from angd.tree import count

LONG = 100  # steps that fit the points of a large network


class Sampler(eqx.Module):
    """Where the equations are asked to hold: a subclass defines `__call__(key, problem, params)`.

    **Returns:** called as `sampler(key, problem, params)`, a dictionary of `Samples` by term.
    """

    @property
    def every(self) -> float:
        """How many steps the points serve."""
        return 1

    @abc.abstractmethod
    def __call__(self, key: Array, problem: Any, params: PyTree) -> dict[str, Samples]:
        """Fresh samples."""


class AbstractIndifferent(Sampler):
    """A sampler that does not look at the field; a subclass says how points of one place are drawn."""

    counts: eqx.AbstractVar[Mapping[str, int]]

    @abc.abstractmethod
    def draw(self, key: Array, place: Any, n: int) -> PyTree:
        """n points of a box, a face, or data."""

    def __call__(self, key: Array, problem: Any, params: PyTree) -> dict[str, Samples]:
        check_counts(self.counts, problem)
        return {
            name: Samples(self.draw(_named(key, name), place, self.counts[name]), weight=problem.weight(name))
            for name, place in problem.places().items()
        }


class Uniform(AbstractIndifferent):
    """Independent uniform points.

    **Arguments:**

    - `**counts`: points of each term by name, `interior=1000, walls=100`.

    **Returns:** called as `sampler(key, problem, params)`, a dictionary of `Samples` by term.
    """

    counts: Mapping[str, int] = eqx.field(static=True)

    def __init__(self, **counts: int):
        self.counts = _Counts(counts)

    def draw(self, key: Array, place: Any, n: int) -> PyTree:
        return _uniform(key, place, n)


class Sobol(AbstractIndifferent):
    """Sobol points, shifted at random (modulo the box), so that each set is even and fresh.

    **Arguments:**

    - `**counts`: points of each term by name, `interior=1000, walls=100`.

    **Returns:** called as `sampler(key, problem, params)`, a dictionary of `Samples` by term.
    """

    counts: Mapping[str, int] = eqx.field(static=True)

    def __init__(self, **counts: int):
        self.counts = _Counts(counts)

    def draw(self, key: Array, place: Any, n: int) -> PyTree:
        from scipy.stats import qmc  # takes as long to import as JAX

        points = qmc.Sobol(place.dimension, scramble=False).random_base2(max(n - 1, 1).bit_length())[:n]
        shift = jax.random.uniform(key, (1, place.dimension))
        return place.place((jnp.asarray(points) + shift) % 1.0)


class Adaptive(Sampler):
    """Residual-adaptive points: from a pool of uniform ones, density ∝ |r|ᵖ/mean|r|ᵖ + floor (Wu et al. 2023).

    The interior is adapted; conditions keep uniform points. Points are drawn without replacement.

    **Arguments:**

    - `pool`: candidates for each point, a whole number ≥ 1; 1 is uniform.
    - `floor`: ≥ 0; more is closer to uniform.
    - `power`: p ≥ 0 of the residual.
    - `**counts`: points of each term by name, `interior=1000, walls=100`.

    **Returns:** called as `sampler(key, problem, params)`, a dictionary of `Samples` by term.
    """

    counts: Mapping[str, int] = eqx.field(static=True)
    pool: int = eqx.field(static=True)
    floor: float
    power: float

    def __init__(self, pool: int = 8, floor: float = 1.0, power: float = 1.0, **counts: int):
        if not (isinstance(pool, Integral) and pool >= 1 and floor >= 0 and power >= 0):
            raise ValueError("Adaptive: it takes a whole number pool ≥ 1, floor ≥ 0 and power ≥ 0.")
        self.counts, self.pool, self.floor, self.power = _Counts(counts), pool, floor, power

    def __call__(self, key: Array, problem: Any, params: PyTree) -> dict[str, Samples]:
        samples = Uniform(**self.counts)(key, problem, params)
        n = self.counts[INTERIOR]
        candidates = spread(_uniform(_named(key, "pool"), problem.domain, self.pool * n), params)
        r = jax.vmap(problem.residuals[INTERIOR], (None, 0))(params, candidates)
        size = jnp.sqrt(jnp.sum(r.reshape(self.pool * n, -1) ** 2, axis=1)) ** self.power
        density = size / jnp.mean(size) + self.floor
        gumbel = jax.random.gumbel(_named(key, "choice"), (self.pool * n,))
        _, chosen = jax.lax.top_k(jnp.log(density) + gumbel, n)
        return samples | {INTERIOR: Samples(candidates[chosen])}


class Fixed(Sampler):
    """What another sampler draws first, for ever; it warns where there are more parameters than residuals.

    **Arguments:**

    - `inner`: the other sampler.
    - `key`: with which it draws.

    **Returns:** called as `sampler(key, problem, params)`, a dictionary of `Samples` by term.
    """

    inner: Sampler
    key: Array

    def __init__(self, inner: Sampler, key: Array):
        self.inner, self.key = inner, key

    @property
    def every(self) -> float:
        return float("inf")

    def __call__(self, key: Array, problem: Any, params: PyTree) -> dict[str, Samples]:
        samples = self.inner(self.key, problem, params)
        warn_of_overfitting(problem, params, samples)
        return samples


class Renewed(Sampler):
    """Another sampler's points, each set for some steps; many steps on too few points bring `Fixed`'s warning.

    **Arguments:**

    - `inner`: the other sampler.
    - `every`: how many steps a set serves, at least 1; 500 suits quasi-Newton methods.

    **Returns:** called as `sampler(key, problem, params)`, a dictionary of `Samples` by term.
    """

    inner: Sampler
    steps: int = eqx.field(static=True)

    def __init__(self, inner: Sampler, every: int):
        if not isinstance(every, Integral) or every < 1:
            raise ValueError(f"Renewed: every must be a whole number, at least 1, got {every}.")
        self.inner, self.steps = inner, every

    @property
    def every(self) -> float:
        return self.steps

    def __call__(self, key: Array, problem: Any, params: PyTree) -> dict[str, Samples]:
        samples = self.inner(key, problem, params)
        if self.steps >= LONG:
            warn_of_overfitting(problem, params, samples)
        return samples


class Rolling(Sampler):
    """Another sampler's points, of which the oldest make way for new ones before every step.

    Where `Renewed` exchanges all points at once, the first step on new ones is a jump; here the error falls smoothly.

    **Arguments:**

    - `inner`: draws the first points, and how many there are.
    - `new`: draws those that come in with every step: a twentieth as many serve twenty steps.

    **Returns:** called as `sampler(key, problem, params)`, a dictionary of `Samples` by term; `move` exchanges some.
    """

    inner: Sampler
    new: Sampler

    def __call__(self, key: Array, problem: Any, params: PyTree) -> dict[str, Samples]:
        return self.inner(key, problem, params)

    def move(self, key: Array, problem: Any, params: PyTree, samples: dict[str, Samples]) -> dict[str, Samples]:
        """New points in front, and as many fewer at the end; weights stay as they are."""
        new = self.new(key, problem, params)
        return {
            name: Samples(jax.tree.map(_in_front, new[name].x, part.x), part.omega) for name, part in samples.items()
        }


def _in_front(new: Array, old: Array) -> Array:
    return jnp.concatenate([new, old])[: len(old)]


class Balanced(Sampler):
    """Another sampler's points, with conditions weighed by how strongly the parameters move them.

    Each condition's weight is multiplied by (mean |∂_θ r|² of the equation / that of the
    condition)^power,
    estimated with the present parameters; one that they do not move keeps its weight.

    **Arguments:**

    - `inner`: the other sampler.
    - `power`: with 1 every term has the same trace in the metric; ½ is a compromise between that and the weights as
      given.
    - `looks`: points of each term that the estimate uses.

    **Returns:** called as `sampler(key, problem, params)`, a dictionary of `Samples` by term.
    """

    inner: Sampler
    power: float = 0.5
    looks: int = eqx.field(static=True, default=64)

    @property
    def every(self) -> float:
        return self.inner.every

    def __call__(self, key: Array, problem: Any, params: PyTree) -> dict[str, Samples]:
        samples = self.inner(key, problem, params)
        size = {name: self._size(f, params, samples[name]) for name, f in problem.residuals.items()}
        safe = {name: jnp.where(part > 0, part, size[INTERIOR]) for name, part in size.items()}
        ratio = {name: (size[INTERIOR] / safe[name]) ** self.power for name in size}
        return {name: Samples(part.x, ratio[name] * part.omega) for name, part in samples.items()}

    def _size(self, f: Any, params: PyTree, samples: Samples) -> Float[Array, ""]:
        """Mean squared length of ∂_θ r over evenly spaced points of the list."""
        n = samples.omega.shape[0]
        chosen = jnp.arange(min(self.looks, n)) * n // min(self.looks, n)
        rows = jax.vmap(jax.jacrev(f), (None, 0))(params, jax.tree.map(lambda x: x[chosen], samples.x))
        return sum((jnp.sum(leaf**2) for leaf in jax.tree.leaves(rows)), jnp.zeros(())) / chosen.shape[0]


def warn_of_overfitting(problem: Any, params: PyTree, samples: dict[str, Samples]) -> None:
    """Fixed points with more parameters than residuals can be fitted exactly, and the equation not at all."""
    points = {name: part.x for name, part in samples.items()}
    shapes = jax.eval_shape(
        lambda q: {n: jax.vmap(f, (None, 0))(q, points[n]) for n, f in problem.residuals.items()}, params
    )
    rows = sum(shape.size for shape in jax.tree.leaves(shapes))
    p = count(params)
    if p > rows:
        warnings.warn(
            f"{rows} residuals at fixed points cannot hold {p} parameters: the points will be fitted, the equation "
            "will not. Use more points, a smaller network, or draw new points as you go.",
            stacklevel=3,
        )


def check_counts(counts: Mapping[str, int], problem: Any) -> None:
    """Every term needs points, and every count a term."""
    terms = set(problem.places())
    if set(counts) != terms:
        raise ValueError(f"Points are needed for {sorted(terms)}, but counts name {sorted(counts)}.")
    if not all(isinstance(n, Integral) and n >= 1 for n in counts.values()):
        raise ValueError(f"Every term needs a whole number of points, at least one point, got {dict(counts)}.")
    for name, place in problem.places().items():
        if isinstance(place, Faces) and counts[name] < len(place.parts):
            raise ValueError(f"{name!r} has {len(place.parts)} faces and needs as many points, got {counts[name]}.")


class _Counts(dict[str, int]):
    """A dictionary that may be a static field."""

    def __hash__(self):  # type: ignore[override]
        return hash(tuple(sorted(self.items())))


def _named(key: Array, name: str) -> Array:
    """A key of its own for every name, the same in every process."""
    return jax.random.fold_in(key, zlib.crc32(name.encode()))


def _uniform(key: Array, place: Any, n: int) -> PyTree:
    return place.place(jax.random.uniform(key, (n, place.dimension)))
