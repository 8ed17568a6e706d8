"""Machines of which the plan knows: this one, as measured, and accelerators, as published.

What a maker says of peak, memory and links is taken as it is; what fraction of the peak a program reaches is assumed,
and called so. Figures of the accelerators: NVIDIA H100 SXM5 (H100 datasheet: FP64 tensor cores 67 Tflop/s, 80 GB, 3.35
TB/s, NVLink 900 GB/s in both directions together) in hosts of eight with one 400 Gb/s port for each (DGX H100
datasheet), and NVIDIA A100 SXM4 80 GB (A100 datasheet: 19.5, 80, 2.04, 600; DGX A100: 200 Gb/s for each).
"""

import json
from pathlib import Path

from angd.train.costs import Machine

ROOFLINE = Path(__file__).parent.parent / "results" / "roofline.json"
GB = 1e9
H100 = Machine("H100", 67e12, 3350 * GB, 80 * GB, 450 * GB, 50 * GB, 10e-6, 8, 0.5, 0.5, 0.25, 0.05)
A100 = Machine("A100", 19.5e12, 2040 * GB, 80 * GB, 300 * GB, 25 * GB, 10e-6, 8, 0.5, 0.5, 0.25, 0.05)


def this_core(precision: str = "float64") -> Machine:
    """One core of the machine on which `benchmarks/roofline.py --record` was run."""
    found = json.loads(ROOFLINE.read_text(encoding="utf-8"))["values"][precision]
    reached = {name: part["fastest"] / found["peak"] for name, part in found["parts"].items()}
    return Machine(
        "this core",
        found["peak"],
        found["bandwidth"],
        8 * 2**30,
        per_host=1,
        half=(reached["kernel, blocked half"] + reached["Gram, blocked half"]) / 2,
        paired=reached["kernel, pairs"],
        factor=reached["Cholesky"],
        small=reached["rows, factors"],
        assembly=found["p"] * found["n"] * 8 / (1e-3 * found["parts"]["rows, dense"]["spread"][0]) / found["bandwidth"],
    )
