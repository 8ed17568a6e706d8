"""Metrics that know the variation at a point: H⁻¹, L² by rows, the generalised Gauss–Newton metric, several terms."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from reference import SobolevCircle
from schedules import Decaying

import angd
from angd import ANGD, GGN, L2, Energy, Hs, Kernel, L2Pointwise, Normal, Samples
from angd.flow.schedules import OnePlusOverTime
from angd.method.metrics import NegativeHs

EXACT = Normal(damping=0.0)
WAVE = np.arange(1, 8)
CIRCLE = jnp.asarray(SobolevCircle.x)


class FourierSeries(eqx.Module):
    """The full Fourier model on 15 points; the variation of mean[0.025 u_x² + u⁴/4 − F u] is interpolated."""

    def field(self, params, x):
        return params[0] + params[1:8] @ jnp.cos(WAVE * x) + params[8:] @ jnp.sin(WAVE * x)

    def variation(self, params, x):
        def at_node(y):
            bend = jax.grad(jax.grad(self.field, 1), 1)(params, y)
            return -0.05 * bend + self.field(params, y) ** 3 - jnp.cos(y) - 0.5 * jnp.sin(2 * y)

        near = jax.vmap(lambda y: (1 + 2 * jnp.sum(jnp.cos(WAVE * (x - y)))) / 15)(CIRCLE)
        return near @ jax.vmap(at_node)(CIRCLE)

    def values(self, params):
        return jax.vmap(self.field, (None, 0))(params, CIRCLE)


@eqx.filter_jit
def run(problem, theta0, samples, metric, beta, gamma, h, steps, t0):
    """θ after `steps` steps of size h on fixed samples."""
    flow = angd.ARGFlow(alpha=angd.OverTime(3.0), beta=beta, gamma=gamma, h=h, t0=t0)
    opt = ANGD(flow, metric, EXACT)

    def body(_, carry):
        params, state = carry
        params, _, state, _ = opt.step(problem, params, samples, state)
        return params, state

    return jax.lax.fori_loop(0, steps, body, (theta0, opt.init(problem, theta0, samples)))[0]


def wave_start():
    return jnp.zeros(15).at[0].set(0.2).at[8].set(0.8)


def circle(metric, h, beta=0.2):
    beta, gamma = Decaying(beta, 0.3), OnePlusOverTime(0.2)
    steps = jnp.asarray(round(3 / h))
    problem = FourierSeries()
    theta = run(problem, wave_start(), Samples(CIRCLE), metric, beta, gamma, jnp.asarray(h), steps, 1.0)
    return np.asarray(problem.values(theta))


@pytest.mark.parametrize("beta", [0.0, 0.2])
@pytest.mark.parametrize(("metric", "s"), [(L2Pointwise(), 0), (Hs(-1), -1)], ids=["L2 by rows", "H^-1"])
def test_metrics_with_a_pointwise_variation_equal_the_recursion_on_the_grid(metric, s, beta):
    """E4, E6: the velocity is +G⁻¹Φ, and the force enters with a minus."""
    judge = SobolevCircle(s, beta)
    coarse, fine = circle(metric, 0.01, beta), circle(metric, 0.005, beta)
    exact = judge.exact(1.0, 4.0)
    assert np.abs(coarse - judge.scheme(0.01, 1.0, 300)).max() < 1e-9
    assert abs(np.log2(np.abs(coarse - exact).max() / np.abs(fine - exact).max()) - 1) < 0.05


def test_printed_sign_of_the_force_diverges():
    """E6: with +h(γ − …)𝐃f the field climbs; on this problem it leaves all bounds."""

    class Printed(NegativeHs):
        def _pull(self, context, problem, samples, y):
            return jax.tree.map(jnp.negative, super()._pull(context, problem, samples, y))

    assert not np.abs(circle(Printed(order=1), 0.01)).max() < 10


def test_l2_by_rows_and_by_the_gradient_are_one_metric():
    """Regression to a sine, β = 0: A1 and A1b are the same step, and the kernel trick applies to the second."""

    class Regression(eqx.Module):
        def field(self, params, x):
            return jnp.tanh(x * params["w"]) @ params["a"]

        def variation(self, params, x):
            return self.field(params, x) - jnp.sin(x)

        def loss(self, params, samples):
            return 0.5 * samples.mean(jax.vmap(self.variation, (None, 0))(params, samples.x) ** 2)

    params = {"w": jnp.array([0.5, -1.0, 1.5]), "a": jnp.array([0.3, 0.7, -0.2])}
    samples, problem = Samples(jnp.linspace(-2, 2, 4)), Regression()

    def end(metric, solver):
        opt, theta = ANGD(angd.ARGFlow.heavy_ball(0.8, 0.1), metric, solver), params
        state, step = opt.init(problem, theta, samples), eqx.filter_jit(opt.step)
        for _ in range(5):
            theta, _, state, _ = step(problem, theta, samples, state)
        return ravel_pytree(theta)[0], problem.loss(theta, samples)

    (a, loss), (b, _), (c, _) = (
        end(L2(), Normal(1e-3)),
        end(L2Pointwise(), Normal(1e-3)),
        end(L2Pointwise(), Kernel(1e-3)),
    )
    assert np.allclose(a, b, atol=1e-9)
    assert np.allclose(b, c, atol=1e-9)
    assert loss < problem.loss(params, samples)


class TwoLogits(eqx.Module):
    """z = F(u), a nonlinear change of ℝ², and a convex cost with soft labels."""

    def field(self, u, x):
        return jnp.stack([u[0] + 0.3 * jnp.sin(u[1]), u[1] + 0.2 * u[0] ** 2])

    def cost(self, z, x):
        return jax.nn.logsumexp(jnp.append(z, 0.0)) - 0.5 * z[0] - 0.2 * z[1]


def potential(z):
    return jax.nn.logsumexp(jnp.append(z, 0.0)) - 0.5 * z[0] - 0.2 * z[1]


@pytest.mark.parametrize("beta", [pytest.param(0.0, marks=pytest.mark.slow), 0.4])
def test_generalised_gauss_newton_follows_the_hessian_flow_of_its_cost(beta):
    """The judge integrates the flow of the Hessian metric ∇²ℓ in z; without T₃ the scheme misses it."""
    problem, u0 = TwoLogits(), jnp.array([-0.8, 0.9])
    z0 = problem.field(u0, None)
    flow = angd.ARGFlow(alpha=angd.OverTime(3.0), beta=beta)
    exact = angd.solve_flow(angd.HessianManifold(potential), potential, flow, z0, 1.0, 4.0, save=3).rho[-1]

    def errors(metric):
        ends = [
            run(problem, u0, Samples(jnp.zeros(1)), metric, beta, 1.0, jnp.asarray(h), jnp.asarray(round(3 / h)), 1.0)
            for h in (0.02, 0.01, 0.005)
        ]
        return [np.abs(problem.field(u, None) - exact).max() for u in ends]

    right, frozen = errors(GGN()), errors(GGN(correction=False))
    assert abs(np.log2(right[-2] / right[-1]) - 1) < 0.05
    assert frozen[-1] > 5 * right[-1]


class Classifier(eqx.Module):
    """Softmax cross-entropy: the logits are defined up to a constant, so H is singular."""

    def field(self, params, x):
        return jnp.tanh(x[0] @ params["W"]) @ params["V"]

    def cost(self, z, x):
        return -jax.nn.log_softmax(z)[x[1]]


def test_cross_entropy_step_is_the_generalised_gauss_newton_step():
    """(JᵀHJ + λ)⁻¹ Jᵀ(p − e) with H = diag p − ppᵀ; the closed-form factor of the rows gives the same."""
    rng = np.random.default_rng(0)
    params = {"W": jnp.asarray(rng.normal(size=(2, 3))), "V": jnp.asarray(rng.normal(size=(3, 3)))}
    x, label = jnp.asarray(rng.normal(size=(7, 2))), jnp.asarray(rng.integers(0, 3, 7))
    problem, samples = Classifier(), Samples((x, label))

    def logits(vector):
        return jax.vmap(problem.field, (None, 0))(unravel(vector), (x, label))

    theta, unravel = ravel_pytree(params)
    J, z = np.asarray(jax.jacrev(logits)(theta)), np.asarray(logits(theta))
    p = np.exp(z) / np.exp(z).sum(1, keepdims=True)
    q = p - np.eye(3)[np.asarray(label)]
    G = sum(j.T @ (np.diag(a) - np.outer(a, a)) @ j for j, a in zip(J, p, strict=True)) / 7
    g = np.einsum("nmp,nm->p", J, q) / 7
    factor = [np.diag(np.sqrt(a)) - np.outer(a, np.sqrt(a)) for a in p]
    for C, a, b in zip(factor, p, q, strict=True):
        assert np.allclose(C @ (b / np.sqrt(a)), b)
    expected = -np.linalg.solve(G + 1e-2 * np.eye(15), g)
    for solver in (Normal(1e-2), Kernel(1e-2)):
        opt = ANGD(angd.ARGFlow.gradient(1.0), GGN(), solver)
        moved, _, _, info = eqx.filter_jit(opt.step)(problem, params, samples, opt.init(problem, params, samples))
        found = ravel_pytree(jax.tree.map(jnp.subtract, moved, params))[0]
        assert np.allclose(found, expected, atol=1e-8)
        assert np.isclose(np.asarray(info.loss), -np.log(p[np.arange(7), np.asarray(label)]).mean())


class TwoTerms(eqx.Module):
    """u = network; u' + u = 0 inside, u(0) = 1 on the boundary, the second weighted."""

    def field(self, params, x):
        return jnp.tanh(x * params["w"] + params["b"]) @ params["a"]

    @property
    def residuals(self):
        return {"interior": self.equation, "boundary": self.start}

    def equation(self, params, x):
        return jax.grad(self.field, 1)(params, x) + self.field(params, x)

    def start(self, params, x):
        return self.field(params, x) - 1.0

    def loss(self, params, samples):
        return sum(
            0.5 * samples[k].mean(jax.vmap(f, (None, 0))(params, samples[k].x) ** 2) for k, f in self.residuals.items()
        )


