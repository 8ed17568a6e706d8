"""Variational Monte Carlo: ground states of atoms, molecules, traps, and of Hamiltonians of your own.

Molecule, MOLECULES          what is solved
FermiNet, or your own        log_psi(params, x) → (sign, log|ψ|)
DotNet, quantum_dot          electrons in a harmonic trap
GroundState(log_psi, V)      the problem that metrics understand
Graded, Metropolis, Langevin walkers
ElectronRefit                their velocities, for Wasserstein-2
evaluate                     what it is worth, on fresh walkers
Dipole, Density, PairDistribution, Forces   what else it says; `evaluate(…, observables={"dipole": Dipole(molecule)})`
extrapolate                  from several states to the ground state, by their variances
"""

from angd._requirements import needs

for package in ("folx", "blackjax"):
    needs(package, "vmc", "angd.problems.vmc")

from angd.problems.energies import Estimate, RefusedWave, evaluate
from angd.problems.extrapolation import Extrapolation, extrapolate
from angd.problems.vmc.dots import DotNet, quantum_dot
from angd.problems.vmc.ferminet import FermiNet
from angd.problems.vmc.graded import Graded
from angd.problems.vmc.hamiltonian import Coulomb, Trap
from angd.problems.vmc.hartree_fock import HartreeFock
from angd.problems.vmc.molecules import MOLECULES, Molecule
from angd.problems.vmc.observables import Density, Dipole, Forces, PairDistribution
from angd.problems.vmc.pretraining import OfHartreeFock, Pretraining
from angd.problems.vmc.problem import Clipping, GroundState, energy
from angd.problems.vmc.refit import ElectronRefit
from angd.problems.vmc.sampling import AroundNuclei, GaussianStart, Langevin, Metropolis, Walkers

__all__ = [
    "MOLECULES",
    "AroundNuclei",
    "Clipping",
    "Coulomb",
    "Density",
    "Dipole",
    "DotNet",
    "ElectronRefit",
    "Estimate",
    "Extrapolation",
    "FermiNet",
    "Forces",
    "GaussianStart",
    "Graded",
    "GroundState",
    "HartreeFock",
    "Langevin",
    "Metropolis",
    "Molecule",
    "OfHartreeFock",
    "PairDistribution",
    "Pretraining",
    "RefusedWave",
    "Trap",
    "Walkers",
    "energy",
    "evaluate",
    "extrapolate",
    "quantum_dot",
]
