"""How well are densities fitted, and does acceleration pay there? Into results/inference.json.

    python tools/measure_inference.py [w2] [logistic] [funnel] [regression] [digits]

"w2": mixtures of two Gaussians fitted to densities with two modes, round ones and ones that are four times as wide as
high, Wasserstein-2, 256 exact samples in every step: without momentum; with that of particles, velocities carried to
new samples by an affine field; with the momentum in the parameters; and with particles that are never drawn again, as
the algorithm is printed. Of each method 24 configurations are tried on six seeds of their own; the one with the fewest
iterations until KL stays below 1e-2 (mean, 500 where it does not) runs from eight other starts. KL is integrated over a
grid.

"logistic": the posterior of a Bayesian logistic regression (breast cancer, five standardised features, prior N(0, 1))
and "funnel": Neal's funnel in two dimensions, each by a normalising flow and by a long NUTS run of blackjax. Errors are
in units of NUTS' standard deviation, and of the exact one for the funnel.

"regression" and "digits": data sets of scikit-learn; natural gradients, Adam and L-BFGS for equal CPU-seconds, the loss
of held-out data.
"""

import json
import sys
from functools import partial
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import blackjax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float

import angd
from angd.problems.inference import Mixture, RealNVP, ReverseKL
from angd.problems.inference.targets import neals_funnel
from angd.train.environment import stamp
from angd.train.files import write_atomically
from settled import settled

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))
import learning

OUT = Path(__file__).parent.parent / "results" / "inference.json"
SAMPLES, STEPS, GOAL = 256, 500, 1e-2
TUNING, SEEDS = tuple(range(100, 106)), tuple(range(8))
# Rates in units of the least variance of the target, momentum, damping.
PLAIN = [(rate, 0.0, damping) for rate, damping in product(np.geomspace(0.1, 1.2, 8).tolist(), (1e-3, 1e-2, 1e-1))]
FAST = list(product((0.12, 0.25, 0.5), (0.5, 0.8, 0.9, 0.95), (1e-2, 1e-1)))
WIDTHS = {"round": (0.8, 0.8), "stretched": (0.8, 0.2)}
METHODS: dict[str, tuple[Any, bool, list[Any]]] = {  # metric, samples drawn anew, configurations
    "ngd": (angd.Wasserstein(), True, PLAIN),
    "particles": (angd.Wasserstein(angd.AffineRefit()), True, FAST),
    "parameters": (angd.ParametricWasserstein(), True, FAST),
    "kept": (angd.Wasserstein(None), False, FAST),
}


class TwoModes(eqx.Module):
    """½ N((−2, 0), Σ) + ½ N((2, 0), Σ), Σ diagonal."""

    widths: tuple[float, float] = eqx.field(static=True)

    def __call__(self, x: Float[Array, " 2"]) -> Float[Array, ""]:
        centres, widths = jnp.array([[-2.0, 0.0], [2.0, 0.0]]), jnp.array(self.widths)
        squares = jnp.sum(((x[None] - centres) / widths[None]) ** 2, axis=1)
        return logsumexp(-squares / 2) - jnp.log(4 * jnp.pi * jnp.prod(widths))


AXES = jnp.linspace(-7.0, 7.0, 71), jnp.linspace(-6.0, 6.0, 121)
GRID = jnp.stack(jnp.meshgrid(*AXES, indexing="ij"), -1).reshape(-1, 2)
CELL = (AXES[0][1] - AXES[0][0]) * (AXES[1][1] - AXES[1][0])


def divergence(problem: ReverseKL, params: Any) -> Float[Array, ""]:
    """KL(ρ ‖ target) over a grid; infinite where ρ has left it, or is too narrow for it."""
    log, f = (jax.vmap(u, (None, 0))(params, GRID) for u in (problem.log_density, problem.variation))
    weights = jnp.exp(log) * CELL
    return jnp.where(jnp.abs(jnp.sum(weights) - 1) < 1e-3, jnp.sum(weights * f), jnp.inf)


