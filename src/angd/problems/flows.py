"""The flows of the catalogue, built: manifold, functional, start and, where it is known, the minimiser."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optimistix

from angd.flow.functionals import (
    FreeEnergy,
    GaussianRelativeEntropy,
    InteractionEnergy,
    MeanEnergy,
    MeanSquareDistance,
    RelativeEntropy,
)
from angd.flow.manifolds.base import AbstractManifold
from angd.flow.manifolds.fisher_rao import FisherRaoManifold
from angd.flow.manifolds.gaussian import Gaussian, GaussianManifold
from angd.flow.manifolds.hessian import HessianManifold
from angd.flow.manifolds.interval import SobolevIntervalManifold
from angd.flow.manifolds.matrix import MatrixManifold
from angd.flow.manifolds.particles import ParticleManifold, QuantileManifold
from angd.flow.manifolds.sobolev import SobolevManifold
from angd.flow.manifolds.wasserstein import WassersteinManifold


class FlowProblem(NamedTuple):
    """What `solve_flow` needs besides the coefficients."""

    manifold: AbstractManifold
    functional: Callable[[Any], Any]
    rho0: Any
    minimiser: Any


def build(manifold: str, functional: str, s: int) -> FlowProblem:
    """The problem of that name; `s` is the order of the Sobolev space."""
    return _BUILDERS[manifold, functional](s)


def _stationary_point(functional: Callable[[Any], Any], start: Any) -> Any:
    """A point where the derivative of `functional` vanishes, by Newton's method."""
    solver = optimistix.Newton(rtol=1e-12, atol=1e-13)
    return optimistix.root_find(lambda x, _: jax.grad(functional)(x), solver, start, max_steps=200).value


def _quartic(s: int) -> FlowProblem:
    manifold = SobolevManifold(s, 31)
    (x,) = manifold.grid()
    wave, F = np.fft.fftfreq(31, 1 / 31), np.cos(x) + 0.5 * np.sin(2 * x)

    def functional(u):
        slope = jnp.real(jnp.fft.ifft(1j * wave * jnp.fft.fft(u)))
        return jnp.mean(0.025 * slope**2 + u**4 / 4 - F * u)

    minimiser = _stationary_point(functional, jnp.asarray(np.cbrt(F)))
    return FlowProblem(manifold, functional, jnp.asarray(0.8 * np.sin(x) + 0.2), minimiser)


def _power(s: int) -> FlowProblem:
    return FlowProblem(SobolevManifold(s, 1), lambda u: jnp.abs(jnp.mean(u)) ** 1.2, jnp.ones(1), jnp.zeros(1))


def _interval(s: int) -> FlowProblem:
    manifold = SobolevIntervalManifold(s, 16, 0.0, np.pi)
    (x,) = manifold.grid()
    omega, F = jnp.asarray(manifold.omega), jnp.asarray(np.cos(x) + 0.5 * np.cos(2 * x))

    def functional(u):
        return omega @ (u**4 / 4 + u**2 / 2 - F * u)

    minimiser = _stationary_point(functional, F / 2)
    return FlowProblem(manifold, functional, jnp.asarray(0.8 * np.cos(x) + 0.2), minimiser)


def _circle_entropy(s: int) -> FlowProblem:
    manifold = WassersteinManifold(41)
    (x,) = manifold.grid()
    target = manifold.normalise(jnp.asarray(np.exp(0.5 * np.cos(x))))
    return FlowProblem(manifold, RelativeEntropy(manifold, target), jnp.ones(41), target)


def _torus_entropy(s: int) -> FlowProblem:
    manifold = WassersteinManifold((13, 13))
    x, y = manifold.grid()
    target = manifold.normalise(jnp.asarray(np.exp(0.3 * np.cos(x) + 0.2 * np.sin(x + y))))
    return FlowProblem(manifold, RelativeEntropy(manifold, target), jnp.ones((13, 13)), target)


def _line_densities() -> tuple[FisherRaoManifold, Any, Any]:
    manifold = FisherRaoManifold.grid(-3.0, 3.0, 64)
    x = jnp.asarray(np.linspace(-3, 3, 64))
    return manifold, x, manifold.normalise(jnp.exp(-((x - 0.5) ** 2) / (2 * 0.9**2)))


def _line_entropy(s: int) -> FlowProblem:
    manifold, x, rho0 = _line_densities()
    target = manifold.normalise(jnp.exp(-(x**2) / 2))
    return FlowProblem(manifold, RelativeEntropy(manifold, target), rho0, target)


def _line_energy(s: int) -> FlowProblem:
    manifold, x, rho0 = _line_densities()
    return FlowProblem(manifold, MeanEnergy(manifold, x**2 / 2), rho0, None)


