"""A critical Ising chain in NetKet: its state, sampler, operator and logger; first
its own VMC_SR, then ANGD-FR.

    python examples/guests/netket_ising.py

Needs `angd[bench]`. `vmc_sr` takes the steps of VMC_SR, as the last line shows.
"""

import jax
import jax.numpy as jnp
import netket as nk
import optax

import angd
from angd.compat.netket import VMC_ANGD, vmc_sr

SPINS, STEPS = 8, 60
hilbert = nk.hilbert.Spin(0.5, SPINS)
hamiltonian = nk.operator.IsingJax(hilbert, nk.graph.Chain(SPINS), h=1.0)
exact = nk.exact.lanczos_ed(hamiltonian)[0]


def state():
    model = nk.models.RBM(alpha=1, param_dtype=float)
    return nk.vqs.FullSumState(hilbert, model, seed=1)


theirs = nk.driver.VMC_SR(
    hamiltonian,
    optax.sgd(0.025),
    diag_shift=1e-4,
    variational_state=state(),
    use_ntk=False,
)
same = VMC_ANGD(hamiltonian, vmc_sr(0.025, 1e-4), variational_state=state())
flow = angd.ARGFlow.momentum(mu=0.8, rate=0.1)
accelerated = VMC_ANGD(
    hamiltonian,
    angd.ANGD(flow, angd.FisherRao(), angd.Normal(4e-4)),
    variational_state=state(),
)

errors = {}
for name, driver in {
    "VMC_SR": theirs,
    "vmc_sr": same,
    "ANGD-FR": accelerated,
}.items():
    log = nk.logging.RuntimeLog()
    driver.run(STEPS, out=log, show_progress=False)
    errors[name] = abs(float(jnp.real(log.data["Energy"].Mean[-1])) / exact - 1)
pairs = zip(
    *(jax.tree.leaves(driver.state.parameters) for driver in (theirs, same)),
    strict=True,
)
difference = max(float(jnp.max(jnp.abs(a - b))) for a, b in pairs)

if __name__ == "__main__":
    for name, error in errors.items():
        print(
            f"{name:<8} relative error of the energy after {STEPS} steps: "
            f"{error:.1e}"
        )
    print(f"parameters of VMC_SR and of vmc_sr differ by {difference:.0e}")
