"""Run the examples and draw the pictures of the gallery: `make gallery`.

`python tools/draw_examples.py NAME…` draws those of examples/NAME.py alone.
"""

import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import jax

import angd
from angd.recipes import GaussNewton, Recipe, Vmc

ROOT = Path(__file__).parent.parent
FIGURES = ROOT / "docs" / "figures"


@dataclass(frozen=True)
class Picture:
    """How an example is trained for its picture: recipe and steps; without a recipe it draws itself."""

    recipe: Recipe | None = None
    steps: int = 0


POINTS = GaussNewton(interior=500, condition=100, fresh=60)
SMALL = GaussNewton(interior=300, condition=60, fresh=40)
WALKERS = Vmc(mu=0.8, rate=0.05, eta=0, walkers=256, measurements=40)
PICTURES = {
    "front": Picture(POINTS, 80),
    "poisson": Picture(POINTS, 80),
    "allen_cahn": Picture(SMALL, 80),
    "wave": Picture(SMALL, 80),
    "kovasznay": Picture(SMALL, 60),
    "insulated": Picture(SMALL, 50),
    "cube": Picture(SMALL, 30),
    "family": Picture(SMALL, 40),
    "viscosity": Picture(GaussNewton(interior=300, condition=200, fresh=40), 60),
    "double_well": Picture(WALKERS, 100),
    "quantum_dot": Picture(WALKERS, 100),
    "spirals": Picture(),
    "circle": Picture(),
}


def load(name: str) -> ModuleType:
    """The module examples/NAME.py."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def draw(name: str) -> Any:
    """Run an example and draw what it found."""
    example, picture = load(name), PICTURES[name]
    if picture.recipe is None:
        return example.draw(example.train() if hasattr(example, "train") else example.solve())
    task = getattr(example, "task", None) or example.problem
    fit = angd.fit(task, picture.recipe, steps=picture.steps, progress=False)
    print(fit, flush=True)
    return fit.plot()


def main() -> None:
    jax.config.update("jax_enable_x64", True)
    for name in sys.argv[1:] or PICTURES:
        draw(name).savefig(FIGURES / f"example-{name.replace('_', '-')}.png", dpi=110)
        print(name, flush=True)


if __name__ == "__main__":
    main()
