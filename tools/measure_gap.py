"""When does acceleration pay for ground states? A particle in a double well, whose gap is as small as we like, into
results/gap.json.

    python tools/measure_gap.py

V = x²/2 + A exp(−2x²) on the line; log|ψ| is a sum of 23 fixed functions; the start is to the right, in one of the
wells where A > 0, so that the slowest motion is through the barrier, at the rate of the gap between the two lowest
levels. Natural gradients in the Fisher–Rao metric with μ = 0 and with momentum, λ = 1e-5; every combination of eleven
rates (and five μ) is tried, the best is told. First all is integrated over a grid, without noise: "steps" until the
energy stays within a hundredth of the gap above the exact one. Then 256 fresh walkers are drawn from |ψ|² in every
step: "half" and "whole" are energy errors after half and all of the steps that the plain method needed without noise,
as shares of the gap: median, mean and its standard error over sixteen seeds, of the combination with the least mean
over four others. "spread" is the mean standard deviation of local energies then, in gaps. Energies are always
integrated, so that the figures have no noise of an evaluation.
"""

import json
from itertools import product
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

import angd
from angd.train.environment import stamp
from angd.train.files import write_atomically
from settled import settled

OUT = Path(__file__).parent.parent / "results" / "gap.json"
BARRIERS = (0.0, 2.0, 6.0)
RATES = tuple(float(f"{r:.2g}") for r in np.geomspace(0.005, 0.5, 11))
MUS = (0.5, 0.8, 0.9, 0.95, 0.98)
STEPS, WALKERS, DAMPING, NEAR = 3000, 256, 1e-5, 0.01
TUNING, SEEDS = 4, 16
KINDS = {"plain": True, "fast": False}
GRID = jnp.linspace(-5.0, 5.0, 301)
CENTRES = jnp.linspace(-4.0, 4.0, 21)


class Well(eqx.Module):
    """The particle; `barrier` is A."""

    barrier: float

    def log_density(self, params: Float[Array, " 23"], x: Float[Array, ""]) -> Float[Array, ""]:
        return 2 * jnp.dot(params, features(x))

    def variation(self, params: Float[Array, " 23"], x: Float[Array, ""]) -> Float[Array, ""]:
        """The local energy, from derivatives by JAX."""
        slope = jax.grad(lambda y: jnp.dot(params, features(y)))
        first, second = jax.jvp(slope, (x,), (jnp.ones_like(x),))
        return -0.5 * (second + first**2) + self.potential(x)

    def potential(self, x: Array) -> Array:
        return 0.5 * x**2 + self.barrier * jnp.exp(-2 * x**2)

    def levels(self) -> tuple[float, float]:
        """The two lowest energies, by sine functions on a finer grid: independent of the model."""
        n, size = 600, 14.0
        x, k = size * (np.arange(1, n) / n - 0.5), np.arange(1, n)
        waves = np.sqrt(2 / n) * np.sin(np.pi * np.outer(k, np.arange(1, n)) / n)
        H = waves.T @ np.diag(0.5 * (np.pi * k / size) ** 2) @ waves + np.diag(np.asarray(self.potential(jnp.array(x))))
        lowest = np.linalg.eigvalsh(H)[:2]
        return float(lowest[0]), float(lowest[1])


def features(x: Float[Array, ""]) -> Float[Array, " 23"]:
    """x, x² and bells."""
    return jnp.concatenate([jnp.stack([x, x**2]), jnp.exp(-2 * (x - CENTRES) ** 2)])


def start() -> Float[Array, " 23"]:
    """Within one well."""
    return jnp.zeros(23).at[0].set(1.2).at[1].set(-0.5)


class Course(eqx.Module):
    """After 0, 1, 2, … steps: the energy and the standard deviation of local energies, integrated over the grid."""

    energy: Float[Array, "..."]
    spread: Float[Array, "..."]


