"""One exam for every manifold: metric, correction, Christoffel map and geodesics agree with each other."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from registry import GEODESIC, MANIFOLDS, largest_difference, modulo_constants
from scipy.integrate import quad, solve_ivp

import angd
from angd.tree import combine

every_manifold = pytest.mark.parametrize("name", MANIFOLDS)
every_geodesic_manifold = pytest.mark.parametrize("name", GEODESIC)


def derivative_of_G(manifold, rho, direction, sigma):
    """(∂G · direction) σ, straight from G."""
    return jax.jvp(lambda r: manifold.G(r, sigma), (rho,), (direction,))[1]


@every_manifold
def test_G_and_its_inverse_undo_each_other(name):
    manifold, rho, Phi, _, _ = MANIFOLDS[name]
    again = manifold.G(rho, manifold.G_inv(rho, Phi))
    assert largest_difference(modulo_constants(manifold, again), modulo_constants(manifold, Phi)) < 1e-11


@every_manifold
def test_metric_is_symmetric_and_positive(name):
    manifold, rho, Phi, Xi, _ = MANIFOLDS[name]
    v, w = manifold.G_inv(rho, Phi), manifold.G_inv(rho, Xi)
    assert np.isclose(manifold.pairing(manifold.G(rho, v), w), manifold.pairing(manifold.G(rho, w), v), rtol=1e-11)
    assert manifold.square_norm(rho, v) > 0


@every_manifold
def test_variation_pairs_with_tangents_to_the_directional_derivative(name):
    manifold, rho, Phi, _, _ = MANIFOLDS[name]

    def functional(r):
        flat = ravel_pytree(r)[0]
        return jnp.sum(jnp.sin(flat) + 0.3 * flat**3)

    sigma = manifold.G_inv(rho, Phi)
    slope = jax.jvp(functional, (rho,), (sigma,))[1]
    assert np.isclose(manifold.pairing(manifold.variation(functional, rho), sigma), slope, rtol=1e-12)


@pytest.mark.matrix
@every_manifold
@pytest.mark.parametrize("beta", [0.0, 0.7])
def test_R_equals_proposition_1_by_automatic_differentiation(name, beta):
    manifold, rho, Phi, f, _ = MANIFOLDS[name]
    difference = combine((1.0, manifold.R(rho, Phi, f, beta)), (-1.0, angd.proposition_1(manifold, rho, Phi, f, beta)))
    zero = combine((0.0, difference))
    assert largest_difference(modulo_constants(manifold, difference), zero) < 1e-10


@every_manifold
@pytest.mark.parametrize("beta", [0.0, 0.7])
def test_R_equals_the_expression_in_christoffel_symbols(name, beta):
    """R = G Γ(v, v + βw) − (∂G·v)(v + βw) with v = G⁻¹Φ, w = G⁻¹f: uses derivatives of G, never of G⁻¹."""
    manifold, rho, Phi, f, _ = MANIFOLDS[name]
    v = manifold.G_inv(rho, Phi)
    total = combine((1.0, v), (beta, manifold.G_inv(rho, f)))
    bent = manifold.G(rho, manifold.christoffel(rho, v, total))
    expected = combine((1.0, bent), (-1.0, derivative_of_G(manifold, rho, v, total)))
    R = manifold.R(rho, Phi, f, beta)
    assert largest_difference(modulo_constants(manifold, R), modulo_constants(manifold, expected)) < 1e-9


@every_manifold
def test_connection_is_torsion_free_and_preserves_the_metric(name):
    """Γ(a, b) = Γ(b, a), and (∂G·c)(a, b) = g(Γ(c, a), b) + g(a, Γ(c, b))."""
    manifold, rho, Phi, Xi, _ = MANIFOLDS[name]
    a, b = manifold.G_inv(rho, Phi), manifold.G_inv(rho, Xi)
    c = combine((0.6, a), (-1.1, b))
    assert largest_difference(manifold.christoffel(rho, a, b), manifold.christoffel(rho, b, a)) < 1e-11

    def g(x, y):
        return manifold.pairing(manifold.G(rho, x), y)

    change = manifold.pairing(derivative_of_G(manifold, rho, c, a), b)
    bent = g(manifold.christoffel(rho, c, a), b) + g(a, manifold.christoffel(rho, c, b))
    assert np.isclose(change, bent, rtol=1e-9, atol=1e-10)


@every_geodesic_manifold
def test_geodesic_with_the_velocity_of_log_reaches_the_target(name):
    manifold, rho, _, _, target = GEODESIC[name]
    flat, unravel = ravel_pytree(rho)
    n = flat.size

    @jax.jit
    def field(y):
        x, v = unravel(y[:n]), unravel(y[n:])
        return jnp.concatenate([y[n:], -ravel_pytree(manifold.christoffel(x, v, v))[0]])

    start = np.concatenate([flat, ravel_pytree(manifold.log(rho, target))[0]])
    end = solve_ivp(lambda t, y: np.asarray(field(y)), (0, 1), start, "DOP853", rtol=1e-11, atol=1e-12).y[:n, -1]
    assert np.allclose(end, ravel_pytree(target)[0], atol=1e-8)


@every_geodesic_manifold
def test_distance_is_the_length_of_log_and_symmetric(name):
    manifold, rho, _, _, target = GEODESIC[name]
    length = jnp.sqrt(manifold.square_norm(rho, manifold.log(rho, target)))
    assert np.allclose([length, manifold.distance(target, rho)], manifold.distance(rho, target), rtol=1e-10)
    assert manifold.distance(rho, rho) < 1e-7


@pytest.mark.parametrize("name", ["Fisher–Rao grid", "Fisher–Rao simplex"])
def test_kappa_is_what_log_loses_across_the_geodesic_on_fisher_rao(name):
    """∇_v log + v = κ v_⊥ for v across the geodesic (erratum list: Lemma 1 on Fisher–Rao)."""
    manifold, rho, Phi, _, target = GEODESIC[name]
    T = manifold.log(rho, target)
    v = manifold.G_inv(rho, Phi)
    along = manifold.pairing(manifold.G(rho, v), T) / manifold.square_norm(rho, T)
    v = combine((1.0, v), (-along, T))
    D = jax.jvp(lambda r: manifold.log(r, target), (rho,), (v,))[1]
    covariant = combine((1.0, D), (1.0, manifold.christoffel(rho, v, T)))
    expected = combine((manifold.kappa(rho, target) - 1, v))
    assert largest_difference(covariant, expected) < 1e-10


def test_fisher_rao_is_the_hessian_metric_of_the_entropy_on_the_orthant():
    orthant = angd.HessianManifold(lambda x: jnp.sum(x * jnp.log(x)), inside=lambda x: x)
    simplex, rho, Phi, f, _ = MANIFOLDS["Fisher–Rao simplex"]
    centred = simplex.centre(rho, Phi)
    assert np.allclose(orthant.G_inv(rho, centred), simplex.G_inv(rho, Phi))
    assert np.allclose(orthant.R(rho, centred, simplex.centre(rho, f), 0.7), simplex.R(rho, Phi, f, 0.7))


def test_sobolev_operator_is_the_square_of_its_derivatives_with_multiplicity():
    """E14: on the mode ξ = (1, 2) the H² form is 31; counting the mixed derivative once would give 27."""
    manifold = angd.SobolevManifold(2, (7, 9))
    x, y = manifold.grid()
    mode = jnp.asarray(np.sqrt(2) * np.cos(x + 2 * y))
    quadratic = jnp.mean(manifold.derivatives(mode) ** 2) * 6
    assert np.isclose(manifold.square_norm(mode, mode), 31)
    assert np.isclose(quadratic, 31)


@pytest.mark.parametrize("s", [-3, -1, 0, 1, 3])
def test_sobolev_metric_of_every_order_is_its_fourier_multiplier(s):
    manifold = angd.SobolevManifold(s, 16)
    (x,) = manifold.grid()
    mode = jnp.asarray(np.sin(3 * x))
    series = sum(9.0**i for i in range(abs(s) + 1))
    assert np.allclose(manifold.G(mode, mode), mode * series ** (1 if s >= 0 else -1))


def test_sobolev_operator_in_three_dimensions_counts_every_order_of_mixed_derivatives():
    """E14: on the mode ξ = (1, 2, 1) the H² form is 1 + 6 + 36 = 43."""
    manifold = angd.SobolevManifold(2, (5, 7, 5))
    x, y, z = manifold.grid()
    mode = jnp.asarray(np.sqrt(2) * np.cos(x + 2 * y + z))
    assert np.isclose(manifold.square_norm(mode, mode), 43)
    assert np.isclose(jnp.mean(jnp.sum(manifold.derivatives(mode) ** 2, axis=0)), 43)


@pytest.mark.parametrize("s", [0, 1, 2])
def test_interval_metric_is_the_integral_of_products_of_derivatives(s):
    """∂ⁱ exp(x/2) = 2⁻ⁱ exp(x/2) and ∂ⁱ cos 2x = 2ⁱ cos(2x + iπ/2), integrated by scipy; no boundary condition."""
    low, high = -0.5, 1.5
    manifold = angd.SobolevIntervalManifold(s, 18, low, high)
    (x,) = manifold.grid()
    sigma, tau = jnp.exp(0.5 * x), jnp.cos(2 * x)

    def product(i):
        return quad(lambda z: 0.5**i * np.exp(0.5 * z) * 2**i * np.cos(2 * z + i * np.pi / 2), low, high, epsabs=1e-14)

    expected = sum(product(i)[0] for i in range(s + 1)) / (high - low)
    assert np.isclose(manifold.pairing(manifold.G(sigma, sigma), tau), expected, rtol=1e-10)
    waves = np.stack([2**i * np.cos(2 * x + i * np.pi / 2) for i in range(s + 1)])
    assert np.allclose(manifold.derivatives(tau), waves, atol=1e-9)


def natural_solution(s, x):
    """u with Σ_{i ≤ s} (−∂²)ⁱ u = x on [−1, 1] and natural boundary conditions: x plus odd exponentials."""
    if s == 1:  # u′(±1) = 0
        return x - np.sinh(x) / np.cosh(1)
    roots = np.roots([1, 0, -1, 0, 1])  # u⁗ − u″ + u = 0 is solved by exp(rx)
    ends = np.array([-1.0, 1.0])
    second = [r**2 * np.exp(r * e) for e in ends for r in roots]
    third = [(r**3 - r) * np.exp(r * e) for e in ends for r in roots]
    c = np.linalg.solve(np.reshape(second + third, (4, 4)), [0, 0, 1, 1])  # u″ = 0 and u‴ − u′ = 0
    return x + (np.exp(np.outer(x, roots)) @ c).real


@pytest.mark.parametrize("s", [1, 2])
def test_interval_metric_solves_the_elliptic_equation_with_natural_boundary_conditions(s):
    manifold, dual = angd.SobolevIntervalManifold(s, 20), angd.SobolevIntervalManifold(-s, 20)
    (x,) = manifold.grid()
    f = jnp.asarray(x)
    assert np.allclose(manifold.G_inv(f, f), natural_solution(s, x), atol=1e-9)
    assert np.allclose(dual.G(f, f), natural_solution(s, x), atol=1e-9)


@pytest.mark.parametrize("s", [-2, -1, 0, 1, 2])
def test_factor_of_a_sobolev_metric_has_its_square(s):
    """Σ (Bσ)(Bτ) = g(σ, τ), on both kinds of grid."""
    rng = np.random.default_rng(4)
    for manifold in (angd.SobolevManifold(s, (3, 5)), angd.SobolevIntervalManifold(s, 8, 0.0, 2.0)):
        shape = (3, 5) if isinstance(manifold, angd.SobolevManifold) else (8,)
        sigma, tau = (jnp.asarray(rng.normal(size=shape)) for _ in range(2))
        expected = manifold.pairing(manifold.G(sigma, sigma), tau)
        assert np.isclose(jnp.vdot(manifold.factor(sigma), manifold.factor(tau)), expected, rtol=1e-9)


def test_a_torus_that_is_one_point_wide_is_a_circle():
    """The closed form on the circle and conjugate gradients on the torus give one potential."""
    circle, rho, Phi, f, _ = MANIFOLDS["Wasserstein on the circle"]
    torus = angd.WassersteinManifold((9, 1))
    sigma = circle.G_inv(rho, Phi)
    assert np.allclose(torus.G(rho[:, None], sigma[:, None])[:, 0], circle.G(rho, sigma), atol=1e-12)
    wide = torus.R(rho[:, None], Phi[:, None], f[:, None], 0.7)[:, 0]
    assert np.allclose(wide, circle.R(rho, Phi, f, 0.7), atol=1e-11)


def test_square_angle_is_smooth_where_two_densities_meet():
    manifold, rho, _, _, _ = MANIFOLDS["Fisher–Rao simplex"]
    near = manifold.normalise(rho * (1 + 1e-3 * jnp.arange(5.0)))
    exact = np.arccos(float(jnp.sum(jnp.sqrt(rho * near)))) ** 2
    assert np.isclose(manifold.square_angle(rho, near), exact, rtol=1e-6)
    assert np.all(np.isfinite(jax.grad(manifold.square_angle)(rho, rho)))


@pytest.mark.parametrize("H", [1e-6, 0.0095, 0.0105, 0.5])
def test_square_angle_is_exact_on_both_sides_of_its_switch(H):
    """Two points of the unit circle, at an angle that is known."""
    manifold, first = angd.FisherRaoManifold.simplex(2), 0.6
    rho, near = (jnp.array([np.cos(a) ** 2, np.sin(a) ** 2]) for a in (first, first + H))
    assert np.isclose(manifold.square_angle(rho, near), H**2, rtol=max(1e-11, 1e-15 / H))


def test_boundary_is_reached_when_the_manifold_says_so():
    assert np.isclose(
        angd.FisherRaoManifold.simplex(2).time_to_boundary(jnp.array([0.2, 0.8]), jnp.array([-0.1, 0.1])), 4.0
    )
    assert np.isclose(
        angd.QuantileManifold.midpoints(2).time_to_boundary(jnp.array([0.0, 1.0]), jnp.array([0.5, 0.25])), 4.0
    )
    falling = angd.WassersteinManifold(3)
    assert np.isclose(falling.time_to_boundary(jnp.array([0.5, 1.0, 1.5]), jnp.array([-0.1, -0.5, 0.6])), 2.0)
    shrinking = angd.Gaussian(jnp.zeros(2), jnp.diag(jnp.array([-1.0, 2.0])))
    assert np.isclose(angd.GaussianManifold().time_to_boundary(angd.Gaussian(jnp.zeros(2), jnp.eye(2)), shrinking), 2.0)
    half_plane = angd.MatrixManifold(lambda x: jnp.eye(2) / x[1] ** 2, inside=lambda x: x[1:])
    assert np.isclose(half_plane.time_to_boundary(jnp.array([0.0, 3.0]), jnp.array([1.0, -1.0])), 3.0)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: angd.SobolevManifold(0.5, 8), "s must be an integer"),
        (lambda: angd.SobolevManifold(1, (4, 4, 4, 4)), "one to three positive grid sizes"),
        (lambda: angd.SobolevManifold(1, 8).derivatives(jnp.zeros(8)), "odd grid sizes"),
        (lambda: angd.SobolevIntervalManifold(1.0, 8), "must be integers"),
        (lambda: angd.SobolevIntervalManifold(-3, 3), r"\|s\| < n"),
        (lambda: angd.SobolevIntervalManifold(1, 8, 2.0, 2.0), "must satisfy low < high"),
        (lambda: angd.WassersteinManifold((3, 3, 3)), "one or two positive grid sizes"),
        (lambda: angd.WassersteinManifold((3, 4)), "must be odd"),
        (lambda: angd.FisherRaoManifold([1.0, -1.0]), "positive cell sizes"),
        (lambda: angd.FisherRaoManifold.grid(3.0, 3.0, 8), "is empty"),
        (lambda: angd.ParticleManifold([0.5, 0.6]), "must sum to 1"),
        (lambda: angd.QuantileManifold([]), "vector of positive masses"),
    ],
)
def test_impossible_manifolds_are_refused_with_a_sentence(make, words):
    with pytest.raises(ValueError, match=words):
        make()


@pytest.mark.parametrize("shape", [9, (7, 5)])
def test_a_wasserstein_potential_has_mean_zero_and_does_not_see_a_change_of_mass(shape):
    manifold, generator = angd.WassersteinManifold(shape), np.random.default_rng(0)
    rho = manifold.normalise(jnp.asarray(np.exp(0.3 * generator.normal(size=manifold.shape))))
    sigma = jnp.asarray(generator.normal(size=manifold.shape))
    Phi = manifold.G(rho, sigma)
    assert abs(float(jnp.mean(Phi))) < 1e-12
    assert np.allclose(manifold.G(rho, sigma + 1.0), Phi, atol=1e-10)
    assert np.allclose(manifold.G_inv(rho, Phi), sigma - jnp.mean(sigma), atol=1e-9)
