"""`ANGD` as a driver of NetKet: its variational states, samplers, operators, loggers and callbacks, our steps.

    driver = angd.compat.netket.VMC_ANGD(hamiltonian, opt, variational_state=state)
    driver.run(300, out=log)

A step of NetKet's loop draws samples, evaluates local energies and asks for an update. The first two stay NetKet's. The
local energies travel with the samples, where `variation` reads them, and `ANGD.step` gives the update. With β > 0 the
local energies of the parameters of the step before are evaluated too, at the same samples.

`VMC_SR` works with log ψ and twice the energy's force, a step here with log |ψ|²; `vmc_sr` translates.
"""

from collections.abc import Callable
from typing import Any

from angd._requirements import needs

needs("netket", "bench", "angd.compat.netket")

import equinox as eqx
import jax
import jax.numpy as jnp
import netket as nk
from jaxtyping import Array, Float, Inexact, PyTree
from netket.operator import to_sparse_cached
from netket.utils import struct
from netket.vqs import FullSumState, MCState

from angd.flow.coefficients import ARGFlow
from angd.flow.schedules import Times, as_schedule
from angd.method.metrics import FisherRao, FubiniStudy, ParametricWasserstein, Wasserstein
from angd.method.pairs import paired, unpaired
from angd.method.samples import Samples
from angd.method.solvers import Normal, ProjectedMomentum
from angd.method.step import ANGD, Info, State

__all__ = ["VMC_ANGD", "vmc_sr"]

Observed = tuple[nk.stats.Stats, Array, Array, Any]


def vmc_sr(learning_rate: Any, diag_shift: Any, momentum: Any = 0.0) -> ANGD:
    """What `netket.driver.VMC_SR` does with `optax.sgd`: stochastic reconfiguration, minSR or, with momentum, SPRING.

    Rows here are those of log |ψ|², twice NetKet's, and the force is half of NetKet's: rate and λ are four times those.

    **Arguments:**

    - `learning_rate`: of `optax.sgd`, a number or a schedule of the step; 0.01 to 0.1.
    - `diag_shift`: NetKet's λ; 1e-4 to 1e-2.
    - `momentum`: SPRING's μ in [0, 1), 0 for none; about 0.8 (Goldshlager, Abrahamsen and Lin 2024).

    **Returns:** an `ANGD`; its matrix is p × p or n × n, whichever is smaller.

    **Example:** `VMC_ANGD(hamiltonian, vmc_sr(0.01, 1e-4, 0.8), variational_state=state)`
    """
    falls = callable(learning_rate)
    rate: Any = Times(4.0, as_schedule(learning_rate, "learning_rate")) if falls else 4 * learning_rate
    solver = ProjectedMomentum(momentum, Normal(4 * diag_shift))
    return ANGD(ARGFlow.gradient(rate), FubiniStudy(correction=False), solver)


class _Amplitude(eqx.Module):
    """A NetKet model as a problem. A sample is a configuration with its local energies: of θ, and of the θ before."""

    apply: Callable[..., Array] = eqx.field(static=True)

    def log_amplitude(self, params: PyTree, x: dict[str, Array]) -> Inexact[Array, ""]:
        """log ψ."""
        return self.apply({"params": unpaired(params)}, x["sigma"])

    def log_density(self, params: PyTree, x: dict[str, Array]) -> Float[Array, ""]:
        """log |ψ|²."""
        return 2 * jnp.real(self.log_amplitude(params, x))

    def variation(self, params: PyTree, x: dict[str, Array]) -> Inexact[Array, ""]:
        """The local energy that NetKet found."""
        return x["energy"]

    def variations(
        self, params: PyTree, samples: Samples, old: PyTree | None = None
    ) -> tuple[Samples, Inexact[Array, "n"], Inexact[Array, "n"]]:
        """The same for a whole batch, and those of the parameters before."""
        return samples, samples.x["energy"], samples.x["before"]

    def loss_of(self, variations: Inexact[Array, "n"], samples: Samples) -> Float[Array, ""]:
        """The energy."""
        return jnp.real(samples.mean(variations))


