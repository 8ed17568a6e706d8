"""One natural-gradient step beside NetKet's `VMC_SR` on the same log ψ and samples, over n, p and precision.

    python benchmarks/sr_grid.py [--quick | --record] [--double | --single] [n…]

Needs `angd[bench]`. log ψ is NetKet's own `MLP` on 16 spins with two hidden layers; the rest is as `vmc_sr.py` has it:
CPU time of `compute_loss_and_update` with samples at hand, the forms in turn, medians with the fastest and slowest.
NetKet's are both of its kernel paths, and the p × p one where p ≤ n. Sizes whose dense rows or whose product would take
this machine minutes are left out, and said so. The updates are compared.
"""

import contextlib
import io
import json
import sys
from functools import partial
from statistics import median
from typing import Any

from timing import RESULTS, cpu_times, one_core, record

one_core()

import jax  # noqa: E402
import netket as nk  # noqa: E402
import numpy as np  # noqa: E402
import optax  # noqa: E402

from angd.compat.netket import VMC_ANGD, vmc_sr  # noqa: E402
from vmc_sr import FORMS, MU, RATE, SHIFT, far, update  # noqa: E402

SPINS = 16
WIDTHS = {"2k": 36, "20k": 132, "200k": 438}
SAMPLES = (512, 1024, 2048, 4096)
DEAREST, LARGEST = 1.5e11, 2 * 2**30  # multiply-adds of the kernel, bytes of the rows
REPEATS = 2


def state(width: int, n: int, dtype: Any) -> Any:
    sampler = nk.sampler.MetropolisLocal(nk.hilbert.Spin(0.5, SPINS), n_chains=16)
    model = nk.models.MLP(hidden_dims=(width, width), param_dtype=dtype)
    return nk.vqs.MCState(sampler, model, n_samples=n, seed=1, sampler_seed=2)


def drivers(width: int, n: int, dtype: Any) -> dict[str, Any]:
    """Each on a state of its own; the samples are the same."""
    hamiltonian = nk.operator.IsingJax(nk.hilbert.Spin(0.5, SPINS), nk.graph.Chain(SPINS), h=1.0)
    ours = VMC_ANGD(hamiltonian, vmc_sr(RATE, SHIFT, MU), variational_state=state(width, n, dtype))
    found: dict[str, Any] = {"angd": ours}
    for name, options in FORMS.items():
        if options["use_ntk"] or ours.state.n_parameters <= n:
            rule, wave = optax.sgd(RATE), state(width, n, dtype)
            found[name] = nk.driver.VMC_SR(
                hamiltonian, rule, variational_state=wave, diag_shift=SHIFT, momentum=MU, **options
            )
    return found


def compared(width: int, n: int, dtype: Any, repeats: int) -> dict[str, Any]:
    """Milliseconds of each, ours over the best of theirs, and how far the updates are apart."""
    with contextlib.redirect_stdout(io.StringIO()):
        found = drivers(width, n, dtype)
    first = {name: update(driver) for name, driver in found.items()}
    assert all(np.array_equal(driver.state.samples, found["angd"].state.samples) for driver in found.values())
    times = cpu_times({name: partial(update, driver) for name, driver in found.items()}, repeats)
    middle = {name: median(each) for name, each in times.items()}
    theirs = {name: seconds for name, seconds in middle.items() if name != "angd"}
    best = min(theirs, key=lambda name: theirs[name])
    ratios = [ours / their for ours, their in zip(times["angd"], times[best], strict=True)]
    return {
        "p": int(found["angd"].state.n_parameters),
        "ms": {name: float(f"{1e3 * seconds:.4g}") for name, seconds in middle.items()},
        "best": best,
        "ratio": round(middle["angd"] / theirs[best], 3),
        "spread": [round(min(ratios), 3), round(max(ratios), 3)],
        "difference": max(float(f"{far(first['angd'], first[name]):.1e}") for name in theirs),
    }


def too_dear(p: int, n: int, each: int) -> str | None:
    """Why a size is left out."""
    if n * p * each > LARGEST:
        return f"dense rows would take {n * p * each / 2**30:.0f} GiB"
    return f"one product would take {n * n * p:.0e} multiply-adds" if n * n * p > DEAREST else None


def parameters(width: int) -> int:
    return (SPINS + 1) * width + (width + 1) * width + width + 1


def report(dtype: Any, sizes: dict[str, int], samples: tuple[int, ...], repeats: int) -> dict[str, Any]:
    """One precision."""
    found = kept(np.dtype(dtype).name) if "--record" in sys.argv else {}
    for name, width in sizes.items():
        for n in samples:
            reason = too_dear(parameters(width), n, np.dtype(dtype).itemsize)
            found[f"p{name}_n{n}"] = row = {"left_out": reason} if reason else compared(width, n, dtype, repeats)
            print(f"{np.dtype(dtype).name}, p = {name}, n = {n}: {_said(row)}", flush=True)
            if "--record" in sys.argv:
                record("sr_grid", np.dtype(dtype).name, found, "sr_grid")
    return found


def kept(precision: str) -> dict[str, Any]:
    """What the result file has of one precision: a run of some sizes leaves the others."""
    path = RESULTS / "sr_grid.json"
    return json.loads(path.read_text(encoding="utf-8"))["values"].get(precision, {}) if path.exists() else {}


def _said(row: dict[str, Any]) -> str:
    if "left_out" in row:
        return row["left_out"]
    times = ", ".join(f"{name} {ms:g} ms" for name, ms in row["ms"].items())
    return f"{times}; ours over the best {row['ratio']}; updates differ by {row['difference']:.0e}"


def main() -> None:
    jax.config.update("jax_enable_x64", True)
    quick = "--quick" in sys.argv
    asked = tuple(int(argument) for argument in sys.argv[1:] if argument.isdigit())
    sizes, samples = ({"300": 12}, (64,)) if quick else (WIDTHS, asked or SAMPLES)
    for dtype, flag in ((np.float64, "--single"), (np.float32, "--double")):
        if flag not in sys.argv:
            report(dtype, sizes, samples, 1 if quick else REPEATS)


if __name__ == "__main__":
    main()