def course(
    problem: ReverseKL, metric: Any, fresh: bool, tried: Float[Array, "3"], seed: Array
) -> Float[Array, " steps"]:
    """KL before every step."""
    rate, mu, damping = tried
    solver = eqx.tree_at(lambda normal: normal.damping, angd.Normal(1e-3), damping)
    opt = angd.ANGD(angd.ARGFlow.momentum(mu, rate), metric, solver, angd.Restart())
    key = jax.random.key(seed)
    params = problem.init(key)
    first = problem.draw(params, key, SAMPLES)

    def once(carry: Any, k: Array) -> tuple[Any, Array]:
        params, samples, state = carry
        if fresh:
            samples = problem.draw(params, jax.random.fold_in(key, k), SAMPLES)
        here = divergence(problem, params)
        params, samples, state, _ = opt.step(problem, params, samples, state)
        return (params, samples, state), here

    start = (params, first, opt.init(problem, params, first))
    return jax.lax.scan(once, start, jnp.arange(STEPS))[1]


@eqx.filter_jit
def courses(
    problem: ReverseKL, metric: Any, fresh: bool, tried: Float[Array, "c 3"], seeds: Array
) -> Float[Array, "c s steps"]:
    """Of all configurations from all starts."""
    one = partial(course, problem, metric, fresh)
    return jax.lax.map(lambda c: jax.vmap(lambda seed: one(c, seed))(seeds), tried)


def iterations(rows: Any) -> list[float]:
    """Until KL stays below the goal, infinite where it does not."""
    counts = [settled([float(v) for v in row], GOAL) for row in rows]
    return [float("inf") if count is None else float(count) for count in counts]


def best_of(widths: tuple[float, float], method: str) -> dict[str, Any]:
    """Tuned on its own seeds, measured on others."""
    metric, fresh, given = METHODS[method]
    problem = ReverseKL(Mixture(2, components=2), TwoModes(widths))
    tried = jnp.array([(rate * min(widths) ** 2, mu, damping) for rate, mu, damping in given])
    means = [
        float(np.mean(np.minimum(iterations(rows), STEPS)))
        for rows in courses(problem, metric, fresh, tried, jnp.array(TUNING))
    ]
    best = int(np.argmin(means))
    counts = iterations(courses(problem, metric, fresh, tried[best : best + 1], jnp.array(SEEDS))[0])
    found = {
        "rate": float(f"{tried[best, 0]:.2g}"),
        "mu": given[best][1],
        "damping": given[best][2],
        "tuning": float(f"{min(means):.3g}"),
        "iterations": [c if c < float("inf") else None for c in counts],
        "arrived": sum(c < float("inf") for c in counts),
        "median": finite(median(counts)),
        "mean": float(f"{np.mean(np.minimum(counts, STEPS)):.3g}"),
    }
    print(widths, method, found, flush=True)
    return found


def finite(x: float) -> float | None:
    return x if np.isfinite(x) else None


def w2() -> dict[str, Any]:
    """Each method on each target."""
    return {name: shared({m: best_of(widths, m) for m in METHODS}) for name, widths in WIDTHS.items()}


def shared(found: dict[str, Any]) -> dict[str, Any]:
    """With shares of the median of what has no momentum: at most so much where that does not arrive at all."""
    plain = found["ngd"]["median"] or STEPS
    for row in found.values():
        row["share"] = None if row["median"] is None else float(f"{row['median'] / plain:.2g}")
    return found


class Logistic(eqx.Module):
    """log posterior: a normal prior and Bernoulli data."""

    x: Float[Array, "N d"]
    y: Float[Array, " N"]

    def __call__(self, w: Float[Array, " d"]) -> Float[Array, ""]:
        margin = (self.x @ w) * self.y
        return -jnp.sum(jax.nn.softplus(-margin)) - 0.5 * jnp.sum(w**2)


def posterior() -> Logistic:
    """Breast cancer: mean texture, smoothness, compactness, symmetry and radius, standardised, and a constant."""
    from sklearn.datasets import load_breast_cancer

    data: Any = load_breast_cancer()
    x = data.data[:, [1, 4, 5, 8, 0]]
    x = (x - x.mean(0)) / x.std(0)
    return Logistic(jnp.asarray(np.column_stack([np.ones(len(x)), x])), jnp.asarray(2.0 * data.target - 1))


