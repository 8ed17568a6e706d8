"""An inverse problem: the viscosity of Burgers' equation, from noisy measurements.

A second output of the network is the coefficient, a trained number that is the same
at every point.
Run it: `angd run examples/viscosity.py --seconds 30`.
"""

import equinox as eqx
import jax
import jax.numpy as jnp

import angd
from angd.problems.pinn import Box, Condition, Data, Network, Problem, d

NU = 0.05  # what should be found
box = Box((0.0, 1.0), (-1.0, 1.0))  # t, x


def front(z):  # a front that moves at speed ½
    t, x = z
    return (1 - jnp.tanh((x - t / 2) / (4 * NU))) / 2


class WithViscosity(eqx.Module):
    network: Network

    def init(self, key, dimension):
        return {"u": self.network.init(key, dimension), "log_nu": jnp.log(0.5)}

    def __call__(self, params, z):
        return jnp.stack([self.network(params["u"], z), jnp.exp(params["log_nu"])])


def equation(f, z):
    (u, nu), u_t, u_x, u_xx = f(z), d(f, 0)(z)[0], d(f, 1)(z)[0], d(f, 1, 1)(z)[0]
    return u_t + u * u_x - nu * u_xx


keys = jax.random.split(jax.random.key(0), 2)
points = box.place(jax.random.uniform(keys[0], (200, 2)))
values = jax.vmap(front)(points) + 0.01 * jax.random.normal(keys[1], (200,))
measured = Condition(Data(points, values), lambda f, p: f(p.z)[0] - p.values)
problem = Problem(
    WithViscosity(Network((12, 12))), box, equation, {"measured": measured}
)
known = {
    "observables": {"viscosity": lambda params: jnp.exp(params["log_nu"])},
    "fields": ("u", "viscosity"),
    "coordinates": ("t", "x"),
}
task = angd.Task(problem, name="viscosity", **known)
