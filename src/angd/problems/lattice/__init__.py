"""Spins and fermions on lattices: ground states whose samples are integers and whose amplitudes may be complex.

ring, square, Lattice                     sites, bonds and translations
TransverseIsing, Heisenberg, Hubbard      H, as sparse connections; `Operator` is your own
RBM, Convolution, or your own             log ψ, real or complex
LatticeState(log ψ, H)                    the problem that metrics understand
Basis, Enumerated, lowest                 small systems: all states, exact sums, exact energies
Flip, Exchange, chain_of                  Markov chains for the others
ground_state                              all of it as a task
evaluate, extrapolate                     what a state is worth, on fresh walkers; several, at variance 0
"""

from angd.problems.energies import Estimate, evaluate
from angd.problems.extrapolation import Extrapolation, extrapolate
from angd.problems.lattice.basis import Basis, Enumerated, States, lowest
from angd.problems.lattice.hamiltonians import AbstractHamiltonian, Heisenberg, Hubbard, Operator, TransverseIsing
from angd.problems.lattice.lattices import Lattice, both_spins, ring, square
from angd.problems.lattice.networks import RBM, Convolution
from angd.problems.lattice.problem import LatticeState
from angd.problems.lattice.sampling import Exchange, Flip, LatticeWalkers, chain_of
from angd.problems.lattice.tasks import ground_state

__all__ = [
    "RBM",
    "AbstractHamiltonian",
    "Basis",
    "Convolution",
    "Enumerated",
    "Estimate",
    "Exchange",
    "Extrapolation",
    "Flip",
    "Heisenberg",
    "Hubbard",
    "Lattice",
    "LatticeState",
    "LatticeWalkers",
    "Operator",
    "States",
    "TransverseIsing",
    "both_spins",
    "chain_of",
    "evaluate",
    "extrapolate",
    "ground_state",
    "lowest",
    "ring",
    "square",
]