class VMC_ANGD(nk.driver.AbstractDriver):
    """Ground states by ANGD on NetKet's `MCState` or `FullSumState`; `run`, loggers and callbacks are NetKet's.

    **Arguments:**

    - `hamiltonian`: a Hermitian operator.
    - `opt`: an `ANGD` with `FubiniStudy`, or `FisherRao` where log ψ is real; `vmc_sr` gives that of `VMC_SR`.
    - `variational_state`: its samples are drawn from |ψ|², its model has parameters and no other variables.

    **Example:** `VMC_ANGD(hamiltonian, opt, variational_state=state).run(300, out="log")`
    """

    # What the last step reported.
    info: Info | None = struct.field(pytree_node=False, serialize=False, default=None)
    _ham: Any = struct.field(pytree_node=False, serialize=False)
    _part: Any = struct.field(pytree_node=False, serialize=False)
    _opt: Any = struct.field(pytree_node=False, serialize=False)
    _problem: Any = struct.field(pytree_node=False, serialize=False)
    _step: Any = struct.field(pytree_node=False, serialize=False)
    _structure: Any = struct.field(pytree_node=False, serialize=False)
    # The arrays of the optimiser's state, which a checkpoint of NetKet can hold.
    _leaves: Any = struct.field(pytree_node=True, serialize=True)

    def __init__(self, hamiltonian: Any, opt: Any, *, variational_state: Any):
        _check(hamiltonian, opt, variational_state)
        super().__init__(variational_state, minimized_quantity_name="Energy")
        self._ham, self._opt, self._step = hamiltonian, opt, eqx.filter_jit(opt.step)
        self._problem = _Amplitude(variational_state._apply_fun)
        # Where ψ has no phase, no imaginary part of a local energy can move it.
        self._part = jnp.asarray if _has_phase(variational_state) else jnp.real
        state = opt.init(self._problem, paired(variational_state.parameters), self._example())
        self._leaves, self._structure = jax.tree.flatten(state)

    @property
    def optimizer_state(self) -> State:
        """The optimiser's `angd.State`."""
        return jax.tree.unflatten(self._structure, self._leaves)

    def compute_loss_and_update(self) -> tuple[nk.stats.Stats, PyTree]:
        """The energy, and what is to be added to the parameters."""
        before, params = self.optimizer_state, paired(self.state.parameters)
        stats, samples = self._observe(before)
        after, _, state, self.info = self._step(self._problem, params, samples, before)
        self._leaves = jax.tree.leaves(state)
        return stats, unpaired(jax.tree.map(jnp.subtract, after, params))

    def update_parameters(self, dp: PyTree) -> None:
        """θ ← θ + dp."""
        self.state.parameters = jax.tree.map(jnp.add, self.state.parameters, dp)

    def _observe(self, before: State) -> tuple[nk.stats.Stats, Samples]:
        """Statistics of the energy, and the samples of the step with all that NetKet knows of them."""
        observe = _everywhere if isinstance(self.state, FullSumState) else _at_samples
        stats, sigma, energy, omega = observe(self.state, self._ham, self.state.parameters)
        old = energy
        if self._opt._may_damp():
            old = observe(self.state, self._ham, unpaired(before.previous.params))[2]
        return stats, self._samples(sigma, energy, old, omega)

    def _samples(self, sigma: Array, energy: Array, before: Array, omega: Array | None) -> Samples:
        return Samples({"sigma": sigma, "energy": self._part(energy), "before": self._part(before)}, omega)

    def _example(self) -> Samples:
        """A batch of the shapes of a step, drawn without touching the sampler."""
        state = self.state
        n = state.hilbert.n_states if isinstance(state, FullSumState) else state.n_samples
        energy = jnp.zeros(n, jnp.result_type(self._ham.dtype, _log_psi(state).dtype))
        return self._samples(state.hilbert.random_state(jax.random.key(0), n), energy, energy, None)

    def _log_additional_data(self, log_dict: dict) -> None:
        super()._log_additional_data(log_dict)
        log_dict["angd"] = {name: getattr(self.info, name) for name in ("norm", "moved", "damping", "accepted")}


