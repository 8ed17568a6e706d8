# %% [markdown]
# # An inverse problem
#
# You know the form of an equation and have noisy measurements of its solution; you want a
# coefficient, and how sure it is. Here heat spreads along a rod, $u_t=\kappa u_{xx}$ with $u=0$ at
# the ends, and κ is to be found from 150 measurements with noise of one per cent. It takes half a
# minute.

# %%
import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)
import angd
from angd.problems.pinn import (
    Box,
    Coefficient,
    Condition,
    Faces,
    Network,
    Problem,
    d,
    estimates,
    observed,
)

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


def measured(key):  # with noise of one per cent
    noise = 0.01 * jax.random.normal(jax.random.key(key), (150,))
    return observed(points, jax.vmap(exact)(points) + noise, noise=0.01)


# %% [markdown]
# ## The equation
#
# What is unknown is declared beside the field. The equation then has a third argument, from which
# it reads the coefficient by name. `lower=0` keeps it positive.


# %%
def equation(u, z, c):
    return d(u, 0)(z) - c["kappa"] * d(u, 1, 1)(z)


box = Box((0.0, 1.0), (0.0, 1.0))  # t, x
ends = Faces((box.face(1, "lower"), box.face(1, "upper")))
cold = Condition(ends, lambda u, z: u(z), weight=10.0)


def rod(key):
    unknowns = {"kappa": Coefficient(0.3, lower=0)}
    conditions = {"ends": cold, "measured": measured(key)}
    return Problem(Network((10, 10)), box, equation, conditions, unknowns=unknowns)


# %% [markdown]
# ## Training
#
# Nothing else changes. All measurements are used in every step. The coefficient is recorded along
# the way, and the fit ends with its error bar.

# %%
recipe = angd.recipes.GaussNewton(interior=300, condition=60, fresh=20, keep=5)
task = angd.Task(rod(2), name="rod", coordinates=("t", "x"))
fit = angd.fit(task, recipe, steps=60, progress=False)
kappa = fit.estimates["kappa"]
print(f"κ = {kappa}, and {KAPPA} is right")
assert abs(kappa.value - KAPPA) < 3 * kappa.error

# %% alt="How the loss fell, and the temperature that was found"
fit.plot()

# %% [markdown]
# ## Is the bar right?
#
# It is one standard deviation over repetitions of the measurements. So repeat them: here are five
# other draws of the noise.

# %%
others = [
    angd.fit(rod(key), recipe, steps=60, progress=False) for key in range(3, 8)
]
found = jnp.array([other.estimates["kappa"].value for other in others])
print("found:", *(f"{value:.4f}" for value in found))
print(f"their spread is {found.std(ddof=1):.4f}, the bar was {kappa.error:.4f}")

# %% [markdown]
# The bar comes from the residuals that Gauss–Newton linearises anyway: a change of the measurements
# moves all parameters, and κ with them. It knows the noise and the weights. It does not know what
# the network cannot represent, and it counts on training to the end.
#
# ## A function instead of a number
#
# An unknown function is declared as a network. Here a source $s(x)$ heats the rod, which has
# reached its steady state, $-u''=s$. The equation reads it as `c["source"](z)`.

# %%
line = Box((0.0, 1.0))
place = jnp.linspace(0.02, 0.98, 80)[:, None]
level = jnp.sin(jnp.pi * place[:, 0]) / jnp.pi**2  # the source is sin πx
level = level + 1e-4 * jax.random.normal(jax.random.key(3), level.shape)
steady = Problem(
    Network((10,)),
    line,
    lambda u, z, c: d(u, 0, 0)(z) + c["source"](z),
    {"measured": observed(place, level, noise=1e-4)},
    constraint=lambda z, value: z[0] * (1 - z[0]) * value,
    unknowns={"source": Network((6,))},
)
recipe = angd.recipes.GaussNewton(interior=200, condition=60, fresh=20, keep=5)
heated = angd.fit(steady, recipe, steps=60, progress=False)
at = {"source": jnp.array([[0.25], [0.5], [0.75]])}
print(estimates(steady, heated.params, at)["source"])
print("right:", *(f"{s:.4f}" for s in jnp.sin(jnp.pi * at["source"][:, 0])))

# %% [markdown]
# A source is a second derivative of what is measured, so its bars are wider than the noise by far.
