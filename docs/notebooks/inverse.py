# %% [markdown]
# # An inverse problem
#
# You know the form of an equation and have noisy measurements of its solution; you want a
# coefficient. Here heat spreads along a rod, $u_t=\kappa u_{xx}$ with $u=0$ at the ends, and κ is
# to be found from 150 measurements with noise of one per cent. It takes half a minute.

# %%
import equinox as eqx
import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)
import angd
from angd.problems.pinn import Box, Condition, Data, Faces, Network, Problem, d

# %% [markdown]
# ## Measurements
#
# We make them from the exact solution with κ = 0.07, so that we can see how well it is found. The
# solver never sees κ.

# %%
KAPPA = 0.07


def exact(z):
    t, x = z
    return jnp.exp(-KAPPA * jnp.pi**2 * t) * jnp.sin(jnp.pi * x)


points = jax.random.uniform(jax.random.key(1), (150, 2))
noise = 0.01 * jax.random.normal(jax.random.key(2), (150,))
values = jax.vmap(exact)(points) + noise

# %% [markdown]
# ## A model with a coefficient
#
# A model is any object with `init(key, dimension)` and a call. This one is a network with one more
# parameter, the logarithm of κ, which keeps κ positive. Its value at a point is the pair (u, κ): the
# equation can then read κ as it reads u.


# %%
class WithCoefficient(eqx.Module):
    network: Network
    first: float = 0.3  # the first guess of κ

    def init(self, key, dimension):
        network = self.network.init(key, dimension)
        return {"network": network, "log_kappa": jnp.log(self.first)}

    def __call__(self, params, z):
        u = self.network(params["network"], z)
        return jnp.stack([u, jnp.exp(params["log_kappa"])])


def temperature(u):  # the first of the two values, as a field
    return lambda z: u(z)[0]


def equation(u, z):
    kappa = u(z)[1]
    return d(temperature(u), 0)(z) - kappa * d(temperature(u), 1, 1)(z)


# %% [markdown]
# ## Conditions
#
# Measurements are one more condition, on `Data`: there the second argument has the point and its
# value. Their weight says how much you trust them. With weight 1 and noise of 0.01 the loss of a
# perfect fit is about $\tfrac12\cdot10^{-4}$, so do not expect less.

# %%
box = Box((0.0, 1.0), (0.0, 1.0))  # t, x
ends = Faces((box.face(1, "lower"), box.face(1, "upper")))
conditions = {
    "ends": Condition(ends, lambda u, z: temperature(u)(z), weight=10.0),
    "measured": Condition(Data(points, values), lambda u, p: u(p.z)[0] - p.values),
}
problem = Problem(WithCoefficient(Network((10, 10))), box, equation, conditions)

# %% [markdown]
# ## Training
#
# Nothing else changes. An observable records κ along the way.

# %%
task = angd.Task(
    problem,
    name="rod",
    fields=("u", "kappa"),
    coordinates=("t", "x"),
    observables={"kappa": lambda params: jnp.exp(params["log_kappa"])},
)
recipe = angd.recipes.GaussNewton(interior=300, condition=150, fresh=20, keep=5)
fit = angd.fit(task, recipe, steps=60, progress=False)
kappa = float(jnp.exp(fit.params["log_kappa"]))
print(f"κ = {kappa:.4f}, and {KAPPA} is right")
assert abs(kappa - KAPPA) < 0.05 * KAPPA

# %% alt="How the loss fell, and the temperature and coefficient that were found"
fit.plot()

# %% [markdown]
# ## How sure is it?
#
# Repeat it with other noise, or leave out half of the measurements: the spread of κ is its error
# bar. Here are three halves of the data, drawn at random.


# %%
def from_part(key):
    chosen = jax.random.permutation(jax.random.key(key), 150)[:75]
    data = Data(points[chosen], values[chosen])
    measured = Condition(data, conditions["measured"].equation)
    part = Problem(
        problem.network, box, equation, conditions | {"measured": measured}
    )
    fit = angd.fit(part, recipe, steps=40, progress=False)
    return float(jnp.exp(fit.params["log_kappa"]))


print([f"{from_part(key):.4f}" for key in range(3)])

# %% [markdown]
# A coefficient that varies in space is a second network in `init` and one more output. Several
# coefficients are several outputs.
