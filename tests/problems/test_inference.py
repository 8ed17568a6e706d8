"""Densities that draw their own samples: models against determinants and integrals, fits against closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import multivariate_normal

import angd
from angd import recipes
from angd.problems.inference import AffineGaussian, ForwardKL, Mixture, RealNVP, ReverseKL, SplineFlow, judge
from angd.problems.inference.base import noise
from angd.problems.inference.targets import neals_funnel, three_modes
from angd.problems.library import TASKS
from angd.program.main import main
from angd.recipes.choice import default
from angd.recipes.named import INFERENCE
from angd.train.folder import RunFolder

KEY = jax.random.key(0)
FLOWS = [RealNVP(3, layers=2, widths=(4,)), SplineFlow(3, layers=2, widths=(4,), bins=3)]
SLOW = pytest.mark.slow
PLANE = [
    AffineGaussian(2),
    Mixture(2, 3),
    pytest.param(RealNVP(2, 2, (4,)), marks=SLOW),
    pytest.param(SplineFlow(2, 2, (4,), 3), marks=SLOW),
]
LINE = jnp.linspace(-9.0, 9.0, 181)
GRID = jnp.stack(jnp.meshgrid(LINE, LINE, indexing="ij"), -1).reshape(-1, 2)
MEAN, COVARIANCE = jnp.array([1.0, -2.0, 0.5]), jnp.array([[2.0, 0.6, 0.0], [0.6, 1.0, -0.3], [0.0, -0.3, 0.5]])


def normal(mean, covariance):
    """log N(mean, covariance), unnormalised."""
    precision = jnp.linalg.inv(covariance)
    return lambda x: -0.5 * (x - mean) @ precision @ (x - mean)


def perturbed(model, size=0.3):
    leaves, tree = jax.tree.flatten(model.init(KEY))
    keys = jax.random.split(jax.random.key(1), len(leaves))
    moved = [leaf + size * jax.random.normal(k, leaf.shape) for leaf, k in zip(leaves, keys, strict=True)]
    return jax.tree.unflatten(tree, moved)


@pytest.mark.parametrize(
    "model", [FLOWS[0], pytest.param(FLOWS[1], marks=SLOW)], ids=lambda model: type(model).__name__
)
def test_a_flow_has_the_density_of_the_points_that_it_makes(model):
    params, z = perturbed(model, 0.5), noise(KEY, 20, 3)

    def made(z):
        return model._base.root(params["base"]) @ model.coupled(params, z) + params["base"]["mean"]

    x, J = jax.vmap(made)(z), jax.vmap(jax.jacfwd(made))(z)
    expected = -0.5 * (z**2).sum(1) - 1.5 * np.log(2 * np.pi) - np.linalg.slogdet(J)[1]
    assert np.allclose(jax.vmap(model.log_density, (None, 0))(params, x), expected, atol=1e-10)
    assert np.allclose(model.sample(params, KEY, 20), x, atol=1e-12)
    assert np.abs(expected - multivariate_normal(np.zeros(3)).logpdf(x)).max() > 0.1


@pytest.mark.parametrize("model", PLANE, ids=lambda model: type(model).__name__)
def test_a_model_is_normalised_and_samples_its_own_density(model):
    params = perturbed(model)
    weights = jnp.exp(jax.vmap(model.log_density, (None, 0))(params, GRID)) * (LINE[1] - LINE[0]) ** 2
    assert np.isclose(weights.sum(), 1.0, atol=3e-4)
    x = model.sample(params, KEY, 40_000)
    for moment in (lambda x: x, lambda x: x**2, lambda x: jnp.cos(x), lambda x: x[:, ::-1] * x):
        error = np.abs(moment(x).mean(0) - weights @ moment(GRID))
        assert np.all(error < 5 * moment(x).std(0) / 200 + 1e-3)


def test_splines_that_know_nothing_are_the_identity():
    flow = FLOWS[1]
    x = jnp.linspace(-6.0, 6.0, 50)
    y, log = jax.vmap(flow.forward, (None, 0))(jnp.zeros(flow.numbers), x)
    assert np.allclose(y, x, atol=1e-12)
    assert np.allclose(log, 0.0, atol=1e-12)


def test_a_spline_has_its_inverse_and_its_slope():
    flow = FLOWS[1]
    numbers, x = 2 * jax.random.normal(KEY, (flow.numbers,)), jnp.linspace(-5.0, 5.0, 41)
    y, log = jax.vmap(flow.forward, (None, 0))(numbers, x)
    back, log_back = jax.vmap(flow.backward, (None, 0))(numbers, y)
    slope = jax.vmap(jax.grad(lambda x: flow.forward(numbers, x)[0]))(x)
    assert np.allclose(back, x, atol=1e-9)
    assert np.allclose(log, log_back, atol=1e-8)
    assert np.allclose(slope, jnp.exp(log), atol=1e-10)
    assert np.abs(log).max() > 0.5


def test_a_mixture_is_a_sum_of_gaussians():
    model, x = Mixture(2, 3), noise(KEY, 30, 2)
    params = perturbed(model)
    weights, parts = jax.nn.softmax(params["logits"]), model.parts(params)
    covariances = jax.vmap(model.component.covariance)(parts)
    terms = zip(weights, parts["mean"], covariances, strict=True)
    expected = sum(w * multivariate_normal(mean, cov).pdf(x) for w, mean, cov in terms)
    assert np.allclose(jnp.exp(jax.vmap(model.log_density, (None, 0))(params, x)), expected, rtol=1e-10)


@pytest.mark.parametrize(
    "metric", ["fisher-rao", *(pytest.param(name, marks=SLOW) for name in ("wasserstein", "parametric-wasserstein"))]
)
def test_a_gaussian_target_is_found_exactly(metric):
    problem = ReverseKL(AffineGaussian(3), normal(MEAN, COVARIANCE))
    recipe = recipes.Inference(metric=metric, samples=100, damping=1e-6, rate=0.1, norm=10)
    fit = angd.fit(problem, recipe, steps=250, progress=False)
    found = fit.params
    assert np.allclose(found["mean"], MEAN, atol=1e-6)
    assert np.allclose(problem.model.covariance(found), COVARIANCE, atol=1e-6)
    assert judge(problem, found, KEY, 1000).effective > 1 - 1e-9


def hermite(dimension, count=8):
    """A sampler of Gauss–Hermite nodes of the present Gaussian: sums are expectations."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(count)
    z = jnp.asarray(np.stack(np.meshgrid(*[nodes] * dimension, indexing="ij"), -1).reshape(-1, dimension))
    omega = np.stack(np.meshgrid(*[weights / weights.sum()] * dimension, indexing="ij"), -1).prod(-1).reshape(-1)

    def draw(key, problem, params):
        return angd.Samples(z @ problem.model.root(params).T + params["mean"][None], omega)

    return draw


