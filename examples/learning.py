"""Regression and classification: generalised Gauss–Newton and L² against Adam and
L-BFGS, for equal CPU-seconds.

    python examples/learning.py [CPU-seconds of each method]

The diabetes and the digits of scikit-learn (`pip install scikit-learn`), small
networks, a third or more held out. `python tools/measure_inference.py regression
digits` measures the same from three starts.
"""

import sys
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp

import angd
from angd.problems.pinn import Network


class Learning(eqx.Module):
    """A network that is fitted by squares or, to classes, by cross-entropy: the
    methods of every metric."""

    network: Network
    inputs: int = eqx.field(static=True)
    classes: bool = eqx.field(static=True)

    def init(self, key):
        return self.network.init(key, self.inputs)

    def field(self, params, x):
        return self.network(params, x[0])

    def cost(self, z, x):
        return (
            logsumexp(z) - z @ x[1]
            if self.classes
            else 0.5 * jnp.sum((z - x[1]) ** 2)
        )

    def residual(self, params, x):
        """Of squares, for the energy metric."""
        return self.field(params, x) - x[1]

    def loss(self, params, samples):
        return samples.mean(
            jax.vmap(lambda x: self.cost(self.field(params, x), x))(samples.x)
        )


def split(x, y, train):
    """Standardised, shuffled by a fixed permutation, cut in two."""
    order = np.random.default_rng(0).permutation(len(x))
    x = (x - x[order[:train]].mean(0)) / (x[order[:train]].std(0) + 1e-8)
    return [
        angd.Samples((jnp.asarray(x[rows]), jnp.asarray(y[rows])))
        for rows in (order[:train], order[train:])
    ]


def diabetes():
    """Ten measurements, the course of the disease a year later."""
    from sklearn.datasets import load_diabetes

    data: Any = load_diabetes()
    y = (data.target - data.target.mean()) / data.target.std()
    return Learning(Network((12,), outputs=1), 10, False), *split(
        data.data, y[:, None], 300
    )


def digits():
    """Images of eight by eight pixels, ten classes."""
    from sklearn.datasets import load_digits

    data: Any = load_digits()
    return Learning(Network((12,), outputs=10), 64, True), *split(
        data.data, np.eye(10)[data.target], 600
    )


def methods(classes: bool) -> dict[str, Any]:
    """Natural gradients with Levenberg–Marquardt or a line search, and what one
    would use instead."""
    gradient, marquardt = angd.ARGFlow.gradient(1.0), angd.LevenbergMarquardt()
    found = {
        "ggn": angd.ANGD(gradient, angd.GGN(), angd.Normal(0.1), marquardt),
        "l2": angd.ANGD(
            angd.ARGFlow.momentum(0.8, 0.3),
            angd.L2(),
            angd.Normal(1e-2),
            angd.LineSearch(),
        ),
        "adam": angd.baselines.adam(1e-2),
        "lbfgs": angd.baselines.lbfgs(),
    }
    return (
        found
        if classes
        else found
        | {
            "energy": angd.ANGD(
                gradient, angd.Energy(), angd.Normal(0.1), marquardt
            )
        }
    )


def race(make, seconds: float, key: int = 0) -> dict[str, dict[str, float]]:
    """Each method from the same start: steps, the last training loss, the least and
    the last held-out loss."""
    (problem, train, test), found = make(), {}
    for name, method in methods(problem.classes).items():
        task = angd.Task(problem, held_out=test, samples=train)
        fit = angd.fit(task, method, cpu_seconds=seconds, key=key, progress=False)
        tests = [
            record.test_loss
            for record in fit.records
            if record.test_loss is not None
        ]
        losses = fit.history["loss"]
        found[name] = {
            "steps": len(losses),
            "train": float(losses[-1]),
            "best": min(tests),
            "last": tests[-1],
        }
    return found


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    for make in (diabetes, digits):
        print(make.__name__)
        for name, row in race(
            make, float(sys.argv[1]) if sys.argv[1:] else 10.0
        ).items():
            print(
                f"  {name:8}",
                *(f"{key} {value:.4g}" for key, value in row.items()),
                sep="  ",
            )
