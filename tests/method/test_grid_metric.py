"""`GridHs`: the natural gradient of H^s on a grid, where the L²-projection of `Hs(s)` may climb."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import angd

EXACT = angd.Normal(0.0)


class Waves(eqx.Module):
    """u = θ (cos x + ½ cos 3x) on the circle and f = cos x − cos 3x."""

    def field(self, params, x):
        return params * (jnp.cos(x) + 0.5 * jnp.cos(3 * x))

    def variation(self, params, x):
        return jnp.cos(x) - jnp.cos(3 * x)

    def loss(self, params, samples):
        u, f = (jax.vmap(g, (None, 0))(params, samples.x) for g in (self.field, self.variation))
        return samples.mean(u * f)


@pytest.mark.parametrize(
    ("metric", "slope"), [(angd.Hs(-1), 0.6), (angd.GridHs(angd.SobolevManifold(-1, 16)), -5 / 21)]
)
def test_the_elliptic_solve_descends_where_the_projection_climbs(metric, slope):
    """E15, dL/dt = −⟨∂u, f⟩⟨∂u, G⁻¹f⟩/⟨∂u, ∂u⟩ = +0.6 against −⟨∂u, f⟩²/⟨∂u, G∂u⟩ = −5/21."""
    (x,) = angd.SobolevManifold(-1, 16).grid()
    problem, samples, theta = Waves(), angd.Samples(jnp.asarray(x)), jnp.zeros(())
    opt = angd.ANGD(angd.ARGFlow(h=1.0), metric, EXACT)
    info = eqx.filter_jit(opt.step)(problem, theta, samples, opt.init(problem, theta, samples))[3]
    assert np.isclose(info.slope, slope, atol=1e-10)


class Curved(eqx.Module):
    """Two components, nonlinear in four parameters."""

    def field(self, params, x):
        a, b, c, d = params
        return jnp.stack([a * jnp.sin(b * x[0] + c), d * jnp.cos(x[0]) + a * b * x[0]])

    def loss(self, params, samples):
        u = jax.vmap(self.field, (None, 0))(params, samples.x)
        return samples.mean(jnp.sum((u - jnp.sin(2 * samples.x)) ** 2, axis=1))


GRIDS = {
    "circle": (angd.SobolevManifold(-1, 9), np.full(9, 1 / 9)),
    "torus": (angd.SobolevManifold(-2, (3, 5)), np.full(15, 1 / 15)),
    "interval": (angd.SobolevIntervalManifold(-1, 9, 0.0, 2.0), angd.SobolevIntervalManifold(-1, 9).omega),
}


@pytest.mark.parametrize("name", GRIDS)
def test_steps_with_momentum_equal_the_dense_recursion(name):
    """v = JᵀWG J′c − (β + hγ)∂L and M = JᵀWG J + λI, G a matrix that is written out column by column."""
    manifold, omega = GRIDS[name]
    points = np.stack(manifold.grid(), -1).reshape(len(omega), -1)
    problem, samples = Curved(), angd.Samples(jnp.asarray(points), jnp.asarray(omega))
    eye = jnp.eye(len(omega)).reshape(-1, *manifold.shape)
    G = np.stack([np.ravel(manifold.G(e, e)) for e in eye], axis=1)
    h, mu, beta, lam = 0.05, 0.8, 0.03, 1e-3

    def J(theta):
        return np.asarray(jax.jacfwd(lambda p: jax.vmap(problem.field, (None, 0))(p, samples.x))(theta))

    def form(A, B):
        return np.einsum("icp,i,ij,jcq->pq", A, omega, G, B)

    theta = jnp.array([0.7, 1.2, 0.3, -0.4])
    opt = angd.ANGD(angd.ARGFlow(h=h, alpha=(1 - mu) / h, beta=beta), angd.GridHs(manifold), angd.Normal(lam))
    state, step, mine = opt.init(problem, theta, samples), eqx.filter_jit(opt.step), np.asarray(theta)
    d, n, before = np.zeros(4), np.zeros(4), None
    for k in range(4):
        theta, _, state, _ = step(problem, theta, samples, state)
        g, now = np.asarray(jax.grad(problem.loss)(jnp.asarray(mine), samples)), J(jnp.asarray(mine))
        M = form(now, now) + lam * np.eye(4)
        c = mu * d + beta * n
        v = -h * g if before is None else form(now, before) @ c + lam * c - (beta + h) * g
        d, n, before = np.linalg.solve(M, v), np.linalg.solve(M, g), now
        mine = mine + h * d
        assert np.allclose(theta, mine, atol=1e-9), k


def test_on_a_grid_that_resolves_the_field_positive_orders_are_those_of_pointwise_derivatives():
    manifold = angd.SobolevManifold(2, 15)
    samples, theta = angd.Samples(jnp.asarray(manifold.grid()[0])), jnp.array([0.4, -0.3, 0.8])

    class Series(eqx.Module):
        def field(self, params, x):
            return params[0] ** 2 + jnp.sin(params[1]) * jnp.cos(2 * x) + params[2] * params[0] * jnp.sin(3 * x)

        def loss(self, params, samples):
            return samples.mean((jax.vmap(self.field, (None, 0))(params, samples.x) - jnp.cos(samples.x)) ** 2)

    def after(metric):
        opt = angd.ANGD(angd.ARGFlow.gradient(0.1), metric, angd.Normal(1e-6))
        return opt.step(Series(), theta, samples, opt.init(Series(), theta, samples))[0]

    assert np.allclose(after(angd.GridHs(manifold)), after(angd.Hs(2)), atol=1e-10)


def test_another_number_of_samples_than_the_grid_has_is_refused():
    opt, theta = angd.ANGD(angd.ARGFlow(h=1.0), angd.GridHs(angd.SobolevManifold(-1, 16)), EXACT), jnp.zeros(())
    samples = angd.Samples(jnp.zeros(5))
    with pytest.raises(ValueError, match="the grid has 16 points, but there are 5 samples"):
        opt.step(Waves(), theta, samples, opt.init(Waves(), theta, samples))