def started(mean, covariance):
    """Parameters of a Gaussian."""
    A = jnp.linalg.inv(jnp.linalg.cholesky(covariance))
    below = A[jnp.tril_indices(len(mean), -1)]
    return {"mean": mean, "log_scale": -jnp.log(jnp.diag(A)), "below": below}


def ends(problem, metric, flow, start, steps, dimension=2):
    opt = angd.ANGD(flow, metric, angd.Normal(1e-12))
    fit = angd.fit(problem, opt, params=start, samples=hermite(dimension), steps=steps, progress=False)
    return fit.params


def test_small_steps_follow_the_natural_gradient_flow_of_gaussians():
    """Natural parameters Σ⁻¹ and Σ⁻¹m go to those of the target as e⁻ᵗ."""
    start, Q = COVARIANCE[1:, 1:], COVARIANCE[:2, :2]
    problem, t = ReverseKL(AffineGaussian(2), normal(jnp.zeros(2), Q)), 1.0
    precision = jnp.linalg.inv(Q) + np.exp(-t) * (jnp.linalg.inv(start) - jnp.linalg.inv(Q))
    tilt = np.exp(-t) * jnp.linalg.solve(start, MEAN[:2])
    errors = []
    for steps in (20, 40):
        flow = angd.ARGFlow.gradient(t / steps)
        params = ends(problem, angd.FisherRao(correction=False), flow, started(MEAN[:2], start), steps)
        found = jnp.linalg.inv(problem.model.covariance(params))
        errors.append(max(np.abs(found - precision).max(), np.abs(found @ params["mean"] - tilt).max()))
    assert 1.9 < errors[0] / errors[1] < 2.1
    assert errors[1] < 0.05


