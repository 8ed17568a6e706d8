"""A Markov chain for electrons whose steps are as short as the electron is near to a nucleus.

Near a nucleus of charge Z a density changes over 1/Z, in the outer shells over an a₀ or more. One width for all is that
of the cores, and outer electrons then take thousands of moves to cross a molecule.
"""

from typing import Any

import blackjax
import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from angd.problems.vmc.sampling import AbstractChain, AroundNuclei, check_chain


class Graded(AbstractChain):
    """Metropolis–Hastings for all electrons at once, with shorter proposals near the nuclei.

    An electron at a distance r from a nucleus of charge Z has the width σ = width √(r² + 1/Z²), the least over all
    nuclei; since it differs on the way back, the acceptance weighs both ways.

    **Arguments:**

    - `start`: `AroundNuclei(molecule)`, whose molecule gives the widths.
    - `walkers`: how many; they are independent of each other.
    - `moves`: transitions between two steps of the optimiser; 10 for small atoms, more for molecules.
    - `burn_in`: transitions before the first step.
    - `width`: of the proposals at first, relative to the distance from the nearest nucleus.
    - `target`: the acceptance that the width is adapted to, in (0, 1).

    **Returns:** called as `chain(key, problem, params)`, settled `Walkers`; `chain.move` takes them
    along.
    """

    start: AroundNuclei
    walkers: int = eqx.field(static=True, default=512)
    moves: int = eqx.field(static=True, default=10)
    burn_in: int = eqx.field(static=True, default=200)
    width: float = 0.2
    target: float = 0.35

    def __check_init__(self):
        check_chain(self)

    def transition(self, log_density: Any, width: Array) -> tuple[Any, Any]:
        def propose(key: Array, x: Float[Array, "n 3"]) -> Float[Array, "n 3"]:
            return x + self.sigma(x, width)[:, None] * jax.random.normal(key, x.shape, x.dtype)

        def log_proposal(here: Any, there: Any) -> Array:
            """Of going from here to there, up to a constant."""
            sigma, square = self.sigma(here.position, width), jnp.sum((there.position - here.position) ** 2, axis=-1)
            return -jnp.sum(3 * jnp.log(sigma) + square / (2 * sigma**2))

        algorithm = blackjax.rmh(log_density, propose, log_proposal)
        return algorithm.init, algorithm.step

    def sigma(self, x: Float[Array, "n 3"], width: Array) -> Float[Array, " n"]:
        """Widths of the proposals at the electrons' places."""
        molecule = self.start.molecule
        nuclei, charges = (jnp.asarray(values, x.dtype) for values in (molecule.places, molecule.charges))
        square = jnp.sum((x[:, None] - nuclei[None]) ** 2, axis=-1) + 1 / charges[None] ** 2
        return width.astype(x.dtype) * jnp.sqrt(jnp.min(square, axis=1))
