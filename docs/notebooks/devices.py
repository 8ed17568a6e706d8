# %% [markdown]
# # Several devices
#
# `mesh=` splits the samples over the devices and copies the parameters; the compiled step does the
# rest. You change nothing in the problem or the method. Without a second device, two can be
# simulated; the variable must be set before JAX is imported.

# %%
import os

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=2")

import equinox as eqx
import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)
import angd

print(len(jax.devices()), "devices")

# %% [markdown]
# ## The same training, alone and shared


# %%
class Regression(eqx.Module):
    def residual(self, params, x):
        return jnp.tanh(params["w"] * x) @ params["a"] - jnp.sin(x)


start = {"w": jnp.array([0.5, -1.0, 1.5]), "a": jnp.array([0.3, 0.7, -0.2])}
samples = angd.Samples(jnp.linspace(-2.0, 2.0, 64))
opt = angd.ANGD(angd.ARGFlow.momentum(0.5, 0.5), angd.Energy(), angd.Normal(1e-4))


def train(mesh):
    return angd.fit(
        Regression(),
        opt,
        params=start,
        samples=samples,
        steps=10,
        mesh=mesh,
        progress=False,
    )


alone, shared = train(None), train(angd.parallel.mesh())
same = all(
    jnp.allclose(alone.params[k], shared.params[k], atol=1e-10) for k in start
)
print("the same parameters:", same)
assert same

# %% alt="How the loss fell on several devices"
shared.plot()

# %% [markdown]
# Take as many samples as a multiple of the number of devices: with other numbers some of the work is
# done by every device. Nothing depends on the number of devices: random numbers belong to points and
# walkers, and weights, means and medians are those of all samples.
#
# ## In a loop of your own
#
# `angd.replicate` and `angd.split` do what `mesh=` does; `split` insists on a multiple:

# %%
params, split = angd.replicate(start), angd.split(samples)
step, state = eqx.filter_jit(opt.step), opt.init(Regression(), params, split)
for _ in range(10):
    params, split, state, info = step(Regression(), params, split, state)
print(f"loss {info.loss:.2e}, samples on {len(split.x.devices())} devices")

# %% [markdown]
# ## Several hosts
#
# Call `jax.distributed.initialize()` first and pass each host its own part of the samples: `split`
# joins the parts and divides the weights by the number of hosts. With `mesh=`, `fit` takes all
# samples on every host: [several devices and hosts](hosts.md).
#
# ## Simulated devices and determinants
#
# For wave functions with determinants also set `PJRT_NPROC=4`, more threads than devices, before
# Python starts. Each simulated device blocks one thread while it waits for batched determinants,
# which need threads of the same pool; with no others the program stands still (seen with JAX 0.10.2).
# [What two devices gain](results-speed.md#ground-states) is measured.