@eqx.filter_jit
def nuts(target: Any, start: Float[Array, "c d"], key: Array, draws: int, warm: int = 1000) -> Float[Array, "c n d"]:
    """Chains side by side, adapted one by one."""

    def chain(x: Array, key: Array) -> Array:
        adapt, run = jax.random.split(key)
        (state, parameters), _ = blackjax.window_adaptation(blackjax.nuts, target).run(adapt, x, warm)  # pyright: ignore
        kernel = blackjax.nuts(target, **parameters).step
        return jax.lax.scan(lambda s, k: ((n := kernel(k, s)[0]), n.position), state, jax.random.split(run, draws))[1]  # pyright: ignore

    with jax.numpy_rank_promotion("allow"):
        return jax.vmap(chain)(start, jax.random.split(key, start.shape[0]))


def moments(x: Any) -> tuple[np.ndarray, np.ndarray]:
    x = np.asarray(x).reshape(-1, np.shape(x)[-1])
    return x.mean(0), x.std(0)


def compared(problem: ReverseKL, steps: int, draws: int, exact: Any = None, **options: Any) -> dict[str, Any]:
    """A flow against NUTS: largest differences of means and standard deviations, in standard deviations."""
    from angd.problems.inference import judge

    recipe, key, d = angd.recipes.Inference(**options), jax.random.key(0), problem.model.dimension
    fit = angd.fit(problem, recipe, steps=steps, progress=False)
    mine = moments(problem.model.sample(fit.params, key, 400_000))
    chains = nuts(problem.log_target, 0.1 * jax.random.normal(key, (4, d)), key, draws)
    theirs = moments(chains) if exact is None else exact
    quality = judge(problem, fit.params, key)

    def apart(a: Any, b: Any) -> dict[str, float]:
        mean, std = np.abs(a[0] - b[0]) / b[1], np.abs(a[1] / b[1] - 1)
        return {"mean": float(f"{mean.max():.2g}"), "std": float(f"{std.max():.2g}")}

    found = {
        "steps": steps,
        "seconds": round(fit.history["cpu_seconds"][-1]),
        "flow": apart(mine, theirs),
        "effective": round(quality.effective, 3),
        "nuts_effective": round(float(np.min(blackjax.diagnostics.effective_sample_size(chains)))),
        "nuts_rhat": round(float(np.max(blackjax.diagnostics.potential_scale_reduction(chains))), 4),
    }
    if exact is not None:
        found["nuts"] = apart(moments(chains), exact)
    print(found, flush=True)
    return found


def logistic() -> dict[str, Any]:
    return compared(ReverseKL(RealNVP(6, layers=4), posterior()), 400, 60_000, rate=0.1, decay=1e-2, samples=1500)


def funnel() -> dict[str, Any]:
    exact = np.zeros(2), np.array([1.5, np.exp(1.5**2 / 4)])
    return compared(ReverseKL(RealNVP(2, layers=4), neals_funnel), 300, 8_000, exact, rate=0.1, decay=1e-2)


def raced(make: Any, seconds: float) -> dict[str, Any]:
    """Medians over three starts of what examples/learning.py shows."""
    rows = [learning.race(make, seconds, key) for key in range(3)]
    names = ("steps", "train", "best", "last")
    found = {m: {n: float(f"{median(row[m][n] for row in rows):.3g}") for n in names} for m in rows[0]}
    print(make.__name__, found, flush=True)
    return {"cpu_seconds": seconds} | found


def regression() -> dict[str, Any]:
    return raced(learning.diabetes, 5.0)


def digits() -> dict[str, Any]:
    return raced(learning.digits, 10.0)


PARTS = {
    "w2": w2,
    "logistic": logistic,
    "funnel": funnel,
    "regression": regression,
    "digits": digits,
}


def write(values: dict[str, Any]) -> None:
    """Parts that were not measured now stay as they were."""
    before = json.loads(OUT.read_text(encoding="utf-8"))["values"] if OUT.exists() else {}
    report = stamp("python tools/measure_inference.py", list(SEEDS)) | {"values": before | values}
    text = json.dumps(report, indent=1) + "\n"
    write_atomically(OUT, lambda path: path.write_text(text, encoding="utf-8"))


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    for part in sys.argv[1:] or PARTS:
        write({part: PARTS[part]()})
