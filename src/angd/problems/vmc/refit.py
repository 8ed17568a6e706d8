"""Velocities of electrons at new places: away from nuclei and from each other, the same for equal spins."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from angd.method.metrics.refit import AbstractRefit
from angd.problems.vmc.molecules import Molecule


class ElectronRefit(AbstractRefit):
    """Each electron's velocity as a sum of vectors at its place, fitted to all electrons of its spin at once.

    The vectors: 1 and x in every direction; unit vectors away from each nucleus, and summed over the electrons of
    either spin, as they are and fading with each range. Forces of Coulomb systems are of this kind, which an affine
    field of all coordinates is not. No coordinate that is read exceeds the largest that was fitted: where few walkers
    are, a fit may run away.

    **Arguments:**

    - `molecule`: a `Molecule`.
    - `ranges`: over which the vectors fade, in Bohr radii.
    - `ridge`: relative to each vector's own mean square.

    **Returns:** called with `(x, V, omega, at)`, velocities at the points `at`, shape (n, D).
    """

    molecule: Molecule = eqx.field(static=True)
    ranges: tuple[float, ...] = eqx.field(static=True, default=(0.1, 0.3, 1.0, 3.0))
    ridge: float = 1e-4

    def __call__(
        self, x: Float[Array, "n D"], V: Float[Array, "n D"], omega: Float[Array, "n"], at: Float[Array, "n D"]
    ) -> Float[Array, "n D"]:
        n, up = x.shape[0], self.molecule.spins[0]
        vectors, there = (jax.vmap(self.vectors)(points.reshape(n, -1, 3)) for points in (x, at))
        velocities, weights = V.reshape(n, -1, 3), omega.astype(x.dtype)
        fitted = [
            self._fitted(vectors[:, spin], velocities[:, spin], weights, there[:, spin])
            for spin in (slice(0, up), slice(up, None))
        ]
        most = jnp.max(jnp.abs(V))
        return jnp.clip(jnp.concatenate(fitted, axis=1).reshape(x.shape), -most, most)

    def vectors(self, x: Float[Array, "e 3"]) -> Float[Array, "e K 3"]:
        """What a velocity is made of, at every electron."""
        up, eye = self.molecule.spins[0], jnp.eye(3, dtype=x.dtype)
        nuclei = jnp.asarray(self.molecule.places, x.dtype)
        away = self._fading(x[:, None] - nuclei[None])
        apart = self._fading(x[:, None] - x[None])
        parts = [
            jnp.broadcast_to(eye, (x.shape[0], 3, 3)),
            (x[:, :, None, None] * eye[None, None]).reshape(x.shape[0], 9, 3),
            away.reshape(x.shape[0], -1, 3),
            jnp.sum(apart[:, :up], axis=1),
            jnp.sum(apart[:, up:], axis=1),
        ]
        return jnp.concatenate(parts, axis=1)

    def _fading(self, u: Float[Array, "e m 3"]) -> Float[Array, "e m R 3"]:
        """Unit vectors, as they are and fading with every range; an electron does not push itself."""
        square = jnp.sum(u**2, axis=-1, keepdims=True)
        r = jnp.sqrt(jnp.where(square > 0, square, 1.0))
        unit, rates = jnp.where(square > 0, u / r, 0.0), jnp.asarray((*(1 / a for a in self.ranges), 0.0), u.dtype)
        return jnp.exp(-r * rates[None, None])[..., None] * unit[:, :, None]

    def _fitted(
        self,
        vectors: Float[Array, "n e K 3"],
        V: Float[Array, "n e 3"],
        omega: Float[Array, "n"],
        at: Float[Array, "n e K 3"],
    ) -> Float[Array, "n e 3"]:
        gram = jnp.einsum("n,neki,neli->kl", omega, vectors, vectors)
        size = jnp.sqrt(jnp.maximum(jnp.diagonal(gram), jnp.finfo(gram.dtype).tiny))
        gram = gram / (size[:, None] * size[None]) + self.ridge * jnp.eye(size.shape[0], dtype=gram.dtype)
        right = jnp.einsum("n,neki,nei->k", omega, vectors, V) / size
        return jnp.einsum("neki,k->nei", at, jnp.linalg.solve(gram, right) / size)
