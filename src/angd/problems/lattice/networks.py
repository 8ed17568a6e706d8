"""Networks for log ψ of lattices, called as `network(params, x)`; `network.init(key)` gives their parameters.

RBM           a Σx + Σ log cosh(b + W x), real or complex, as it stands or summed over translations
Convolution   translation-invariant layers over the whole lattice, real or complex
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Inexact, Int, PyTree

from angd.method.pairs import paired, unpaired
from angd.problems.lattice.lattices import Lattice


class RBM(eqx.Module):
    """A restricted Boltzmann machine: log ψ = Σ a x + Σ log cosh(b + W x) (Carleo and Troyer 2017).

    **Arguments:**

    - `size`: integers in a configuration.
    - `hidden`: units; as many as `size` is usual. With `symmetry`, units that are repeated over it.
    - `symmetry`: permutations of the entries, such as `lattice.translations()`: each unit sees x moved by each of them,
      so that none changes log ψ. None: no symmetry.
    - `complex`: complex parameters, kept as pairs of real ones.
    - `spread`: of the first parameters.

    **Returns:** called as `(params, x)`, log ψ.

    **Example:** `RBM(10, 8, ring(10).translations())`
    """

    size: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)
    symmetry: Int[np.ndarray, "order size"] | None = eqx.field(default=None)
    complex: bool = eqx.field(static=True, default=False)
    spread: float = eqx.field(static=True, default=0.05)

    def __check_init__(self):
        if self.size < 1 or self.hidden < 1:
            raise ValueError(f"RBM: size and hidden must be at least 1, got {self.size} and {self.hidden}.")

    def init(self, key: Array) -> PyTree:
        """Small random numbers."""
        visible = self.size if self.symmetry is None else 1
        shapes = {"a": (visible,), "b": (self.hidden,), "W": (self.hidden, self.size)}
        return paired(drawn(key, shapes, self.spread, self.complex))

    def __call__(self, params: PyTree, x: Int[Array, "n"]) -> Inexact[Array, ""]:
        p = unpaired(params)
        s = x.astype(jnp.real(p["W"]).dtype)
        seen = s[None] if self.symmetry is None else s[self.symmetry]
        units = log_cosh(seen @ p["W"].T + p["b"][None])
        return jnp.sum(units) + jnp.sum(p["a"] * s)


class Convolution(eqx.Module):
    """Layers that see the whole lattice from every site: translation-invariant, with log cosh at the end.

    **Arguments:**

    - `lattice`: a `Lattice`.
    - `widths`: channels of each layer.
    - `complex`: complex parameters, kept as pairs of real ones.
    - `spread`: of the first parameters, relative to the usual ones.

    **Returns:** called as `(params, x)`, log ψ.

    **Example:** `Convolution(ring(10), (8, 8))`
    """

    lattice: Lattice = eqx.field(static=True)
    widths: tuple[int, ...] = eqx.field(static=True, default=(8, 8))
    complex: bool = eqx.field(static=True, default=False)
    spread: float = eqx.field(static=True, default=0.3)

    def init(self, key: Array) -> PyTree:
        """Random numbers that shrink with the number of inputs."""
        ins, n, layers = (1, *self.widths), self.lattice.sites, []
        for k, (i, o) in enumerate(zip(ins, self.widths, strict=False)):
            made = drawn(jax.random.fold_in(key, k), {"W": (n, i, o)}, self.spread / (n * i) ** 0.5, self.complex)
            layers.append(made | {"b": jnp.zeros_like(made["W"], shape=(o,))})
        return paired(layers)

    def __call__(self, params: PyTree, x: Int[Array, "n"]) -> Inexact[Array, ""]:
        layers, moved = unpaired(params), jnp.asarray(self.lattice.translations())
        y = x.astype(jnp.real(layers[0]["W"]).dtype)[:, None]
        for k, layer in enumerate(layers):
            n, i, o = layer["W"].shape
            z = y[moved].reshape(n, n * i) @ layer["W"].reshape(n * i, o) + layer["b"][None]
            y = log_cosh(z) if k == len(layers) - 1 else jnp.tanh(z)
        return jnp.sum(y)


def log_cosh(z: Inexact[Array, "..."]) -> Inexact[Array, "..."]:
    """log cosh, for real and complex z, large ones as well."""
    away = jnp.where(jnp.real(z) < 0, -z, z)
    return away + jnp.log1p(jnp.exp(-2 * away)) - jnp.log(2.0)


def drawn(key: Array, shapes: dict[str, tuple[int, ...]], spread: float, is_complex: bool) -> dict[str, Any]:
    """Normal numbers for every shape."""
    keys = jax.random.split(key, len(shapes))
    dtype = jnp.result_type(float, complex) if is_complex else jnp.result_type(float)
    drawn = {name: jax.random.normal(k, s, dtype) for k, (name, s) in zip(keys, shapes.items(), strict=True)}
    return {name: spread * (2**0.5 if is_complex else 1) * value for name, value in drawn.items()}