def _square_distance(s: int) -> FlowProblem:
    manifold = FisherRaoManifold.simplex(3)
    anchors = jnp.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.25, 0.15, 0.6]])
    functional = MeanSquareDistance(manifold, anchors, jnp.array([0.7, 1.3, 0.5]))
    logits = _stationary_point(lambda z: functional(_softmax(z)), jnp.zeros(2))
    return FlowProblem(manifold, functional, jnp.array([0.7, 0.1, 0.2]), _softmax(logits))


def _softmax(z: Any) -> Any:
    return jax.nn.softmax(jnp.append(z, 0.0))


def _simplex_entropy(s: int) -> FlowProblem:
    manifold, target = FisherRaoManifold.simplex(5), jnp.array([0.35, 0.1, 0.25, 0.2, 0.1])
    return FlowProblem(
        manifold, RelativeEntropy(manifold, target), jax.nn.softmax(jnp.array([0.8, -0.5, 0.1, 0.6, -1.0])), target
    )


def _gaussian(s: int) -> FlowProblem:
    target = Gaussian(jnp.zeros(2), jnp.linalg.inv(jnp.array([[2.0, 0.6], [0.6, 0.7]])))
    rho0 = Gaussian(jnp.array([0.5, -0.3]), jnp.array([[0.5, -0.3], [-0.3, 1.6]]))
    return FlowProblem(GaussianManifold(), GaussianRelativeEntropy(target), rho0, target)


def _free_energy(s: int) -> FlowProblem:
    X0 = jnp.asarray(np.linspace(-0.5, 1.0, 40))
    functional = FreeEnergy(_half_square_of_scalar)
    gibbs = jax.scipy.stats.norm.ppf((jnp.arange(40) + 0.5) / 40)
    return FlowProblem(QuantileManifold.midpoints(40), functional, X0, _stationary_point(functional, gibbs))


def _translation(s: int) -> FlowProblem:
    X0 = jnp.array([0.5, 1.0, 1.5])
    return FlowProblem(QuantileManifold.midpoints(3), lambda X: jnp.abs(jnp.mean(X)) ** 1.2, X0, X0 - 1.0)


def _interaction(s: int) -> FlowProblem:
    rng = np.random.default_rng(0)
    omega = rng.dirichlet(np.full(8, 5.0))
    functional = InteractionEnergy(jnp.asarray(omega), _half_square, _half_square)
    return FlowProblem(ParticleManifold(omega), functional, jnp.asarray(rng.normal(size=(8, 2))), jnp.zeros((8, 2)))


def _half_square(z: Any) -> Any:
    return jnp.sum(z**2, axis=-1) / 2


def _half_square_of_scalar(z: Any) -> Any:
    return z**2 / 2


def _orthant(s: int) -> FlowProblem:
    target = jnp.array([0.5, 1.0, 2.0])
    manifold = HessianManifold(lambda x: jnp.sum(x * jnp.log(x)), inside=lambda x: x)
    return FlowProblem(
        manifold, lambda x: jnp.sum(x * jnp.log(x / target) - x + target), jnp.array([1.5, 0.4, 0.7]), target
    )


def _half_plane(s: int) -> FlowProblem:
    manifold = MatrixManifold(lambda x: jnp.eye(2) / x[1] ** 2, inside=lambda x: x[1:])

    def functional(x):
        """½ dist² = 2 arcsinh²(√z), by its series where the root is not differentiable."""
        z = (x[0] ** 2 + (x[1] - 1) ** 2) / (4 * x[1])
        near = z < 1e-4
        far = jnp.arcsinh(jnp.sqrt(jnp.where(near, 1.0, z))) ** 2
        return 2 * jnp.where(near, z * (1 - z / 3 * (1 - 8 * z / 15)), far)

    return FlowProblem(manifold, functional, jnp.array([1.0, 0.4]), jnp.array([0.0, 1.0]))


_BUILDERS: dict[tuple[str, str], Callable[[int], FlowProblem]] = {
    ("sobolev", "quartic"): _quartic,
    ("sobolev", "power"): _power,
    ("interval", "quartic"): _interval,
    ("wasserstein", "relative-entropy"): _circle_entropy,
    ("wasserstein", "torus"): _torus_entropy,
    ("fisher-rao", "relative-entropy"): _line_entropy,
    ("fisher-rao", "linear-energy"): _line_energy,
    ("simplex", "square-distance"): _square_distance,
    ("simplex", "relative-entropy"): _simplex_entropy,
    ("gaussian", "relative-entropy"): _gaussian,
    ("quantiles", "free-energy"): _free_energy,
    ("quantiles", "power"): _translation,
    ("particles", "interaction"): _interaction,
    ("hessian", "relative-entropy"): _orthant,
    ("matrix", "half-plane"): _half_plane,
}