def test_accelerated_steps_of_wasserstein_follow_the_flow_of_gaussians():
    Q, S, m = jnp.array([[2.0, 0.6], [0.6, 0.7]]), jnp.array([[0.5, -0.3], [-0.3, 1.6]]), jnp.array([1.0, -1.0])
    problem, times = ReverseKL(AffineGaussian(2), normal(jnp.zeros(2), Q)), (1.0, 2.5)
    flow = angd.ARGFlow(alpha=angd.OverTime(3.0))
    target = angd.GaussianRelativeEntropy(angd.Gaussian(jnp.zeros(2), Q))
    exact = angd.solve_flow(angd.GaussianManifold(), target, flow, angd.Gaussian(m, S), *times, save=2)
    errors = []
    for steps in (20, 40):
        stepped = angd.ARGFlow(alpha=angd.OverTime(3.0), h=1.5 / steps, t0=1.0)
        params = ends(problem, angd.Wasserstein(), stepped, started(m, S), steps)
        mean = np.abs(params["mean"] - exact.rho.mean[-1]).max()
        errors.append(max(mean, np.abs(problem.model.covariance(params) - exact.rho.cov[-1]).max()))
    assert 1.7 < errors[0] / errors[1] < 2.2
    assert errors[1] < 0.05


@pytest.mark.parametrize(
    ("beta", "exact", "error"),
    [
        pytest.param(0.0, (0.23051465, -0.15599028), 2.954e-3, marks=SLOW),
        (0.4, (0.30323261, -0.10061873), 3.099e-3),
    ],
)
def test_accelerated_steps_of_fisher_rao_err_as_the_theory_says(beta, exact, error):
    """Of θ = (m, log s) at t = 4, from the differential equation of the flow on Gaussians of the line."""
    problem = ReverseKL(AffineGaussian(1), lambda x: -0.5 * jnp.sum(x**2))
    flow = angd.ARGFlow(alpha=angd.OverTime(3.0), beta=beta, h=0.06, t0=1.0)
    start = {"mean": jnp.array([1.2]), "log_scale": jnp.log(jnp.array([0.7]))}
    opt = angd.ANGD(flow, angd.FisherRao(limit=None), angd.Normal(1e-13))
    params = angd.fit(problem, opt, params=start, samples=hermite(1, 20), steps=50, progress=False).params
    found = np.array([params["mean"][0], params["log_scale"][0]])
    assert np.isclose(np.abs(found - np.array(exact)).max(), error, rtol=0.05)


def test_maximum_likelihood_of_a_gaussian_is_the_mean_and_the_covariance_of_the_data():
    data = np.random.default_rng(0).normal(size=(60, 2)) @ np.array([[1.0, 0.7], [0.0, 0.4]]) + 2.0
    problem = ForwardKL(AffineGaussian(2), data)
    fit = angd.fit(problem, steps=200, progress=False)
    assert default(fit.task) == "inference"
    assert np.allclose(fit.params["mean"], data.mean(0), atol=1e-6)
    assert np.allclose(problem.model.covariance(fit.params), np.cov(data.T, bias=True), atol=1e-6)
    again = angd.fit(problem, angd.baselines.adam(0.1), steps=100, progress=False)
    assert np.allclose(again.params["mean"], data.mean(0), atol=0.1)


def test_batches_of_data_are_drawn_anew():
    problem = ForwardKL(AffineGaussian(1), np.arange(10.0)[:, None], batch=4)
    params = problem.init(KEY)
    seen = [set(np.ravel(problem.draw(params, jax.random.key(k), 3)["data"].x)) for k in range(6)]
    assert all(len(part) == 4 for part in seen)
    assert set().union(*seen) > seen[0]


