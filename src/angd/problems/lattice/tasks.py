"""Ground states on lattices as tasks: small systems by exact sums and judged exactly, larger ones by a Markov chain."""

from typing import Any

import numpy as np

from angd.problems.lattice.basis import Basis, Enumerated, configurations_count, lowest
from angd.problems.lattice.hamiltonians import AbstractHamiltonian
from angd.problems.lattice.problem import LatticeState
from angd.problems.lattice.sampling import chain_of
from angd.problems.task import Task

STATES = 5000  # up to so many, counted by orbits, sums are exact
JUDGED = 2**17  # up to so many configurations the reference energy is computed
# What suits spins: no decay, and a norm constraint, without which the first steps with momentum may go too far.
OPTIONS: dict[str, Any] = {"metric": "fubini-study", "rate": 0.1, "decay": 0.0, "eta": 0.0, "damping": 1e-3}
OPTIONS |= {"norm": 0.05, "solver": "normal"}


def ground_state(
    hamiltonian: AbstractHamiltonian,
    amplitude: Any,
    *,
    symmetry: Any = None,
    exact: bool | None = None,
    walkers: int = 1024,
    **known: Any,
) -> Task:
    """The ground state of a lattice, as a task for `angd.fit` and `angd run`.

    **Arguments:**

    - `hamiltonian`: H.
    - `amplitude`: log ψ, `(params, x)`, with `init(key)` unless `params=` or `init=` is given.
    - `symmetry`: permutations that neither H nor log ψ notices, such as `lattice.translations()`; exact sums then need
      one state of each orbit.
    - `exact`: sum over all states (True) or sample them (False); by default what the number of states allows.
    - `walkers`: of the Markov chain.
    - `known`: arguments of `Task` to set, such as `name`, or `energy` where it is known and cannot be computed.

    **Returns:** a `Task`; its reference energy is that of exact diagonalisation where there are few enough states.

    **Example:** `angd.fit(ground_state(TransverseIsing(ring(10)), RBM(10, 10)), seconds=30)`
    """
    count = configurations_count(hamiltonian)
    order = 1 if symmetry is None else len(np.asarray(symmetry))
    exact = count <= STATES * order and count <= JUDGED if exact is None else exact
    basis = Basis.of(hamiltonian, symmetry) if exact or ("energy" not in known and count <= JUDGED) else None
    samples = Enumerated(basis) if exact and basis is not None else chain_of(hamiltonian, walkers)
    usual: dict[str, Any] = {"name": "lattice", "options": OPTIONS, "samples": samples}
    if basis is not None:
        usual["energy"] = float(lowest(basis, 1)[0])
    return Task(LatticeState(amplitude, hamiltonian), **usual | known)
