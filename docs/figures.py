"""Draw the figures that the docs show, by the program itself: `make figures`."""

import shutil
import sys
import tempfile
from pathlib import Path

from angd.cli import main

FOLDER = Path(__file__).parent / "figures"
ENTROPY = ["--manifold", "fisher-rao", "--functional", "relative-entropy", "--t0", "0.5", "--t1", "40"]
FIGURES = {
    "fisher-rao": [*ENTROPY, "--beta", "0.4", "--gamma", "1+0.4/t"],
    "hessian-damping": ENTROPY,
    "counterexample": ["--manifold", "sobolev", "--functional", "power", "--alpha", "2/t", "--t1", "200"],
}

COMPARISON = ["compare", "heat", "--optimizers", "energy,angd-l2,adam", "--seeds", "0,1,2", "--budget", "100 steps"]


def heat() -> int:
    """The figure of a comparison's report."""
    with tempfile.TemporaryDirectory() as folder:
        code = main([*COMPARISON, "--out", folder])
        shutil.copy(Path(folder) / "report" / "heat.png", FOLDER / "heat.png")
    return code


if __name__ == "__main__":
    drawn = [main(["flow", *options, "--out", str(FOLDER / f"{name}.png")]) for name, options in FIGURES.items()]
    sys.exit(max([*drawn, heat()]))
