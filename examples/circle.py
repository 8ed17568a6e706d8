"""A density on the circle that flattens: its entropy in the Wasserstein-2 metric.

Along the gradient flow it obeys the heat equation; accelerated flows swing.
Run it: `python examples/circle.py circle.png`.
"""

import sys

import jax
import jax.numpy as jnp
from matplotlib.figure import Figure

import angd

circle = angd.WassersteinManifold(31)
(x,) = circle.grid()
entropy = angd.RelativeEntropy(circle, target=jnp.ones(31))
FLOWS = {
    "gradient flow": angd.GradientFlow(),
    "accelerated": angd.ARGFlow(alpha=1.0),
    "with Hessian damping": angd.ARGFlow(alpha=1.0, beta=0.5),
}


def solve(end=6.0):
    start = 1 + 0.5 * jnp.cos(x)
    return {
        name: angd.solve_flow(circle, entropy, flow, start, 0.0, end, save=80)
        for name, flow in FLOWS.items()
    }


def draw(solutions):
    figure = Figure(figsize=(6, 3.2), layout="constrained")
    panel = figure.subplots()
    for name, solution in solutions.items():
        panel.semilogy(solution.ts, jnp.maximum(solution.L, 1e-12), label=name)
    panel.set(xlabel="t", ylabel="relative entropy", ylim=(1e-8, None))
    panel.legend(frameon=False)
    return figure


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    draw(solve()).savefig(
        sys.argv[1] if len(sys.argv) > 1 else "circle.png", dpi=120
    )
