"""Wasserstein-2 flows of densities on the circle and the torus against particles, and against velocities on a grid."""

import jax.numpy as jnp
import numpy as np
import pytest
from reference import integrate

import angd

SPAN = (1.0, 2.5)
BETAS = pytest.mark.parametrize("beta", [0.0, 0.4])


def flow_of(beta):
    return angd.ARGFlow(alpha=angd.OverTime(3.0), beta=beta)


def solve(manifold, functional, rho0, beta, **kwargs):
    run = angd.solve_flow(manifold, functional, flow_of(beta), rho0, *SPAN, rtol=1e-11, save=2, **kwargs)
    assert run.result == angd.RESULTS.successful
    return np.asarray(run.rho[-1])


def moments(weights, *x):
    """E exp(ik·x) for small wave vectors k: what densities and particles can be compared by."""
    waves = np.stack(np.meshgrid(*(np.arange(-2, 3),) * len(x), indexing="ij"), -1).reshape(-1, len(x))
    return np.array(
        [np.mean(weights * np.exp(1j * sum(k * z for k, z in zip(wave, x, strict=True)))) for wave in waves]
    )


def slope(u):
    """∂u on the circle, in numpy; Nyquist is not there, for sizes are odd."""
    return np.fft.ifft(1j * np.fft.fftfreq(len(u), 1 / len(u)) * np.fft.fft(u)).real


class Circle:
    """f = V + κ E cos(x − y) + τ log ρ along particles x(a) that start on a grid of labels a, in numpy.

    On the circle the projection on gradient fields takes off what goes round: u ↦ u − (∫u dx / ∫ρ⁻¹ dx)/ρ.
    """

    n, kappa = 61, 0.3
    a = 2 * np.pi * np.arange(61) / 61
    rho0 = np.exp(0.4 * np.cos(a) + 0.2 * np.sin(2 * a))
    rho0 = rho0 / rho0.mean()

    def __init__(self, tau):
        self.tau = tau

    @staticmethod
    def potential(x):
        return 0.4 * np.cos(x - 0.3) + 0.1 * np.sin(2 * x)

    def functional(self, manifold):
        (x,) = manifold.grid()

        def L(rho):
            mean_wave = jnp.mean(rho * jnp.cos(x)) ** 2 + jnp.mean(rho * jnp.sin(x)) ** 2
            return jnp.mean(rho * (self.potential(x) + self.tau * jnp.log(rho))) + self.kappa / 2 * mean_wave

        return L

    def pair(self, x, u):
        """E u(y) sin(x − y)."""
        return np.sin(x) * np.mean(self.rho0 * u * np.cos(x)) - np.cos(x) * np.mean(self.rho0 * u * np.sin(x))

    def across(self, x, u):
        """E u(y) cos(x − y)."""
        return np.cos(x) * np.mean(self.rho0 * u * np.cos(x)) + np.sin(x) * np.mean(self.rho0 * u * np.sin(x))

    def force(self, x, stretch):
        """∂f at the particles; `stretch` is dx/da = ρ₀/ρ."""
        outer = -0.4 * np.sin(x - 0.3) + 0.2 * np.cos(2 * x)
        return outer - self.kappa * self.pair(x, 1.0) + self.tau * slope(np.log(self.rho0 / stretch)) / stretch

    def rate(self, x, V, stretch):
        """d/dt of the force along the particles."""
        outer = (-0.4 * np.cos(x - 0.3) - 0.4 * np.sin(2 * x)) * V
        pairs = -self.kappa * (self.across(x, 1.0) * V - self.across(x, V))
        turn, squeeze = slope(-slope(V) / stretch), slope(np.log(self.rho0 / stretch)) * slope(V) / stretch
        return outer + pairs + self.tau * (turn - squeeze) / stretch

    def end(self, beta):
        def field(t, y):
            x, V = self.a + y[: self.n], y[self.n :]
            stretch = 1 + slope(y[: self.n])
            force = self.force(x, stretch)
            bend = slope(force) / stretch * V
            round_trip = np.mean(bend * stretch) / np.mean(stretch**2 / self.rho0) * stretch / self.rho0
            return np.concatenate([V, -3 / t * V - force - beta * (self.rate(x, V, stretch) - round_trip)])

        return moments(self.rho0, self.a + integrate(field, np.zeros(2 * self.n), *SPAN)[0, : self.n])