def _at_samples(state: MCState, hamiltonian: Any, params: PyTree) -> Observed:
    """Statistics, configurations of the chains and their local energies at any parameters; they weigh the same."""
    sigma, arguments = nk.vqs.get_local_kernel_arguments(state, hamiltonian)
    kernel = nk.vqs.get_local_kernel(state, hamiltonian, state.chunk_size)
    if state.chunk_size is not None:
        kernel = nk.jax.HashablePartial(kernel, chunk_size=state.chunk_size)
    flat = sigma.reshape(-1, sigma.shape[-1])
    energy = _local_energies(kernel, state._apply_fun, {"params": params}, flat, arguments)
    return nk.stats.statistics(energy.reshape(sigma.shape[:-1])), flat, energy, None


@eqx.filter_jit
def _local_energies(kernel: Any, apply: Any, variables: PyTree, sigma: Array, arguments: Any) -> Array:
    return kernel(apply, variables, sigma, arguments)


def _everywhere(state: FullSumState, hamiltonian: Any, params: PyTree) -> Observed:
    """The same for all configurations, with weights |ψ|²."""
    sigma = jnp.asarray(state.hilbert.all_states())
    log_psi = eqx.filter_jit(state._apply_fun)({"params": params}, sigma)
    psi = jnp.exp(log_psi - jnp.max(jnp.real(log_psi)))
    image, omega = jnp.asarray(to_sparse_cached(hamiltonian) @ psi), jnp.abs(psi) ** 2 / jnp.sum(jnp.abs(psi) ** 2)
    energy = jnp.where(omega > 0, image / jnp.where(omega > 0, psi, 1), 0)
    mean = jnp.vdot(omega, energy)
    stats = nk.stats.Stats(mean=mean, error_of_mean=0.0, variance=jnp.vdot(omega, jnp.abs(energy - mean) ** 2))
    return stats, sigma, energy, omega


def _log_psi(state: Any) -> jax.ShapeDtypeStruct:
    sigma = state.hilbert.random_state(jax.random.key(0), 1)
    return jax.eval_shape(state._apply_fun, state.variables, sigma)


def _has_phase(state: Any) -> bool:
    return jnp.issubdtype(_log_psi(state).dtype, jnp.complexfloating)


def _check(hamiltonian: Any, opt: Any, state: Any) -> None:
    """Refuse what a step could not use, each in a sentence."""
    if not isinstance(state, MCState | FullSumState):
        raise ValueError(f"VMC_ANGD: variational_state must be an MCState or FullSumState, got {type(state).__name__}.")
    if not isinstance(opt, ANGD):
        raise ValueError(f"VMC_ANGD: opt must be an angd.ANGD, got {type(opt).__name__}; vmc_sr(...) makes one.")
    if not isinstance(hamiltonian, nk.operator.AbstractOperator) or hamiltonian.hilbert != state.hilbert:
        raise ValueError("VMC_ANGD: the hamiltonian must be an operator on the Hilbert space of the variational state.")
    if not hamiltonian.is_hermitian:
        raise ValueError(
            "VMC_ANGD: the hamiltonian is not Hermitian, so its expectation value has no ground state to descend to."
        )
    if jax.tree.leaves(state.model_state):
        names = ", ".join(sorted(state.model_state))
        raise ValueError(
            f"VMC_ANGD: the model keeps variables beside its parameters ({names}), which no step would update: take a "
            "model without batch statistics or caches."
        )
    if isinstance(state, MCState) and getattr(state.sampler, "machine_pow", 2) != 2:
        raise ValueError("VMC_ANGD: samples must be drawn from |ψ|²: give the sampler machine_pow=2.")
    if isinstance(opt.metric, Wasserstein | ParametricWasserstein):
        raise ValueError("VMC_ANGD: Wasserstein moves points a little, which configurations cannot: use FubiniStudy.")
    if isinstance(opt.metric, FisherRao) and _has_phase(state):
        raise ValueError("VMC_ANGD: log ψ is complex, and FisherRao does not see its phase: use FubiniStudy.")
