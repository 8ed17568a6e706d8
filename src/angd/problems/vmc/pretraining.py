"""Orbitals first: fit a network's orbitals to Hartree–Fock's, on walkers of the Hartree–Fock density."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PyTree

from angd.method.baselines.base import report
from angd.method.jacobian import check_params
from angd.problems.vmc.ferminet import FermiNet
from angd.problems.vmc.hartree_fock import HartreeFock
from angd.problems.vmc.problem import GroundState
from angd.tree import all_finite, where


class Pretraining(eqx.Module):
    """Adam on the mean squared difference of a network's orbitals from Hartree–Fock's (Pfau et al. 2020).

    **Arguments:**

    - `network`: a `FermiNet`.
    - `target`: `HartreeFock.of(molecule)`.
    - `rate`: learning rate.

    **Example:** `Phase(Pretraining(network, target), OfHartreeFock(chain, target), steps=500)`
    """

    network: FermiNet
    target: HartreeFock
    rate: float = 3e-3

    def _rule(self) -> optax.GradientTransformation:
        return optax.adam(self.rate)

    def init(self, problem: object, params: PyTree, samples: Any) -> PyTree:
        check_params(params)
        return self._rule().init(params)

    def step(self, problem: object, params: PyTree, samples: Any, state: PyTree) -> tuple[PyTree, Any, PyTree, Any]:
        value, gradient = jax.value_and_grad(self.loss)(params, samples.x)
        update, after = self._rule().update(gradient, state, params)
        ok = all_finite(update) & jnp.isfinite(value)
        moved: Any = optax.apply_updates(params, update)
        params, state = where(ok, (moved, after), (params, state))
        return params, samples, state, report(value, gradient, update, ok)

    def loss(self, params: PyTree, xs: Float[Array, "N n 3"]) -> Float[Array, ""]:
        """Mean over walkers, determinants and electrons of |φ − φ_HF|²/|φ_HF|², the length being over orbitals.

        A determinant scales with each of its rows, so that each counts by its own size: else the electrons of a core,
        whose orbitals are large, would be all that is learnt.
        """

        def one(x: Float[Array, "n 3"]) -> Array:
            wanted = self.target.orbitals(x)
            missed = jnp.sum((self.network.orbitals(params, x) - wanted[None]) ** 2, axis=-1)
            return jnp.mean(missed / jnp.sum(wanted**2, axis=-1)[None])

        return jnp.mean(jax.vmap(one)(xs))


class OfHartreeFock(eqx.Module):
    """A chain that samples the Hartree–Fock density, whatever the network does.

    **Arguments:**

    - `chain`: a Markov chain, such as `Metropolis`.
    - `target`: the `HartreeFock` wave function.

    **Returns:** called as `(key, problem, params)`, the chain's walkers.
    """

    chain: Any
    target: HartreeFock

    @property
    def problem(self) -> GroundState:
        return GroundState(self.target, _nowhere)

    def __call__(self, key: Array, problem: object, params: PyTree) -> Any:
        return self.chain(key, self.problem, params)

    def move(self, key: Array, problem: object, params: PyTree, samples: Any) -> Any:
        return self.chain.move(key, self.problem, params, samples)


def _nowhere(x: Array) -> Array:
    """No potential: only the density is asked for."""
    return jnp.zeros(())