@BETAS
@pytest.mark.parametrize("tau", [0.0, 0.2], ids=["no entropy", "entropy"])
def test_densities_on_the_circle_move_with_their_particles(tau, beta):
    """Potential, attraction and entropy: the Eulerian flow has the moments of its characteristics."""
    manifold, judge = angd.WassersteinManifold(61), Circle(tau)
    rho = solve(manifold, judge.functional(manifold), judge.rho0, beta)
    found = moments(rho, *manifold.grid())
    assert np.abs(found - judge.end(beta)).max() < 1e-10
    assert np.abs(found - moments(judge.rho0, judge.a)).max() > 0.01


@BETAS
def test_densities_that_are_even_move_like_free_particles(beta):
    """By symmetry nothing goes round the circle, and `ParticleManifold` needs no projection."""
    manifold = angd.WassersteinManifold(61)
    (x,) = manifold.grid()
    rho0 = np.asarray(manifold.normalise(jnp.exp(0.5 * jnp.cos(x))))
    rho = solve(manifold, angd.MeanEnergy(manifold, jnp.asarray(0.2 * np.cos(2 * x))), rho0, beta)
    omega = jnp.asarray(rho0 / 61)
    labels = angd.ParticleManifold(omega)
    places = solve(labels, lambda z: omega @ (0.2 * jnp.cos(2 * z[:, 0])), x[:, None], beta)
    assert np.abs(moments(rho, x) - moments(rho0, places[:, 0])).max() < 1e-8


def gradient(u):
    """∇u on a grid of the torus, in numpy."""
    return np.stack([np.apply_along_axis(slope, axis, u) for axis in range(2)])


def divergence(flux):
    return np.apply_along_axis(slope, 0, flux[0]) + np.apply_along_axis(slope, 1, flux[1])


class Torus:
    """Velocities V on a grid: V̇ = −(V·∇)V − αV − ∇f − β P(∇²f V), P the fit by ∇π with weight ρ."""

    shape = (15, 15)
    x, y = np.meshgrid(*(2 * np.pi * np.arange(15) / 15,) * 2, indexing="ij")
    rho0 = np.exp(0.3 * np.cos(x) + 0.2 * np.sin(y) + 0.3 * np.cos(x + y))
    rho0 = rho0 / rho0.mean()

    @staticmethod
    def potential(x, y):
        return 0.2 * jnp.cos(x) + 0.2 * jnp.sin(y - 1) + 0.2 * jnp.sin(x - y)

    @classmethod
    def gradients(cls):
        """The matrix of ∇."""
        return np.stack([gradient(e.reshape(cls.shape)).ravel() for e in np.eye(cls.x.size)], axis=1)

    @staticmethod
    def pi(basis, rho, W):
        """The π of mean zero whose gradient is nearest to W with weight ρ."""
        weighted = basis * np.tile(rho.ravel(), 2)[:, None]
        return np.linalg.solve(weighted.T @ basis + 1.0, weighted.T @ W.ravel())  # + 1 fixes the constant

    @classmethod
    def end(cls, beta, project=True):
        force = gradient(np.asarray(cls.potential(cls.x, cls.y)))
        hessian = np.stack([gradient(g) for g in force])
        basis = cls.gradients()

        def field(t, state):
            rho, V = state[: cls.x.size].reshape(cls.shape), state[cls.x.size :].reshape(2, *cls.shape)
            carried = np.stack([np.sum(V * gradient(v), axis=0) for v in V])
            W = np.sum(hessian * V, axis=1)
            W = (basis @ cls.pi(basis, rho, W)).reshape(W.shape) if project else W
            V_dot = -carried - 3 / t * V - force - beta * W
            return np.concatenate([-divergence(rho * V).ravel(), V_dot.ravel()])

        start = np.concatenate([cls.rho0.ravel(), np.zeros(2 * cls.x.size)])
        return integrate(field, start, 1.0, 2.0, rtol=1e-8)[0, : cls.x.size].reshape(cls.shape)


