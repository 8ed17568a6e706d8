"""Functionals L(ρ) that recur: entropies, mean energies, squared distances. Any JAX function of a point will do.

They are modules rather than closures: two that differ in numbers only are compiled once.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from angd.flow.manifolds.fisher_rao import FisherRaoManifold
from angd.flow.manifolds.gaussian import Gaussian
from angd.flow.manifolds.wasserstein import WassersteinManifold

Scalar = Float[Array, ""]


class RelativeEntropy(eqx.Module):
    """KL(ρ ‖ target) = ∫ ρ log(ρ/target) on a grid, the simplex or the torus.

    **Arguments:**

    - `manifold`: a `FisherRaoManifold` with n cells, or a `WassersteinManifold`.
    - `target`: a positive density of mass 1, shape (n,) or that of the grid; `manifold.normalise` makes one.

    **Returns:** called with ρ of the shape of `target`, a scalar.
    """

    manifold: FisherRaoManifold | WassersteinManifold
    target: Float[Array, "*n"]

    def __call__(self, rho: Float[Array, "*n"]) -> Scalar:
        return jnp.sum(self.manifold.omega * rho * jnp.log(rho / self.target))


class MeanEnergy(eqx.Module):
    """E_ρ V = ∫ ρ V, linear in ρ.

    **Arguments:**

    - `manifold`: a `FisherRaoManifold` with n cells, or a `WassersteinManifold`.
    - `potential`: V at the cells, shape (n,) or that of the grid.

    **Returns:** called with ρ of the shape of `potential`, a scalar.
    """

    manifold: FisherRaoManifold | WassersteinManifold
    potential: Float[Array, "*n"]

    def __call__(self, rho: Float[Array, "*n"]) -> Scalar:
        return jnp.sum(self.manifold.omega * rho * self.potential)


class MeanSquareDistance(eqx.Module):
    """Σ (cᵢ/2) dist²(ρ, pᵢ), geodesically convex on Fisher–Rao; its minimiser is the Karcher mean of the pᵢ.

    **Arguments:**

    - `manifold`: a `FisherRaoManifold` with n cells.
    - `anchors`: the densities pᵢ, shape (m, n), each of mass 1.
    - `weights`: the numbers cᵢ > 0, shape (m,).

    **Returns:** called with ρ of shape (n,), a scalar.
    """

    manifold: FisherRaoManifold
    anchors: Float[Array, "m n"]
    weights: Float[Array, "m"]

    def __call__(self, rho: Float[Array, "n"]) -> Scalar:
        squares = jax.vmap(self.manifold.square_angle, in_axes=(None, 0))(rho, self.anchors)
        return 2 * jnp.vdot(self.weights, squares)


class GaussianRelativeEntropy(eqx.Module):
    """KL(N(m, S) ‖ target) for Gaussians.

    **Arguments:**

    - `target`: a `Gaussian` with mean of shape (d,) and covariance of shape (d, d).

    **Returns:** called with a `Gaussian`, a scalar.
    """

    target: Gaussian

    def __call__(self, rho: Gaussian) -> Scalar:
        precision = jnp.linalg.inv(self.target.cov)
        shift = rho.mean - self.target.mean
        log_volumes = jnp.linalg.slogdet(self.target.cov)[1] - jnp.linalg.slogdet(rho.cov)[1]
        return 0.5 * (jnp.vdot(precision, rho.cov) - rho.mean.shape[0] + log_volumes + shift @ precision @ shift)


class FreeEnergy(eqx.Module):
    """∫ V(X(u)) du − ∫ log X′(u) du of a quantile function with equal weights: potential energy less entropy.

    **Arguments:**

    - `potential`: V, a function of an array of places that acts on every entry.

    **Returns:** called with increasing X of shape (n,), a scalar.
    """

    potential: Callable[[Array], Array]

    def __call__(self, X: Float[Array, "n"]) -> Scalar:
        return jnp.mean(self.potential(X)) - jnp.mean(jnp.log(jnp.diff(X) * X.shape[0]))


class InteractionEnergy(eqx.Module):
    """Σ ωᵢ V(xᵢ) + ½ Σ ωᵢωⱼ W(xᵢ − xⱼ) of weighted particles.

    **Arguments:**

    - `omega`: masses ω > 0 that sum to 1, shape (n,).
    - `potential`: V, from places (n, d) to values (n,): it acts on the last axis.
    - `pair`: W, from differences (n, n, d) to values (n, n).

    **Returns:** called with places of shape (n, d), a scalar.
    """

    omega: Float[Array, "n"]
    potential: Callable[[Array], Array]
    pair: Callable[[Array], Array]

    def __call__(self, x: Float[Array, "n d"]) -> Scalar:
        pairs = self.pair(x[:, None, :] - x[None, :, :])
        return self.omega @ self.potential(x) + 0.5 * self.omega @ pairs @ self.omega
