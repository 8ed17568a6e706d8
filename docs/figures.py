"""Draw the figures that the docs show, by the program itself: `make figures`."""

import sys
from pathlib import Path

from angd.cli import main

FOLDER = Path(__file__).parent / "figures"
ENTROPY = ["--manifold", "fisher-rao", "--functional", "relative-entropy", "--t0", "0.5", "--t1", "40"]
FIGURES = {
    "fisher-rao": [*ENTROPY, "--beta", "0.4", "--gamma", "1+0.4/t"],
    "hessian-damping": ENTROPY,
    "counterexample": ["--manifold", "sobolev", "--functional", "power", "--alpha", "2/t", "--t1", "200"],
}

if __name__ == "__main__":
    sys.exit(max(main(["flow", *options, "--out", str(FOLDER / f"{name}.png")]) for name, options in FIGURES.items()))