@SLOW
def test_particles_of_wasserstein_move_with_the_flow_until_new_ones_are_drawn():
    drawn = []

    class Counted(ReverseKL):
        def draw(self, params, key, n):
            jax.debug.callback(lambda: drawn.append(n))
            return super().draw(params, key, n)

    problem = Counted(AffineGaussian(2), normal(MEAN[:2], COVARIANCE[:2, :2]))
    recipe = recipes.Inference(metric="wasserstein", every=10, samples=100, damping=1e-6, rate=0.1, norm=10)
    before = None

    def follow(state, info):
        nonlocal before
        if before is not None and state.k % 10 == 5:
            travelled = np.abs(state.samples.x - before).max()
            assert 0 < travelled < 1
        before = state.samples.x

    fit = angd.fit(problem, recipe, steps=120, progress=False, callback=follow)
    assert len(drawn) <= 14
    assert np.allclose(fit.params["mean"], MEAN[:2], atol=1e-2)


TINY = ReverseKL(AffineGaussian(2), normal(MEAN[:2], COVARIANCE[:2, :2]))


QUICK = ("inference",)


@pytest.mark.parametrize("name", [pytest.param(name, marks=[] if name in QUICK else SLOW) for name in INFERENCE])
def test_every_recipe_lowers_the_divergence(name):
    fit = angd.fit(TINY, name, steps=25, progress=False)
    losses = fit.history["loss"]
    assert losses[-1] < losses[0] - 0.5
    assert np.allclose(jnp.exp(fit(GRID)).sum() * (LINE[1] - LINE[0]) ** 2, 1.0, atol=1e-3)


@SLOW
def test_an_optimiser_and_the_recipes_of_chains_draw_as_well():
    opt = angd.ANGD(angd.ARGFlow.gradient(0.3), angd.FisherRao(), angd.Normal(1e-3))
    for method in (opt, recipes.Vmc(walkers=50)):
        fit = angd.fit(TINY, method, steps=4, progress=False)
        assert fit.history["loss"][-1] < fit.history["loss"][0]


def test_a_density_of_ones_own_needs_two_methods_more_than_a_chain_would():
    class Own:
        def log_density(self, params, x):
            return -0.5 * jnp.sum((x - params) ** 2)

        def variation(self, params, x):
            return self.log_density(params, x) + 0.5 * jnp.sum((x - 1.0) ** 2)

        def draw(self, params, key, n):
            return angd.Samples(params[None] + jax.random.normal(key, (n, 1)))

    fit = angd.fit(Own(), params=jnp.zeros(1), steps=100, progress=False)
    assert np.allclose(fit.params, 1.0, atol=1e-6)


FILE = """
import jax.numpy as jnp
from angd.problems.inference import AffineGaussian, ReverseKL

problem = ReverseKL(AffineGaussian(1), lambda x: -0.5 * jnp.sum((x - 3.0) ** 2))
"""


@pytest.mark.parametrize("place", ["mine.py", *(pytest.param(n, marks=SLOW) for n in ("gaussian-mixture", "funnel"))])
def test_the_program_runs_a_file_and_the_built_in_tasks(tmp_path, monkeypatch, place):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(FILE, encoding="utf-8")
    options = ["--samples", "100", "--steps", "15", "--out", "run", "--quiet"]
    assert main(["run", place, "inference", *options]) == 0
    records = RunFolder(tmp_path / "run").records()
    assert (records[-1].loss or 0.0) < (records[0].loss or 0.0)
    assert place == "mine.py" or set(records[-1].observables) == {"KL", "effective"}


