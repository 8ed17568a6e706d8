"""When does acceleration pay for ground states? A particle in a double well, whose gap is as small as we like, into
results/gap.json.

    python tools/measure_gap.py

V = x²/2 + A exp(−2x²) on the line; log|ψ| is a sum of 23 fixed functions; the start is in one of the wells, so that
the slowest motion is through the barrier, at the rate of the gap between the two lowest levels. Natural gradients in
the Fisher–Rao metric with μ = 0 and with momentum; every combination of eleven rates (and five μ) is tried, the best is
told. First all is integrated over a grid, without noise: "steps" until the energy stays within a hundredth of the gap
above the exact one. Then 256 fresh walkers are drawn from |ψ|² in every step: "whole" and "half" are the energy errors
after as many steps as the plain method needed without noise, and after half of them, as shares of the gap ("gaps"),
means over the last tenth of these steps and eight seeds, of the best combination for each. Energies are always
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
from angd.experiments.environment import stamp
from angd.experiments.files import write_atomically
from settled import settled

OUT = Path(__file__).parent.parent / "results" / "gap.json"
BARRIERS = (0.0, 2.0, 6.0)
RATES = tuple(float(f"{r:.2g}") for r in np.geomspace(0.005, 0.5, 11))
MUS = (0.5, 0.8, 0.9, 0.95, 0.98)
STEPS, WALKERS, SEEDS, DAMPING, NEAR = 3000, 256, 8, 1e-5, 0.01
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


@eqx.filter_jit
def course(well: Well, opt: angd.ANGD, key: Array | None, steps: int) -> Float[Array, " steps"]:
    """Energies, integrated over the grid, before each step; with walkers where there is a key."""

    def once(carry: Any, k: Array) -> tuple[Any, Array]:
        params, state = carry
        log = jax.vmap(well.log_density, (None, 0))(params, GRID)
        omega = jax.nn.softmax(log)
        energy = jnp.dot(omega, jax.vmap(well.variation, (None, 0))(params, GRID))
        samples = angd.Samples(GRID, omega)
        if key is not None:
            samples = angd.Samples(GRID[jax.random.categorical(jax.random.fold_in(key, k), log, shape=(WALKERS,))])
        params, _, state, _ = opt.step(well, params, samples, state)
        return (params, state), energy

    like = angd.Samples(GRID if key is None else GRID[:WALKERS])
    return jax.lax.scan(once, (start(), opt.init(well, start(), like)), jnp.arange(steps))[1]


def method(rate: Array, mu: Array, plain: bool) -> angd.ANGD:
    """Plain, or with the momentum of the flow and its correction."""
    metric = angd.FisherRao(limit=None, correction=False) if plain else angd.FisherRao()
    return angd.ANGD(angd.ARGFlow(alpha=(1 - mu) / rate**0.5, h=rate**0.5), metric, angd.Normal(DAMPING))


def best(found: dict[tuple[float, float], float]) -> tuple[tuple[float, float], float]:
    """The configuration with the least figure."""
    chosen = min(found, key=lambda c: found[c])
    return chosen, found[chosen]


def all_courses(well: Well, plain: bool, key: Array | None, steps: int) -> dict[tuple[float, float], np.ndarray]:
    """Energies of every configuration, side by side; infinite where ψ has left the grid and the integral is none."""
    tried = list(product(RATES, (0.0,) if plain else MUS))
    rates, mus = (jnp.array(column) for column in zip(*tried, strict=True))
    rows = jax.vmap(lambda rate, mu: course(well, method(rate, mu, plain), key, steps))(rates, mus)
    sound = np.minimum.accumulate(np.asarray(rows > well.levels()[0] - 1e-3), axis=1)
    return dict(zip(tried, np.where(sound, rows, np.inf), strict=True))


def without_noise(well: Well, plain: bool, goal: float) -> tuple[tuple[float, float], float]:
    """The best configuration, and its steps until the energy stays at or below a goal."""
    courses = all_courses(well, plain, None, STEPS)
    counts = {c: settled(list(row), goal) for c, row in courses.items()}
    return best({c: float("inf") if count is None else count for c, count in counts.items()})


def with_walkers(well: Well, plain: bool, exact: float, steps: int) -> tuple[tuple[float, float], float]:
    """The best configuration, and its energy error at the end."""
    keys = [jax.random.key(seed) for seed in range(SEEDS)]
    runs = [all_courses(well, plain, key, steps) for key in keys]
    tails = {c: np.mean([run[c][-steps // 10 :] for run in runs]) - exact for c in runs[0]}
    return best({c: float(value) for c, value in tails.items()})


def measure(barrier: float) -> dict[str, Any]:
    """One well."""
    well = Well(barrier)
    exact, excited = well.levels()
    gap = excited - exact
    found: dict[str, Any] = {"gap": float(f"{gap:.4g}")}
    for name, plain in (("plain", True), ("fast", False)):
        (rate, mu), steps = without_noise(well, plain, exact + NEAR * gap)
        found[name] = {"rate": rate, "mu": mu, "steps": steps if np.isfinite(steps) else None}
    if found["plain"]["steps"] and found["fast"]["steps"]:
        found["share"] = float(f"{found['fast']['steps'] / found['plain']['steps']:.3g}")
        for part, steps in (("half", found["plain"]["steps"] // 2), ("whole", found["plain"]["steps"])):
            for name, plain in (("plain", True), ("fast", False)):
                (rate, mu), error = with_walkers(well, plain, exact, int(steps))
                found[name][part] = {"steps": steps, "rate": rate, "mu": mu, "gaps": float(f"{error / gap:.3g}")}
    print(barrier, found, flush=True)
    return found


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    values = {f"barrier_{barrier:g}": measure(barrier) for barrier in BARRIERS}
    report = stamp("python tools/measure_gap.py", list(range(SEEDS))) | {"values": values}
    text = json.dumps(report, indent=1) + "\n"
    write_atomically(OUT, lambda path: path.write_text(text, encoding="utf-8"))