def two_terms():
    params = {"w": jnp.array([0.5, -1.0, 1.5]), "b": jnp.array([0.1, 0.2, 0.3]), "a": jnp.array([0.3, 0.7, -0.2])}
    samples: Any = {"interior": Samples(jnp.linspace(0, 1, 6)), "boundary": Samples(jnp.zeros(1), weight=10.0)}
    return TwoTerms(), params, samples


@pytest.mark.parametrize("solver", [Normal(1e-3), Kernel(1e-3), angd.Iterative(1e-3, rtol=1e-12)])
def test_terms_of_a_loss_are_stacked_with_their_weights(solver):
    """One Gauss–Newton step on [√(1/6) r_Ω; √10 r_b], written with the dense Jacobian."""
    problem, params, samples = two_terms()
    theta, unravel = ravel_pytree(params)

    def stacked(vector):
        p = unravel(vector)
        inside = jax.vmap(problem.equation, (None, 0))(p, samples["interior"].x) / np.sqrt(6)
        return jnp.concatenate([inside, np.sqrt(10) * jax.vmap(problem.start, (None, 0))(p, samples["boundary"].x)])

    J, r = np.asarray(jax.jacrev(stacked)(theta)), np.asarray(stacked(theta))
    expected = -np.linalg.solve(J.T @ J + 1e-3 * np.eye(9), J.T @ r)
    opt = ANGD(angd.ARGFlow.gradient(1.0), Energy(), solver)
    moved, _, _, info = eqx.filter_jit(opt.step)(problem, params, samples, opt.init(problem, params, samples))
    assert np.allclose(ravel_pytree(moved)[0] - theta, expected, atol=1e-7)
    assert np.isclose(np.asarray(info.loss), 0.5 * r @ r)
    assert np.isclose(np.asarray(info.loss), problem.loss(params, samples))


def test_a_field_metric_lives_on_the_samples_it_is_told():
    problem, params, samples = two_terms()
    opt = ANGD(angd.ARGFlow.gradient(0.1), L2(), Normal(1e-3))
    _, _, _, info = eqx.filter_jit(opt.step)(problem, params, samples, opt.init(problem, params, samples))
    assert info.slope < 0
    with pytest.raises(ValueError, match="finds no such samples; there are: boundary, interior"):
        ANGD(angd.ARGFlow.gradient(0.1), L2(on="middle"), Normal(1e-3)).init(problem, params, samples)
    with pytest.raises(ValueError, match="Each term needs its own samples"):
        ANGD(angd.ARGFlow.gradient(0.1), Energy(), Normal(1e-3)).init(
            problem, params, {"interior": samples["interior"]}
        )
