"""Weight decay, beside the step and not in it: θ ← (1 − amount) (θ + h d).

python examples/models/decay.py
"""

import equinox as eqx
import jax
import jax.numpy as jnp

import angd

jax.config.update("jax_enable_x64", True)


class Fit(eqx.Module):
    def residual(self, params, x):
        return jnp.tanh(x @ params["W"]) @ params["a"] - jnp.sin(x[0]) * x[1]


params = {
    "W": jax.random.normal(jax.random.key(0), (2, 6)),
    "a": jnp.linspace(-1.0, 1.0, 6),
}
samples = angd.Samples(jax.random.normal(jax.random.key(1), (30, 2)))
opt = angd.ANGD(angd.ARGFlow.gradient(0.5), angd.Energy(), angd.Normal(1e-3))


def after(method):
    return angd.fit(
        Fit(), method, params=params, samples=samples, steps=1, progress=False
    ).params


plain, decayed = after(opt), after(angd.baselines.Decayed(opt, 0.01))
assert all(
    jnp.allclose(decayed[name], 0.99 * plain[name], rtol=0, atol=1e-10)
    for name in params
)
print("shrunk by one per cent")
