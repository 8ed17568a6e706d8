"""Velocities at new places: fit a vector field to (x̃ᵢ, Vᵢ) and read it at the walkers that a Markov chain has moved.

A velocity left on a walker that moved by chance belongs to a place where the walker no longer is; carrying it on
multiplies every mode of the momentum but the mean by the walker's autocorrelation.
"""

import abc

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float


class AbstractRefit(eqx.Module):
    """A regression of velocities on places, for `Wasserstein`: a subclass defines `__call__(x, V, omega, at)`."""

    @abc.abstractmethod
    def __call__(
        self, x: Float[Array, "n D"], V: Float[Array, "n D"], omega: Float[Array, "n"], at: Float[Array, "n D"]
    ) -> Float[Array, "n D"]:
        """The field fitted to V at x with weights ω, read at other points."""


class AffineRefit(AbstractRefit):
    """V ≈ A x + a by weighted least squares: cheap in any dimension, exact on Gaussians.

    **Arguments:**

    - `ridge`: relative to the trace of the normal equations; 1e-10 only keeps them regular.

    **Returns:** called with `(x, V, omega, at)`, velocities at the points `at`, shape (n, D).
    """

    ridge: float = 1e-10

    def __call__(
        self, x: Float[Array, "n D"], V: Float[Array, "n D"], omega: Float[Array, "n"], at: Float[Array, "n D"]
    ) -> Float[Array, "n D"]:
        features, weights = _affine(x), omega.astype(x.dtype)[:, None]
        gram = features.T @ (weights * features)
        gram = gram + self.ridge * jnp.trace(gram) * jnp.eye(gram.shape[0], dtype=gram.dtype)
        return _affine(at) @ jnp.linalg.solve(gram, features.T @ (weights * V))


class KernelRefit(AbstractRefit):
    """An affine field plus Gaussian kernel ridge regression of what it leaves; for few dimensions, n³ work.

    **Arguments:**

    - `width`: of the kernel, in units of the root-mean-square distance from the mean.
    - `ridge`: relative to the kernel's diagonal of 1; more for noisier velocities.

    **Returns:** called with `(x, V, omega, at)`, velocities at the points `at`, shape (n, D).
    """

    width: float = 1.0
    ridge: float = 1e-3

    def __call__(
        self, x: Float[Array, "n D"], V: Float[Array, "n D"], omega: Float[Array, "n"], at: Float[Array, "n D"]
    ) -> Float[Array, "n D"]:
        affine = AffineRefit()
        rest = V - affine(x, V, omega, x)
        spread = x - jnp.mean(x, axis=0, keepdims=True)
        scale = self.width * jnp.sqrt(jnp.mean(jnp.sum(spread**2, axis=1)))
        inside = _gauss(x, x, scale) + self.ridge * jnp.eye(x.shape[0], dtype=x.dtype)
        return affine(x, V, omega, at) + _gauss(at, x, scale) @ jnp.linalg.solve(inside, rest)


def _affine(x: Float[Array, "n D"]) -> Float[Array, "n D1"]:
    return jnp.concatenate([jnp.ones((x.shape[0], 1), x.dtype), x], axis=1)


def _gauss(x: Float[Array, "n D"], y: Float[Array, "m D"], scale: Float[Array, ""]) -> Float[Array, "n m"]:
    square = jnp.sum((x[:, None, :] - y[None, :, :]) ** 2, axis=-1)
    return jnp.exp(-square / (2 * scale**2))