@eqx.filter_jit
def course(well: Well, opt: angd.ANGD, key: Array | None, steps: int) -> Course:
    """With walkers where there is a key."""

    def once(carry: Any, k: Array) -> tuple[Any, Course]:
        params, state = carry
        log = jax.vmap(well.log_density, (None, 0))(params, GRID)
        omega, local = jax.nn.softmax(log), jax.vmap(well.variation, (None, 0))(params, GRID)
        energy = jnp.dot(omega, local)
        here = Course(energy, jnp.sqrt(jnp.dot(omega, (local - energy) ** 2)))
        samples = angd.Samples(GRID, omega)
        if key is not None:
            samples = angd.Samples(GRID[jax.random.categorical(jax.random.fold_in(key, k), log, shape=(WALKERS,))])
        params, _, state, _ = opt.step(well, params, samples, state)
        return (params, state), here

    like = angd.Samples(GRID if key is None else GRID[:WALKERS])
    return jax.lax.scan(once, (start(), opt.init(well, start(), like)), jnp.arange(steps + 1))[1]


def method(rate: Array, mu: Array, plain: bool) -> angd.ANGD:
    """Plain, or with the momentum of the flow and its correction."""
    metric = angd.FisherRao(limit=None, correction=False) if plain else angd.FisherRao()
    return angd.ANGD(angd.ARGFlow.momentum(mu, rate), metric, angd.Normal(DAMPING))


def courses(well: Well, plain: bool, tried: list[tuple[float, float]], key: Array | None, steps: int) -> Course:
    """Of several configurations, side by side."""
    rates, mus = (jnp.array(column) for column in zip(*tried, strict=True))
    return jax.vmap(lambda rate, mu: course(well, method(rate, mu, plain), key, steps))(rates, mus)


def sound(energies: Any, exact: float, gap: float) -> np.ndarray:
    """Errors in gaps; infinite from where on ψ has left the grid, so that the integral means nothing."""
    errors = (np.asarray(energies) - exact) / gap
    return np.where(np.minimum.accumulate(errors > -1e-3, axis=-1), errors, np.inf)


def without_noise(well: Well, plain: bool, levels: tuple[float, float]) -> dict[str, Any]:
    """The configuration that needs the fewest steps."""
    tried = configurations(plain)
    errors = sound(courses(well, plain, tried, None, STEPS).energy, *levels)
    counts = [settled(list(row), NEAR) for row in errors]
    steps, (rate, mu) = min((count, c) for count, c in zip(counts, tried, strict=True) if count is not None)
    return {"rate": rate, "mu": mu, "steps": steps}


def with_walkers(well: Well, plain: bool, levels: tuple[float, float], steps: int) -> dict[str, Any]:
    """Errors after so many steps, of the configuration that is best on other seeds."""
    tried = configurations(plain)
    runs = [courses(well, plain, tried, jax.random.key(100 + seed), steps).energy for seed in range(TUNING)]
    means = np.mean([sound(run, *levels)[:, -1] for run in runs], axis=0)
    rate, mu = tried[int(np.argmin(means))]
    keys = jax.random.split(jax.random.key(0), SEEDS)
    found = jax.vmap(lambda key: course(well, method(jnp.array(rate), jnp.array(mu), plain), key, steps))(keys)
    errors = sound(found.energy, *levels)[:, -1]
    figures = {
        "median": np.median(errors),
        "mean": np.mean(errors),
        "standard_error": np.std(errors, ddof=1) / SEEDS**0.5,
        "spread": np.mean(found.spread[:, -1]) / levels[1],
    }
    return {"steps": steps, "rate": rate, "mu": mu} | {name: float(f"{v:.3g}") for name, v in figures.items()}


def configurations(plain: bool) -> list[tuple[float, float]]:
    """Rates and μ."""
    return list(product(RATES, (0.0,) if plain else MUS))


def measure(barrier: float) -> dict[str, Any]:
    """One well."""
    well = Well(barrier)
    exact, excited = well.levels()
    levels = exact, excited - exact
    found: dict[str, Any] = {"gap": float(f"{levels[1]:.4g}")}
    for name in KINDS:
        found[name] = without_noise(well, KINDS[name], levels)
    found["share"] = float(f"{found['fast']['steps'] / found['plain']['steps']:.3g}")
    for part, steps in (("half", found["plain"]["steps"] // 2), ("whole", found["plain"]["steps"])):
        for name in KINDS:
            found[name][part] = with_walkers(well, KINDS[name], levels, steps)
    print(barrier, found, flush=True)
    return found


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    values = {f"barrier_{barrier:g}": measure(barrier) for barrier in BARRIERS}
    report = stamp("python tools/measure_gap.py", list(range(SEEDS))) | {"values": values}
    text = json.dumps(report, indent=1) + "\n"
    write_atomically(OUT, lambda path: path.write_text(text, encoding="utf-8"))
