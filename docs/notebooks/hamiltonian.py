# %% [markdown]
# # Your own Hamiltonian
#
# You have particles in a potential; you want their ground state. A wave function is any
# `log_psi(params, x)` that returns a sign and log|ψ| for *one* x, an array (particles, dimensions).
# A potential is any function of x. This tutorial takes a minute.

# %%
import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)
import angd
from angd.problems.vmc import GaussianStart, GroundState, Metropolis


def log_psi(params, x):  # one particle on a line
    return jnp.ones(()), -params[0] * jnp.sum(x**2) / 2 - jnp.exp(
        params[1]
    ) * jnp.sum(x**4)


def potential(x):
    return jnp.sum(x**2) / 2 + jnp.sum(x**4) / 10


# %% [markdown]
# ## Problem, chain, task
#
# 1. **The problem** joins ψ and V. Local energies come from one forward pass that carries value,
#    gradient and Laplacian; you write no derivative.
# 2. **The chain** places 400 walkers, lets them settle for 100 moves, and moves them ten times
#    between steps. Its width follows the acceptance. `Langevin(…)` moves along ∇ log ρ instead.
# 3. **The task** adds where training starts, and the chain. With `energy=` it knows a reference, and
#    runs record the distance from it.

# %%
problem = GroundState(log_psi, potential)
chain = Metropolis(
    GaussianStart(particles=1, dimension=1), walkers=400, burn_in=100, moves=10
)
start = jnp.array([0.7, -4.0])
task = angd.Task(problem, name="anharmonic", params=start, samples=chain)

# %% [markdown]
# ## Training and evaluation
#
# The recipe is accelerated natural gradient descent in the Fisher–Rao metric, which `angd.fit` would
# choose by itself. `norm` bounds the length of a step, so that one bad batch of walkers cannot undo
# many good ones. `angd.recipes.Spring()` and `angd.recipes.WQMC()` are published methods, and any
# `angd.ANGD` will do.

# %%
recipe = angd.recipes.Vmc(mu=0.8, rate=0.1, measurements=40)
fit = angd.fit(task, recipe, steps=40, progress=False)
found = fit.evaluation
print(f"E = {found['energy']:.4f} ± {found['standard_error']:.4f}")
print(f"R̂ = {found['rhat']:.3f}")
assert abs(found["energy"] - 0.559146) < 0.003

# %% [markdown]
# The exact energy of x²/2 + x⁴/10 is 0.559146.
#
# The evaluation uses **fresh** walkers. Energies seen in training are those of walkers which lag
# behind their density, and are often too low. `standard_error` knows about autocorrelation; R̂ far
# from 1 says that the chain has not settled; `bad` counts local energies that were not finite.

# %% alt="How the energy fell"
fit.plot()

# %% [markdown]
# At the exact ground state the local energy is the same everywhere: a *variance* near zero says more
# than a low energy. `fit(x)` is log|ψ| at configurations along a first axis:

# %%
print(fit(jnp.array([[[0.0]], [[1.0]]])))

# %% [markdown]
# ## The same file, run by the program
#
# ```
# angd run anharmonic.py angd-fr --rate 0.1 --steps 200
# angd compare anharmonic.py angd-fr,spring,adam-vmc --seeds 0,1 --budget "200 steps"
# ```
#
# ## When it does not work
#
# | symptom | try |
# |---|---|
# | energies far below the exact one in training | walkers lag: more `moves`, a smaller `norm`; believe the evaluation only |
# | the energy jumps up and does not come back | a smaller `norm` or `rate`; `restart` drops momentum that points uphill |
# | it stays above Hartree–Fock | longer pretraining, `pretrain`; check charge and spin |
# | acceptance near 0 or 1 for long | the width adapts by 5 % a move: a longer `burn_in` |
# | "masked" in the progress line | some local energies are not finite: a node of ψ in single precision. A few do no harm |
#
# Next: [a molecule from a file](tutorial-molecule.md).
