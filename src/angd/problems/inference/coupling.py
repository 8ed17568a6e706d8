"""Normalising flows by coupling: half of the coordinates say how the other half is moved, then they change places.

    A (x − m) = y,   y = g_K ∘ … ∘ g_1(z),   z ~ N(0, I)          log ρ(x) = log N(z) − Σ log |det ∂g| + log |det A|

Each g moves one half by a monotone map with numbers from a small network of the other half, so that both directions
and the determinant are explicit (Dinh, Sohl-Dickstein and Bengio 2017). RealNVP and SplineFlow differ in that map
alone; `AbstractCouplingFlow` is for one of your own.
"""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from angd.problems.inference.base import check_number, noise, standard_normal
from angd.problems.inference.gaussian import AffineGaussian
from angd.problems.pinn.networks import Network

Point = Float[Array, " d"]
Number = Float[Array, ""]
FIRST = 0.1  # of the usual size are the last weights of each network at the start: nearly the identity


class AbstractCouplingFlow(eqx.Module):
    """A flow by coupling: a subclass says how one number is moved, given what the network says about it."""

    dimension: eqx.AbstractVar[int]
    layers: eqx.AbstractVar[int]
    widths: eqx.AbstractVar[tuple[int, ...]]

    @property
    @abc.abstractmethod
    def numbers(self) -> int:
        """How many numbers the network gives for each coordinate that is moved."""

    @abc.abstractmethod
    def forward(self, numbers: Float[Array, " k"], x: Number) -> tuple[Number, Number]:
        """y(x), increasing, and log y′(x)."""

    @abc.abstractmethod
    def backward(self, numbers: Float[Array, " k"], y: Number) -> tuple[Number, Number]:
        """x(y), and log y′(x) there."""

    def init(self, key: Array) -> PyTree:
        """Nearly the identity: ρ begins close to N(0, I)."""
        keys = jax.random.split(key, self.layers)
        return {"base": self._base.init(key), "layers": [self._layer(k, i) for i, k in enumerate(keys)]}

    def log_density(self, params: PyTree, x: Point) -> Number:
        x, log_det = self._base.to_noise(params["base"], x)
        for i, layer in reversed(list(enumerate(params["layers"]))):
            x, more = self._moved(layer, i, x, inverse=True)
            log_det = log_det + more
        return standard_normal(x) - log_det

    def sample(self, params: PyTree, key: Array, n: int) -> Float[Array, "n d"]:
        y = jax.vmap(lambda z: self.coupled(params, z))(noise(key, n, self.dimension))
        return y @ self._base.root(params["base"]).T + params["base"]["mean"][None]

    def coupled(self, params: PyTree, z: Point) -> Point:
        """The point y that the layers carry noise z to, before the affine map."""
        for i, layer in enumerate(params["layers"]):
            z, _ = self._moved(layer, i, z, inverse=False)
        return z

    @property
    def _base(self) -> AffineGaussian:
        return AffineGaussian(self.dimension)

    def _sizes(self, i: int) -> tuple[int, int]:
        """How many coordinates layer i keeps, and how many it moves."""
        first = self.dimension // 2
        return (first, self.dimension - first) if i % 2 == 0 else (self.dimension - first, first)

    def _network(self, i: int) -> Network:
        return Network(self.widths, outputs=self._sizes(i)[1] * self.numbers)

    def _layer(self, key: Array, i: int) -> PyTree:
        *hidden, (W, b) = self._network(i).init(key, self._sizes(i)[0])
        return [*hidden, (FIRST * W, b)]

    def _moved(self, layer: PyTree, i: int, x: Point, inverse: bool) -> tuple[Point, Number]:
        """x after layer i, or before it, and the logarithm of the layer's determinant."""
        first = self.dimension // 2
        kept, other = (x[:first], x[first:]) if i % 2 == 0 else (x[first:], x[:first])
        numbers = self._network(i)(layer, kept).reshape(other.shape[0], self.numbers)
        other, logs = jax.vmap(self.backward if inverse else self.forward)(numbers, other)
        halves = (kept, other) if i % 2 == 0 else (other, kept)
        return jnp.concatenate(halves), jnp.sum(logs)


def check_flow(flow: AbstractCouplingFlow) -> None:
    """Refuse what cannot be a flow by coupling."""
    name = type(flow).__name__
    check_number("dimension", flow.dimension, 1, name)
    check_number("layers", flow.layers, 1, name)
    if flow.dimension < 2:
        raise ValueError(f"{name}: coupling needs two coordinates at least; in one dimension take Mixture(1).")
