"""Recipes by name, and the one place that says which recipe suits a problem. Imports nothing heavy.

A name stands for a recipe with some options set, one line of text, and the grids that sweeps try. `angd list` shows
them; `angd.fit(problem, "adam")` and `angd run burgers adam` take them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from angd import address
from angd.recipes.base import INFINITE, Grid, Recipe, unknown
from angd.recipes.baselines import LBFGS, SGD, Adam, SSBroyden
from angd.recipes.inference import Inference
from angd.recipes.pinn import GaussNewton, Sobolev
from angd.recipes.published import ENGD, WQMC, HeavyBall, MinSR, Nesterov, Spring
from angd.recipes.vmc import Vmc


@dataclass(frozen=True)
class Named:
    """A recipe with a name: what it is about, and what sweeps try (`grid` ours, `paper` that of the paper)."""

    about: str
    recipe: Recipe
    grid: Grid = field(default_factory=dict)
    paper: Grid = field(default_factory=dict)

    @classmethod
    def of(cls, recipe: Any) -> "Named":
        """From a recipe, or a class of recipes, of one's own: the first line of its docstring, and its grids."""
        made = recipe() if isinstance(recipe, type) else recipe
        return cls((type(made).__doc__ or type(made).__name__).split("\n")[0], made, made.grid, made.paper)


# About as many for either, so that two dozen cover both alike.
NGD: Grid = {"rate": (0.01, 0.03, 0.1, 0.3, 1.0), "damping": (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 1e-1)}
ANGD: Grid = {"rate": (0.01, 0.03, 0.1, 0.3), "damping": (1e-3, 1e-2), "mu": (0.8, 0.95), "beta": (0.0, 1.0)}
ADAM: Grid = {"rate": (5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2), "halving": (1000, 3000, 6000, 12000)}
DESCENT: Grid = {"rate": (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1), "momentum": (0.0, 0.9, 0.99)}
# Section 6.1 of the paper, whose α₀ and β₀ from {0.01, 0.05, 0.1, 0.15} are read as 1 − μ, and as β at h = 0.1; both
# decay. It does not say in which units they are, nor how fast they decay.
PAPER_RATES = (0.001, 0.005, 0.01)
PAPER_DECAY = (0.0, 1e-4, 5e-5)
BOTH_FALL: Grid = {"alpha_decay": (1e-3,), "beta_decay": (1e-3,)}
PAPER_NGD: Grid = {"rate": PAPER_RATES, "weight_decay": PAPER_DECAY}
PAPER_ANGD: Grid = PAPER_NGD | {"mu": (0.99, 0.95, 0.9, 0.85), "beta": (0.1, 0.5, 1.0, 1.5), **BOTH_FALL}
PAPER_ADAM: Grid = PAPER_NGD | {"momentum": (0.9, 0.99), "second": (0.99, 0.999)}

SPACES = {"l2": "L² metric", "h1": "H¹ metric", "h2": "H² metric"}
# Derivatives make the metric larger; damping is in its units, and so are the best rates (NGD's were 0.03 to 1 in L², 1
# in H¹ and 10 or more in H²: whoever may not go there is slow).
SIZES = {"l2": 1, "h1": 10, "h2": 100}


def _scaled(grid: Grid, metric: str) -> Grid:
    sized = {"damping", "rate"}
    return {name: tuple(SIZES[metric] * v if name in sized else v for v in values) for name, values in grid.items()}


def _plain(metric: str) -> Named:
    recipe = Sobolev(metric=metric, rate=0.1 * SIZES[metric], damping=1e-3 * SIZES[metric])
    return Named(f"natural gradient, {SPACES[metric]}", recipe, _scaled(NGD, metric), PAPER_NGD)


def _accelerated(metric: str) -> Named:
    recipe = Sobolev(metric=metric, mu=0.8, rate=0.03 * SIZES[metric], damping=1e-3 * SIZES[metric])
    return Named(f"accelerated natural gradient, {SPACES[metric]}", recipe, _scaled(ANGD, metric), PAPER_ANGD)


