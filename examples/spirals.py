"""A classifier that tells two spirals apart, by generalised Gauss–Newton steps.

The cost is logistic; the metric is its Hessian, pulled back to the parameters.
Run it: `python examples/spirals.py spirals.png`.
"""

import sys

import equinox as eqx
import jax
import jax.numpy as jnp
from matplotlib.figure import Figure

import angd

angle = jnp.linspace(0.5, 3 * jnp.pi, 60)
arm = jnp.stack([angle * jnp.cos(angle), angle * jnp.sin(angle)], 1) / 8
points, labels = (
    jnp.concatenate([arm, -arm]),
    jnp.repeat(jnp.array([1.0, -1.0]), 60),
)


class Spirals(eqx.Module):
    def field(self, params, x):  # x has the point, and its label last
        hidden = jnp.tanh(params["w"] @ x[:2] + params["b"])
        return jnp.tanh(params["v"] @ hidden + params["c"]) @ params["a"]

    def cost(self, z, x):
        return jnp.sum(jax.nn.softplus(-x[2] * z))


def start(key, n=16):
    keys = jax.random.split(key, 3)
    first, second, last = (
        jax.random.normal(keys[0], (n, 2)),
        jax.random.normal(keys[1], (n, n)),
        jnp.ones(n),
    )
    return {
        "w": 2 * first,
        "b": jnp.zeros(n),
        "v": second / n**0.5,
        "c": jnp.zeros(n),
        "a": last / n,
    }


def train(steps=150):
    samples = angd.Samples(jnp.column_stack([points, labels]))
    opt = angd.ANGD(
        angd.ARGFlow.gradient(1.0),
        angd.GGN(),
        angd.Normal(1e-2),
        angd.LevenbergMarquardt(),
    )
    params = start(jax.random.key(0))
    return angd.fit(
        Spirals(), opt, params=params, samples=samples, steps=steps, progress=False
    )


def draw(fit):
    line = jnp.linspace(-1.3, 1.3, 120)
    grid = jnp.stack(jnp.meshgrid(line, line), -1).reshape(-1, 2)
    figure = Figure(figsize=(4.4, 4), layout="constrained")
    panel = figure.subplots()
    panel.contourf(
        line, line, jnp.tanh(fit(grid)).reshape(120, 120), 20, cmap="RdBu_r"
    )
    panel.scatter(*points.T, c=labels, cmap="RdBu_r", edgecolors="black", s=14)
    return figure


if __name__ == "__main__":
    draw(train()).savefig(
        sys.argv[1] if len(sys.argv) > 1 else "spirals.png", dpi=120
    )
