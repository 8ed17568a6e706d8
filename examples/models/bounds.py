"""Bounds by reparametrisation: a rate that is positive and a share between 0 and 1,
trained without bounds.

    python examples/models/bounds.py

A natural gradient does not feel the map: without damping the bounded parameters
move alike with it and without.
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


def method(control):
    return angd.ANGD(
        angd.ARGFlow.gradient(1.0), angd.Energy(), angd.Normal(1e-18), control
    )


fit = angd.fit(
    Fit(bounded),
    method(angd.LineSearch()),
    params=free,
    samples=samples,
    steps=40,
    progress=False,
)
found = bounded(fit.params)
assert all(
    jnp.allclose(found[name], TRUTH[name], rtol=0, atol=1e-8) for name in TRUTH
)


def direction(problem, params):
    """Of the first step."""
    opt = method(angd.Constant())
    state = opt.init(problem, params, samples)
    return eqx.filter_jit(opt.step)(problem, params, samples, state)[2].previous.d


# The natural gradient does not notice the map: the same motion of the bounded
# parameters with it and without.
start, through = jax.jvp(bounded, (free,), (direction(Fit(bounded), free),))
straight = direction(Fit(lambda params: params), start)
assert all(
    jnp.allclose(through[name], straight[name], rtol=0, atol=1e-10)
    for name in start
)
print({name: float(value) for name, value in found.items()})
