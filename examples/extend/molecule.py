"""A molecule of your own: the ion HeH⁺ at its equilibrium distance, with two electrons.

    angd run examples/extend/molecule.py --cpu-seconds 120

The default recipe is accelerated Fisher–Rao after pretraining to Hartree–Fock. A reference
energy in Hartree, `exact=`, is optional.
"""

import angd
from angd.problems.vmc import Molecule

atoms = [("He", (0.0, 0.0, 0.0)), ("H", (0.0, 0.0, 1.463))]
ion = Molecule.of(atoms, units="bohr", charge=1)
task = angd.Task.of(ion, name="heh-ion", about="ground state of HeH⁺", cpu_seconds=120.0)
