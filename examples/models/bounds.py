"""Bounds by reparametrisation: a rate that is positive and a share between 0 and 1,
trained without bounds.

    python examples/models/bounds.py

A natural gradient does not feel the map: for small steps the function moves alike
in either parameters.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp

import angd

jax.config.update("jax_enable_x64", True)


def bounded(free):
    return {
        "rate": jax.nn.softplus(free["rate"]),
        "share": jax.nn.sigmoid(free["share"]),
    }


def curve(params, t):
    return params["share"] * jnp.exp(-params["rate"] * t) + (1 - params["share"])


TRUTH = {"rate": jnp.array(1.7), "share": jnp.array(0.9)}


class Fit(eqx.Module):
    """Decay to a floor, in free parameters or in the bounded ones themselves."""

    to_params: Callable = eqx.field(static=True)

    def residual(self, params, t):
        return curve(self.to_params(params), t) - curve(TRUTH, t)


free = {"rate": jnp.array(-1.0), "share": jnp.array(-1.0)}
samples = angd.Samples(jnp.linspace(0.0, 3.0, 30))


def fitted(to_params, start, rate, steps, control):
    opt = angd.ANGD(
        angd.ARGFlow.gradient(rate), angd.Energy(), angd.Normal(1e-13), control
    )
    return angd.fit(
        Fit(to_params),
        opt,
        params=start,
        samples=samples,
        steps=steps,
        progress=False,
    ).params


found = bounded(fitted(bounded, free, 1.0, 40, angd.LineSearch()))
assert all(
    jnp.allclose(found[name], TRUTH[name], rtol=0, atol=1e-8) for name in TRUTH
)

# One tiny step, with the map and without: the same motion of the bounded
# parameters.
h, start = 1e-6, bounded(free)
through = bounded(fitted(bounded, free, h, 1, angd.Constant()))
straight = fitted(lambda p: p, start, h, 1, angd.Constant())
assert all(
    jnp.allclose(
        (through[n] - start[n]) / h, (straight[n] - start[n]) / h, rtol=1e-4
    )
    for n in start
)
print({name: float(value) for name, value in found.items()})
