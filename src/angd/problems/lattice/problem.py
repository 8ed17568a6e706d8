"""The ground state of a lattice as a problem: ρ = |ψ|², and the variation of the energy is the local energy.

    E_L(x) = Σ_x′ ⟨x|H|x′⟩ ψ(x′)/ψ(x)

A real log ψ is a positive ψ: `FisherRao` and every recipe for densities take it. A complex one has a phase, and needs
`FubiniStudy`.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Inexact, Int, PyTree

from angd.method.parallel import by_share
from angd.method.samples import Samples
from angd.problems.lattice.basis import States
from angd.problems.lattice.hamiltonians import AbstractHamiltonian

CHUNK = 1024  # configurations whose local energies are computed at a time


class LatticeState(eqx.Module):
    """Find the ψ of least energy on a lattice.

    **Arguments:**

    - `amplitude`: log ψ, `amplitude(params, x)` at one configuration x, an array of integers; real for a positive ψ,
      complex otherwise. `RBM`, `Convolution`, or your own; one with `init(key)` gives the first parameters.
    - `hamiltonian`: H, with `connections(x)`.
    - `chunk`: configurations whose local energies are computed at a time; fewer take less memory.

    **Example:** `LatticeState(RBM(10, 20), TransverseIsing(ring(10)))`
    """

    amplitude: Callable[[PyTree, Array], Array]
    hamiltonian: AbstractHamiltonian
    chunk: int = eqx.field(static=True, default=CHUNK)

    def init(self, key: Array) -> PyTree:
        """The first parameters of the amplitude."""
        if not hasattr(self.amplitude, "init"):
            raise ValueError("LatticeState: the amplitude has no init(key); give the first parameters, params=.")
        return self.amplitude.init(key)  # pyright: ignore[reportFunctionMemberAccess]

    def log_amplitude(self, params: PyTree, x: Int[Array, "n"]) -> Inexact[Array, ""]:
        """log ψ up to a constant."""
        return self.amplitude(params, x)

    def log_density(self, params: PyTree, x: Int[Array, "n"]) -> Float[Array, ""]:
        """log ρ up to a constant."""
        return 2 * jnp.real(self.amplitude(params, x))

    def variation(self, params: PyTree, x: Int[Array, "n"]) -> Inexact[Array, ""]:
        """The local energy at one configuration."""
        there, elements = self.hamiltonian.connections(x)
        ratios = jnp.exp(jax.vmap(self.amplitude, (None, 0))(params, there) - self.amplitude(params, x))
        return jnp.sum(jnp.where(elements != 0, elements * ratios, 0))

    def local_energies(self, params: PyTree, xs: Int[Array, "N n"]) -> Inexact[Array, "N"]:
        """Local energies of all configurations, some at a time."""

        def share(xs: Int[Array, "N n"]) -> Inexact[Array, "N"]:
            return lax.map(lambda x: self.variation(params, x), xs, batch_size=min(self.chunk, xs.shape[0]))

        return by_share(share, xs)

    def variations(
        self, params: PyTree, samples: Samples, old: PyTree | None = None
    ) -> tuple[Samples, Inexact[Array, "N"], Inexact[Array, "N"]]:
        """Local energies as the optimiser sees them, also for older parameters: samples where one is not finite weigh
        nothing."""
        found = [self._energies(p, samples) for p in ((params,) if old is None else (params, old))]
        bad = ~jnp.all(jnp.isfinite(jnp.stack(found)), axis=0)
        clean = [jnp.where(bad, 0, e) for e in found]
        weighed = eqx.tree_at(lambda s: s.omega, samples, jnp.where(bad, 0.0, samples.omega))
        return weighed, clean[0], clean[-1]

    def loss_of(self, energies: Inexact[Array, "N"], samples: Samples) -> Float[Array, ""]:
        """The energy, from local energies."""
        return jnp.real(samples.mean(energies)) / jnp.sum(samples.omega)

    def _energies(self, params: PyTree, samples: Samples) -> Inexact[Array, "N"]:
        if isinstance(samples, States):
            return samples.basis.local_energies(samples.basis.log_amplitudes(self.amplitude, params))
        return self.local_energies(params, samples.x)