LARGE = GaussNewton(interior=1000, condition=125, warm_steps=30, fresh=INFINITE, scaling=0)
FIELDS: Mapping[str, Named] = {
    "energy": Named("energy metric (Gauss–Newton), Levenberg–Marquardt, adaptive points", GaussNewton()),
    "energy-fast": Named(
        "energy on fewer points, for a minute or two", GaussNewton(interior=2000, condition=200, fresh=200)
    ),
    "energy-large": Named("energy for more parameters than points: the kernel's form, fresh adaptive points", LARGE),
    "energy-trust": Named(
        "energy with a trust region by target ratio: one factorisation, many radii",
        GaussNewton(controller="trust-region"),
    ),
    "energy-projected": Named(
        "energy with projected momentum", GaussNewton(momentum=0.9), {"momentum": (0.5, 0.9, 0.99)}
    ),
    "energy-accelerated": Named(
        "energy with the accelerated flow (heavy ball, transported)",
        GaussNewton(mu=0.5, rate=0.5),
        {"mu": (0.3, 0.5, 0.8), "rate": (0.3, 0.5, 1.0), "restart": (False, True)},
    ),
    **{f"ngd-{metric}": _plain(metric) for metric in SPACES},
    **{f"angd-{metric}": _accelerated(metric) for metric in SPACES},
    "angd-l2-printed": Named(
        "as angd-l2 with the recursion as printed in the paper, for comparison",
        Sobolev(mu=0.8, rate=0.03, transport="printed"),
        ANGD,
        PAPER_ANGD,
    ),
    "engd": Named("ENGD as published: full Gauss–Newton steps with a line search", ENGD()),
    "heavy-ball": Named("Polyak's heavy ball, L² metric", HeavyBall(), {"rate": NGD["rate"], "mu": (0.5, 0.8, 0.9)}),
    "nesterov": Named("Nesterov's method, L² metric", Nesterov(), {"rate": NGD["rate"]}),
    "adam": Named("Adam with a decaying rate", Adam(rate=1e-2, halving=6000), ADAM, PAPER_ADAM),
    "sgd": Named("gradient descent with momentum", SGD(rate=1e-3), DESCENT, PAPER_NGD),
    "lbfgs": Named(
        "L-BFGS on adaptive points that serve 500 steps",
        LBFGS(),
        {"keep": (100, 500, 2000), "interior": (1000, 3000), "memory": (20, 50, 100)},
    ),
    "ssbroyden": Named(
        "self-scaled Broyden on adaptive points that serve 500 steps",
        SSBroyden(),
        {"keep": (100, 500, 2000), "interior": (1000, 3000)},
    ),
}

