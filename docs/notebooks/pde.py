# %% [markdown]
# # Your own equation
#
# You have an equation, a box and conditions; you want a function. This tutorial solves for a front
# that burns its way through a medium, $u_t=u_{xx}+u(1-u)$, and compares it with the exact solution.
# It takes half a minute.

# %%
import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)
import angd
from angd.problems.pinn import Box, Condition, Faces, Network, Problem, d

# %% [markdown]
# ## The problem
#
# The box gives the coordinates their order: here 0 is t and 1 is x. The equation is a residual at
# **one point** `z`. The field `u` is a function, and `d(u, 0)` its derivative along the first
# coordinate, again a function: `d(u, 1, 1)` is $u_{xx}$. You batch nothing by hand.

# %%
box = Box((0.0, 1.0), (-5.0, 5.0))  # t, x


def equation(u, z):  # u_t = u_xx + u (1 − u)
    return d(u, 0)(z) - d(u, 1, 1)(z) - u(z) * (1 - u(z))


# %% [markdown]
# One front has a closed form; it travels at speed 5/√6. It gives the conditions here, and later the
# error. Conditions are residuals on faces of the box, and their `weight` says how much they count
# against the equation: 10 is a good first try.


# %%
def wave(z):
    t, x = z
    return (1 + jnp.exp((x - 5 * t / 6**0.5) / 6**0.5)) ** -2


def as_wave(u, z):
    return u(z) - wave(z)


ends = Faces((box.face(1, "lower"), box.face(1, "upper")))
conditions = {
    "start": Condition(box.face(0, "lower"), as_wave, weight=10.0),
    "walls": Condition(ends, as_wave, weight=10.0),
}

# %% [markdown]
# The network takes z and gives u. Small is good: with fewer parameters than points, the linear
# systems are cheap and the points cannot be memorised.

# %%
problem = Problem(Network((10, 10)), box, equation, conditions)
task = angd.Task(problem, name="front", exact=wave, coordinates=("t", "x"))

# %% [markdown]
# ## Training
#
# The recipe takes Gauss–Newton steps on uniform points first and on adaptive ones later
# ([why](pinn.md#the-recipe)). The counts of points are the options to change. Without a recipe,
# `angd.fit(task, seconds=60)` takes 3,000 points.

# %%
recipe = angd.recipes.GaussNewton(interior=300, condition=50, fresh=20, keep=5)
fit = angd.fit(task, recipe, steps=40, progress=False)
print(fit)
print(fit.errors)
assert fit.errors["u"] < 1e-4

# %% [markdown]
# ## What comes back
#
# `fit(points)` is the trained field.

# %%
print(fit(jnp.array([[0.5, 0.0], [1.0, 0.0]])))

# %% [markdown]
# `fit.plot()` draws how loss and error fell, and the solution.

# %% alt="How the loss and the error of the front fell, and the front that was found"
fit.plot()

# %% [markdown]
# - `fit.params` holds the parameters, `fit.history["loss"]` and the other numbers of `Info` one
#   value for each step, `fit.records` the evaluations.
# - The loss is that of the points of a step, which are chosen where the residual is large. It may
#   jump when points are new.
# - A rejected step is no failure, only a run of them is: `fit.result` says how it ended.
# - `fit.save("runs/front")` writes a folder, from which `angd.load` reads it back. With
#   `folder="runs/front"` the run has checkpoints, and the same call continues it.
#
# ## What is known beside it
#
# A bare problem is enough: `angd.fit(problem, seconds=60)`. It is then judged by the loss at points
# that no optimiser sees. A `Task` adds what you know:
#
# | argument of `angd.Task` | what |
# |---|---|
# | `exact=wave` | the solution at one point; errors are measured on a grid, and drawn |
# | `reference=(points, {"u": values})` | values instead, e.g. of another solver |
# | `observables={"mass": function}` | numbers of the parameters that are worth recording |
# | `fields=("rho", "u", "p")`, `coordinates=("t", "x")` | names, for figures |
# | `held_out=samples` | points for the test loss, where the problem has no domain |
#
# Without an exact solution, compare two networks, two seeds or two numbers of points. If they agree
# to four digits, so many may be right. `angd compare` does it with `--seeds 0,1`.
#
# ## The same file, run by the program
#
# Save everything up to `task` as `front.py`. The program looks for a `task` or a `problem` in it:
#
# ```
# angd run front.py                      # the recipe that suits it
# angd run front.py energy --interior 300 --condition 50 --steps 100
# angd run front.py adam --seconds 60
# angd compare front.py energy,lbfgs,adam --seeds 0,1 --budget "60 seconds"
# angd sweep front.py adam --rate 1e-3,3e-3,1e-2
# angd run --resume runs/front-energy-0 --seconds 300
# ```
#
# [The program](program.md) has the rest.
#
# ## When it does not work
#
# | symptom | try |
# |---|---|
# | the loss stays near 0.1 for long | more uniform points at first, `warm_steps=300`; a network that knows a symmetry, `Mirrored` or `embed` |
# | the loss is tiny and the answer wrong | points were memorised: more `interior` points, or fewer parameters; never `Fixed` points with a large network |
# | a sharp layer is missed | more points; adaptive ones find it once the solution is roughly there |
# | a condition is not met | raise its `weight`; `balance=1` weighs terms by how strongly the parameters move them; or build it into the field: `Problem(constraint=lambda z, value: …)` |
# | several unknowns of different size | scale them to order one; `Network((20, 20), outputs=3)` gives a vector, the equation returns one |
#
# Next: [an inverse problem](tutorial-inverse.md), or [more about differential
# equations](pinn.md): samplers, mirrors, shocks, a gas.
