# %% [markdown]
# # A molecule from a file
#
# A molecule is a file with its nuclei, in Ångström. This tutorial takes hydrogen, H₂, because it is
# quick; water differs by the file alone. It
# needs the extra `vmc`, and about two minutes, most of them for compilation.
#
# From the command line it is one word:
#
# ```
# angd run water.xyz                         # pretraining to Hartree–Fock, then ANGD
# angd run water.xyz spring --walkers 1000   # another recipe
# angd run ion.xyz --charge 1 --spin 1       # spin is n↑ − n↓
# ```

# %%
import jax

jax.config.update("jax_enable_x64", True)
import angd
from angd.problems.vmc import Molecule

hydrogen = Molecule.from_xyz("""2
hydrogen
H 0 0 -0.37
H 0 0  0.37""")
print(hydrogen.electrons, "electrons")

# %% [markdown]
# Units may be said, and charge and spin where they are not 0:

# %%
ion = Molecule.of([("Li", (0.0, 0.0, 0.0))], units="bohr", charge=1)
print(ion.electrons, "electrons")

# %% [markdown]
# ## Training
#
# `angd.fit(molecule)` trains a small FermiNet. Pretraining fits its orbitals to a mean field first:
# from random orbitals the energy starts many Hartree too high. The numbers below are small, to be
# quick; leave them out for the defaults, 512 walkers and 400 steps of pretraining. Steps of
# pretraining count as steps: here 80 of 180 are left for the energy.

# %%
recipe = angd.recipes.Vmc(
    mu=0.8, restart=True, walkers=256, burn_in=50, pretrain=100, measurements=40
)
fit = angd.fit(hydrogen, recipe, steps=180, progress=False)
found = fit.evaluation
print(f"E = {found['energy']:.4f} ± {found['standard_error']:.4f} Ha")
assert abs(found["energy"] + 1.1744) < 0.02

# %% [markdown]
# The exact energy at this distance is about −1.174 Ha. The recipe ends with an evaluation on fresh
# walkers; energies of training are noisy and may lie below the truth.

# %% alt="Training energies of hydrogen"
fit.plot()

# %% [markdown]
# ## Longer, larger, elsewhere
#
# - `FermiNet(molecule)` is the wave function and `Coulomb(molecule)` the potential;
#   `HartreeFock.of(molecule)` is the mean field to which `Pretraining` fits the orbitals.
# - `FermiNet.published(molecule)` has the sizes of the SPRING paper.
# - Some tasks have names, molecules with reference energies among them (`angd list`):
#   `angd run vmc-be`.
#
# ```
# angd run vmc-be spring --walkers 1000 --norm 0.01
# angd compare vmc-he angd-fr,spring,adam-vmc --seeds 0,1 --budget "200 cpu-seconds"
# ```
#
# What is reached on Be, Li₂, H₁₀ and N₂ is [measured](results-molecules.md), and so is [whether
# acceleration pays](results-beryllium.md).
