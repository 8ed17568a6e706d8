"""One sample of every manifold: (manifold, a point, two cotangent vectors, a second point)."""

import jax
import jax.numpy as jnp
import numpy as np

import angd
from angd import Gaussian


def _spd(rng, d):
    A = rng.normal(size=(d, d))
    return jnp.asarray(A @ A.T / d + 0.3 * np.eye(d))


def _symmetric(rng, d):
    A = rng.normal(size=(d, d))
    return jnp.asarray(A + A.T) / 2


def _curved_metric(x):
    """A smooth positive definite matrix function without any symmetry."""
    i = jnp.arange(9.0).reshape(3, 3)
    A = jnp.sin(i + jnp.outer(x, jnp.array([1.0, 0.5, -0.7])) + 0.3 * x[None, :])
    return A @ A.T + jnp.diag(1.5 + x**2)


def manifolds():
    """name → (manifold, point, Φ, f, other point)."""
    rng = np.random.default_rng(1)

    def vector(*shape):
        return jnp.asarray(rng.normal(size=shape))

    def gaussian(d):
        return Gaussian(vector(d), _spd(rng, d))

    def covector(d):
        return Gaussian(vector(d), _symmetric(rng, d))

    def positive_density(*shape):
        manifold = angd.WassersteinManifold(shape)
        return manifold, manifold.normalise(jnp.exp(0.4 * vector(*shape)))

    circle, on_circle = positive_density(9)
    torus, on_torus = positive_density(3, 5)
    fr, simplex = angd.FisherRaoManifold(rng.uniform(0.5, 1.5, 6)), angd.FisherRaoManifold.simplex(5)

    def density(manifold):
        return manifold.normalise(jnp.exp(0.5 * vector(manifold.omega.shape[0])))

    return {
        "H2 in 1-D": (angd.SobolevManifold(2, 15), *(vector(15) for _ in range(4))),
        "H-1 in 2-D": (angd.SobolevManifold(-1, (5, 7)), *(vector(5, 7) for _ in range(4))),
        "H1 in 3-D": (angd.SobolevManifold(1, (3, 5, 3)), *(vector(3, 5, 3) for _ in range(4))),
        "H1 on an interval": (angd.SobolevIntervalManifold(1, 7, 0.0, 3.0), *(vector(7) for _ in range(4))),
        "H-1 on an interval": (angd.SobolevIntervalManifold(-1, 7), *(vector(7) for _ in range(4))),
        "Wasserstein on the circle": (circle, on_circle, vector(9), vector(9), on_circle[::-1]),
        "Wasserstein on the torus": (torus, on_torus, vector(3, 5), vector(3, 5), on_torus[::-1]),
        "Fisher–Rao grid": (fr, density(fr), vector(6), vector(6), density(fr)),
        "Fisher–Rao simplex": (simplex, density(simplex), vector(5), vector(5), density(simplex)),
        "Gaussians in 1-D": (angd.GaussianManifold(), gaussian(1), covector(1), covector(1), gaussian(1)),
        "Gaussians in 3-D": (angd.GaussianManifold(), gaussian(3), covector(3), covector(3), gaussian(3)),
        "quantiles": (
            angd.QuantileManifold.midpoints(6),
            jnp.sort(vector(6)),
            vector(6),
            vector(6),
            jnp.sort(vector(6)),
        ),
        "particles": (angd.ParticleManifold(np.full(4, 0.25)), *(vector(4, 2) for _ in range(4))),
        "Hessian": (
            angd.HessianManifold(lambda x: jax.nn.logsumexp(x) + jnp.sum(x**4) / 12 + jnp.sum(x**2) / 2),
            *(vector(4) for _ in range(4)),
        ),
        "matrix": (angd.MatrixManifold(_curved_metric), *(vector(3) for _ in range(4))),
    }


MANIFOLDS = manifolds()
GEODESIC = {k: v for k, v in MANIFOLDS.items() if isinstance(v[0], angd.AbstractGeodesicManifold)}


def modulo_constants(manifold, Phi):
    """Cotangent vectors of densities are equal when they differ by a constant."""
    densities = (angd.FisherRaoManifold, angd.WassersteinManifold)
    return Phi - jnp.mean(Phi) if isinstance(manifold, densities) else Phi


def largest_difference(x, y):
    return max(float(jnp.max(jnp.abs(a - b))) for a, b in zip(jax.tree.leaves(x), jax.tree.leaves(y), strict=True))