# Section 6.3 of the paper: rates of Fisher–Rao and Wasserstein-2, α₀ as 1 − μ. With momentum h falls half as fast as
# the rate does without, and α and β with it.
PAPER_PLAIN: Grid = {"rate": (0.001, 0.005, 0.01, 0.05, 0.1), "decay": (1e-4,)}
ALL_FALL: Grid = {"decay": (0.0,), "h_decay": (5e-5,), "alpha_decay": (5e-5,)}
PAPER_FAST: Grid = {"rate": (0.001, 0.005, 0.01, 0.02, 0.05), "mu": (0.9, 0.8, 0.5), **ALL_FALL}
PAPER_BETA: Grid = {"beta": (0.0, 0.01, 0.05, 0.1, 0.15), "beta_decay": (5e-5,)}
VMC_PLAIN: Grid = {"rate": (0.02, 0.05, 0.1, 0.2), "norm": (0.01, 0.05, 0.25)}
VMC_FAST: Grid = {"rate": (0.005, 0.01, 0.02), "mu": (0.9, 0.8), "norm": (0.01, 0.05, 0.25)}
# What we changed of published settings, for small networks: longer steps that fall sooner.
SMALL: Mapping[str, Any] = {"rate": 0.05, "norm": 0.05, "decay": 1e-3}
WASSERSTEIN = Vmc(metric="wasserstein", mu=0.8, rate=0.01, eta=0, restart=True)
DENSITIES: Mapping[str, Named] = {
    "angd-fr": Named(
        "accelerated natural gradient, Fisher–Rao, projected momentum",
        Vmc(mu=0.8, rate=0.01, restart=True),
        VMC_FAST,
        PAPER_FAST | PAPER_BETA,
    ),
    "spring": Named("SPRING with the longer steps that small networks bear", Spring(**SMALL), VMC_PLAIN, PAPER_PLAIN),
    "spring-published": Named("SPRING: Fisher–Rao, projected momentum, published settings", Spring(), VMC_PLAIN),
    "minsr": Named("minSR with the longer steps that small networks bear", MinSR(**SMALL), VMC_PLAIN, PAPER_PLAIN),
    "angd-w2": Named(
        "accelerated natural gradient, Wasserstein-2, velocities re-fitted", WASSERSTEIN, VMC_FAST, PAPER_FAST
    ),
    "angd-w2p": Named(
        "accelerated natural gradient, Wasserstein-2, momentum in the parameters",
        Vmc(metric="parametric-wasserstein", mu=0.8, rate=0.01, eta=0, restart=True),
        VMC_FAST,
        PAPER_FAST,
    ),
    "angd-w2-kfac": Named(
        "accelerated natural gradient, Wasserstein-2, Kronecker factors",
        WASSERSTEIN.changed({"solver": "kfac"}),
        VMC_FAST,
    ),
    "ngd-w2": Named(
        "natural gradient, Wasserstein-2: the direction of WQMC, by the kernel",
        WQMC(solver="kernel", **SMALL),
        VMC_PLAIN,
        PAPER_PLAIN,
    ),
    "wqmc": Named("Wasserstein quantum Monte Carlo, published settings", WQMC(), VMC_PLAIN),
    "kfac-fr": Named("natural gradient, Fisher–Rao, Kronecker factors", MinSR(solver="kfac", **SMALL), VMC_PLAIN),
    "adam-vmc": Named("Adam on the energy", Vmc(metric="none", rate=2e-3), {"rate": (5e-4, 1e-3, 2e-3, 5e-3)}),
}
EXACT_PLAIN: Grid = {"rate": (0.03, 0.1, 0.3, 1.0), "damping": (1e-4, 1e-3, 1e-2)}
EXACT_FAST: Grid = {"rate": (0.01, 0.03, 0.1, 0.3), "mu": (0.5, 0.8, 0.9), "damping": (1e-4, 1e-3, 1e-2)}
INFERENCE: Mapping[str, Named] = {
    "inference": Named("accelerated natural gradient, Fisher–Rao, exact samples of the model", Inference(), EXACT_FAST),
    "inference-ngd": Named("natural gradient, Fisher–Rao, exact samples", Inference(mu=0, rate=0.2), EXACT_PLAIN),
    "inference-w2": Named(
        "accelerated natural gradient, Wasserstein-2, exact samples", Inference(metric="wasserstein"), EXACT_FAST
    ),
    "inference-w2-ngd": Named(
        "natural gradient, Wasserstein-2, exact samples", Inference(metric="wasserstein", mu=0, rate=0.2), EXACT_PLAIN
    ),
    "inference-w2p": Named(
        "accelerated natural gradient, Wasserstein-2, momentum in the parameters",
        Inference(metric="parametric-wasserstein"),
        EXACT_FAST,
    ),
    "inference-adam": Named("Adam, exact samples", Inference(metric="none", rate=1e-2), {"rate": ADAM["rate"]}),
}
RECIPES: Mapping[str, Named] = {**FIELDS, **DENSITIES, **INFERENCE}


def named(name: str) -> Named:
    """The recipe with a name, or at an address (`file.py:name`, `package.module:name`).

    **Arguments:**

    - `name`: a name of `angd list`, or an address.

    **Returns:** a `Named`; an unknown name raises a sentence with the nearest one.
    """
    if isinstance(name, str) and address.is_address(name):
        found = address.load(name, "recipe", ("recipe",))
        if not isinstance(found() if isinstance(found, type) else found, Recipe):
            raise ValueError(f"{name} is no recipe: it must be a subclass of angd.Recipe, or one that is made.")
        return Named.of(found)
    if name not in RECIPES:
        raise ValueError(unknown("recipe", name, RECIPES))
    return RECIPES[name]
