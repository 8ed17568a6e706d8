"""Two decays in noisy data: Levenberg and Marquardt's method inside optimistix,
with and without momentum.

python examples/guests/optimistix_fit.py
"""

import jax
import jax.numpy as jnp
import optimistix as optx

import angd
from angd.compat.optimistix import AcceleratedGaussNewton

jax.config.update("jax_enable_x64", True)
t = jnp.linspace(0.0, 4.0, 200)
noise = 0.01 * jax.random.normal(jax.random.key(0), t.shape)
data = 1.0 * jnp.exp(-0.5 * t) + 2.0 * jnp.exp(-3.0 * t) + noise
start = {"heights": jnp.array([1.0, 1.0]), "log_rates": jnp.array([0.0, 1.0])}


def residual(y, data):
    return jnp.exp(-t[:, None] * jnp.exp(y["log_rates"])) @ y["heights"] - data


solvers = {
    "optimistix": optx.LevenbergMarquardt(1e-8, 1e-8),
    "angd": AcceleratedGaussNewton(
        1e-8, 1e-8, solver=angd.Scaled(angd.Normal(1e-3))
    ),
    "angd, with momentum": AcceleratedGaussNewton(
        1e-8, 1e-8, flow=angd.ARGFlow.momentum(mu=0.3, rate=0.7)
    ),
}
solutions = {
    name: optx.least_squares(residual, solver, start, data)
    for name, solver in solvers.items()
}
# How the first rate depends on every datum: the solution is differentiable, as with
# any solver of optimistix.
sensitivity = jax.grad(
    lambda d: optx.least_squares(residual, solvers["angd"], start, d).value[
        "log_rates"
    ][0]
)(data)

if __name__ == "__main__":
    for name, solution in solutions.items():
        rates = jnp.exp(solution.value["log_rates"])
        print(
            f"{name:<20} rates {rates[0]:.6f} and {rates[1]:.6f} in "
            f"{int(solution.stats['num_steps'])} steps"
        )
    print(
        f"largest sensitivity of a rate to a datum: "
        f"{jnp.max(jnp.abs(sensitivity)):.3f}"
    )
