"""Functionals L(ρ) that recur: entropies, mean energies, squared distances. Any JAX function of a point will do."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from angd.flow.manifolds.fisher_rao import FisherRao
from angd.flow.manifolds.gaussian import Gaussian

Scalar = Float[Array, ""]


def relative_entropy(manifold: FisherRao, target: Array) -> Callable[[Array], Scalar]:
    """KL(ρ ‖ target) = ∫ ρ log(ρ/target) on a grid or the simplex."""
    return lambda rho: jnp.sum(manifold.omega * rho * jnp.log(rho / target))


def mean_energy(manifold: FisherRao, potential: Array) -> Callable[[Array], Scalar]:
    """E_ρ V, linear in ρ."""
    return lambda rho: jnp.sum(manifold.omega * rho * potential)


def mean_square_distance(manifold: FisherRao, anchors: Array, weights: Array) -> Callable[[Array], Scalar]:
    """Σ (cᵢ/2) dist²(ρ, pᵢ), geodesically convex on Fisher–Rao; its minimiser is the Karcher mean of the anchors."""
    return lambda rho: sum(
        (2 * c * manifold.square_angle(rho, p) for c, p in zip(weights, anchors, strict=True)), jnp.zeros(())
    )


def gaussian_relative_entropy(target: Gaussian) -> Callable[[Gaussian], Scalar]:
    """KL(N(m, S) ‖ N(m*, S*))."""
    precision = jnp.linalg.inv(target.cov)
    log_det = jnp.linalg.slogdet(target.cov)[1]

    def functional(rho: Gaussian) -> Scalar:
        shift = rho.mean - target.mean
        spread = jnp.vdot(precision, rho.cov) - rho.mean.shape[0] + log_det - jnp.linalg.slogdet(rho.cov)[1]
        return 0.5 * (spread + shift @ precision @ shift)

    return functional


def free_energy(potential: Callable[[Array], Array]) -> Callable[[Array], Scalar]:
    """∫ V(X(u)) du − ∫ log X′(u) du of a quantile function with equal weights: potential energy minus entropy."""

    def functional(X: Array) -> Scalar:
        return jnp.mean(potential(X)) - jnp.mean(jnp.log(jnp.diff(X) * X.shape[0]))

    return functional


def interaction_energy(omega: Any, potential: Callable[[Array], Array], pair: Callable[[Array], Array]):
    """Σ ωᵢ V(xᵢ) + ½ Σ ωᵢωⱼ W(xᵢ − xⱼ) of weighted particles (n, d); V and W act on the last axis."""
    omega = jnp.asarray(omega, dtype=float)

    def functional(x: Array) -> Scalar:
        pairs = pair(x[:, None, :] - x[None, :, :])
        return jnp.sum(omega * potential(x)) + 0.5 * jnp.sum(omega[:, None] * omega[None, :] * pairs)

    return functional