def test_correction_on_the_torus_is_the_projected_hessian_term():
    """E2 at one point: R = ½|∇Φ|² + βπ, where the part of ∇²f ∇Φ that is no gradient is large."""
    manifold, x, y = angd.WassersteinManifold(Torus.shape), Torus.x, Torus.y
    rho = 1 + 0.2 * np.cos(x) + 0.2 * np.sin(x + y)
    Phi, f = np.sin(x) + 0.5 * np.cos(y), np.cos(x - y) + 0.3 * np.sin(y)
    W = np.sum(np.stack([gradient(g) for g in gradient(f)]) * gradient(Phi), axis=1)
    basis = Torus.gradients()
    pi = Torus.pi(basis, rho, W)
    expected = 0.5 * np.sum(gradient(Phi) ** 2, axis=0) + 0.7 * pi.reshape(x.shape)
    difference = np.asarray(manifold.R(jnp.asarray(rho), jnp.asarray(Phi), jnp.asarray(f), 0.7)) - expected
    assert np.ptp(difference) < 1e-7
    assert np.abs(W.ravel() - basis @ pi).max() > 0.3


def test_beta_on_the_torus_damps_the_projected_change_of_the_force():
    """E2 in two dimensions: with ∇²f V itself, whose curl part is not zero, the densities would differ."""
    manifold = angd.WassersteinManifold(Torus.shape)
    L = angd.MeanEnergy(manifold, Torus.potential(*manifold.grid()))
    rho = angd.solve_flow(manifold, L, flow_of(0.8), Torus.rho0, 1.0, 2.0, rtol=1e-9, save=2).rho[-1]
    assert np.abs(rho - Torus.end(0.8)).max() < 1e-7
    assert np.abs(rho - Torus.end(0.8, project=False)).max() > 1e-6


def particles_end(potential, rho0, x, y, beta):
    omega = jnp.asarray(rho0.ravel() / rho0.size)
    start = np.stack([x.ravel(), y.ravel()], axis=1)
    places = solve(angd.ParticleManifold(omega), lambda z: omega @ potential(z[:, 0], z[:, 1]), start, beta)
    return moments(rho0.ravel(), *places.T)


def test_densities_on_the_torus_move_with_their_particles():
    """Any potential, β = 0: the velocity stays a gradient by itself, and the particles are free."""
    manifold = angd.WassersteinManifold((25, 25))
    x, y = manifold.grid()
    rho0 = np.exp(0.3 * np.cos(x) + 0.2 * np.sin(y) + 0.3 * np.cos(x + y))
    rho0 = rho0 / rho0.mean()
    rho = solve(manifold, angd.MeanEnergy(manifold, Torus.potential(x, y)), rho0, 0.0)
    assert np.abs(moments(rho, x, y) - particles_end(Torus.potential, rho0, x, y, 0.0)).max() < 1e-10


def test_densities_on_the_torus_move_with_their_particles_where_hessians_commute():
    """A potential and a density that split, both even: β > 0, and still no projection is needed."""
    manifold = angd.WassersteinManifold((23, 23))
    x, y = manifold.grid()
    rho0 = np.exp(0.4 * np.cos(x) - 0.3 * np.cos(y))
    rho0 = rho0 / rho0.mean()

    def potential(x, y):
        return 0.4 * jnp.cos(x) + 0.15 * jnp.cos(2 * y)

    rho = solve(manifold, angd.MeanEnergy(manifold, potential(x, y)), rho0, 0.5)
    assert np.abs(moments(rho, x, y) - particles_end(potential, rho0, x, y, 0.5)).max() < 1e-8