def test_targets_are_normalised():
    cell = (LINE[1] - LINE[0]) ** 2
    assert np.isclose(jnp.exp(jax.vmap(three_modes)(GRID)).sum() * cell, 1.0, atol=1e-6)
    fine = jnp.linspace(-150.0, 150.0, 6_001)
    along = jax.vmap(lambda v: jnp.exp(jax.vmap(lambda y: neals_funnel(jnp.stack([v, y])))(fine)).sum())
    marginal = along(jnp.array([-1.0, 0.5, 2.0])) * (fine[1] - fine[0])
    expected = np.exp(-0.5 * (np.array([-1.0, 0.5, 2.0]) / 1.5) ** 2) / np.sqrt(2 * np.pi) / 1.5
    assert np.allclose(marginal, expected, rtol=1e-3)


def test_importance_weights_judge_a_fit():
    """Of N(0, 1) for N(0, s²): KL and the moments of the weights in closed form."""
    s = 1.2
    problem = ReverseKL(AffineGaussian(1), lambda x: -0.5 * jnp.sum(x**2) / s**2)
    quality = judge(problem, problem.model.init(KEY), KEY, 200_000)
    kl = np.log(s) + 0.5 / s**2 - 0.5
    assert np.isclose(quality.evidence, np.log(s * np.sqrt(2 * np.pi)), atol=0.01)
    assert np.isclose(quality.gap, kl, atol=0.01)
    assert np.isclose(quality.effective, s * np.sqrt(2 - s**2), atol=0.02)


MISUSES = {
    "whole numbers": (lambda: ForwardKL(AffineGaussian(1), np.arange(5)[:, None]), "data are int64.*floating-point"),
    "a list of points": (lambda: ForwardKL(AffineGaussian(2), np.zeros(5)), r"shape \(N, 2\).*got \(5,\)"),
    "a hole in the data": (lambda: ForwardKL(AffineGaussian(1), np.array([[np.nan]])), "not finite"),
    "a batch too large": (lambda: ForwardKL(AffineGaussian(1), np.zeros((3, 1)), batch=4), "from 1 to 3"),
    "an array for a target": (
        lambda: angd.fit(ReverseKL(AffineGaussian(2), lambda x: -(x**2))),
        "must return one number",
    ),
    "a target of whole numbers": (
        lambda: ReverseKL(AffineGaussian(2), lambda x: jnp.sum(x).astype(int)).init(KEY),
        "must return a real number, got int64",
    ),
    "a target without mass": (lambda: ReverseKL(AffineGaussian(2), lambda x: -jnp.inf + x[0]).init(KEY), "is -inf at"),
    "no function": (lambda: ReverseKL(AffineGaussian(2), 3.0), "must be a function"),
    "a class": (lambda: ReverseKL(AffineGaussian, normal(MEAN, COVARIANCE)), "AffineGaussian is no model.*made first"),
    "no model": (lambda: ReverseKL(3, normal(MEAN, COVARIANCE)), "a int is no model of a density: it has no dimension"),
    "coupling on a line": (lambda: RealNVP(1), "two coordinates.*Mixture"),
    "no dimension": (lambda: Mixture(0), "dimension must be a whole number, at least 1"),
    "one bin": (lambda: SplineFlow(2, bins=1), "bins ≥ 2"),
    "spread": (lambda: AffineGaussian(2, spread=0.0), "spread must be positive"),
    "beta without velocities": (
        lambda: recipes.Inference(metric="parametric-wasserstein", beta=1.0),
        "beta acts on velocities",
    ),
    "an idle option": (lambda: recipes.Inference(refit="kernel"), "refit has no effect"),
    "data to Wasserstein": (
        lambda: angd.fit(ForwardKL(AffineGaussian(1), np.zeros((3, 1))), "inference-w2", steps=1),
        "a ForwardKL has no variation.*take fisher-rao",
    ),
    "a molecule": (lambda: angd.fit("vmc-h", "inference", steps=1), "draws no samples of its own"),
    "an equation": (lambda: angd.fit("heat", "inference", steps=1), "inference is not for heat"),
    "another network": (lambda: TASKS["funnel"]("paper"), "one model only"),
}


@pytest.mark.parametrize("name", MISUSES)
def test_misuse_is_told_in_one_sentence(name):
    action, words = MISUSES[name]
    with pytest.raises(ValueError, match=words) as caught:
        action()
    assert str(caught.value).count("\n") == 0
