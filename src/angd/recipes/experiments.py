"""What can be run by name, with one line each, and the options that suit it. Imports nothing heavy."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from angd.recipes.base import Recipe, unknown
from angd.recipes.choice import check_fit
from angd.recipes.named import SIZES, named
from angd.recipes.pinn import GaussNewton, Sobolev
from angd.recipes.vmc import Vmc


@dataclass(frozen=True)
class Experiment:
    """What is solved; `best` is the optimiser that is taken when none is named, `large` for the paper's network.

    `options` are those that suit the best one's family here; `cpu_seconds` is how long a run takes when nobody says.
    """

    about: str
    best: str = "energy"
    large: str = "energy-large"
    options: Mapping[str, Any] = field(default_factory=dict)
    cpu_seconds: float = 600.0
    molecule: str | None = None


EXPERIMENTS: Mapping[str, Experiment] = {
    "burgers": Experiment("Burgers from −sin(πx): a shock at rest in the middle"),
    "burgers-sin": Experiment("Burgers from sin(πx): a rarefaction, and layers at the walls"),
    "burgers-cos": Experiment(
        "Burgers from 1 − cos(2πx): a moving shock that meets the wall", options={"interior": 4000}
    ),
    "euler": Experiment(
        "Euler's equations: two rarefactions that leave almost a vacuum (Toro's test 123)",
        options={"interior": 1000, "condition": 200},
    ),
    "heat": Experiment(
        "the heat equation from sin(πx) on a tiny network: seconds, to try things out",
        options={"interior": 200, "condition": 40, "fresh": 20, "keep": 5},
        cpu_seconds=20.0,
    ),
    **{
        f"vmc-{name.lower()}": Experiment(
            f"ground state of {about}", "angd-fr", "angd-fr", options, seconds, molecule=name
        )
        for name, about, seconds, options in (
            ("H", "hydrogen: seconds, to try things out", 30.0, {}),
            ("He", "helium", 120.0, {}),
            ("LiH", "lithium hydride", 600.0, {}),
            ("Be", "the beryllium atom", 1200.0, {}),
            ("Li2", "the lithium dimer at 5.051 a₀", 3600.0, {}),
            ("H10", "a chain of ten hydrogen atoms, 1.8 a₀ apart", 3600.0, {}),
            # Its local energies vary most: with the steps that suit the others its energy falls, then rises again.
            ("N2", "the nitrogen molecule at 2.068 a₀", 7200.0, {"norm": 0.01, "decay": 2e-3, "pretrain": 2000}),
        )
    },
}

METRICS: Mapping[str, str] = {
    "energy": "the residual's own metric, Gauss–Newton; most accurate for differential equations",
    "l2": "functions by their values",
    "h1": "functions by values and first derivatives",
    "h2": "functions by values, first and second derivatives",
    "fisher-rao": "probability densities by relative changes",
    "wasserstein": "probability densities by how far their mass moves",
    "parametric-wasserstein": "the same, with the momentum in the parameters",
}
SOLVERS: Mapping[str, str] = {
    "kernel": "n × n kernel, for densities",
    "normal": "p × p normal equations, or the n × n kernel where there are more parameters than rows",
    "iterative": "conjugate gradients on products alone, for what does not fit",
    "kfac": "Kronecker factors, layer by layer",
}


def experiment(name: str) -> Experiment:
    """The experiment, or a sentence with the nearest name."""
    if name not in EXPERIMENTS:
        raise ValueError(unknown("experiment", name, EXPERIMENTS))
    return EXPERIMENTS[name]


def preset(experiment_name: str, recipe_name: str | None, changes: Mapping[str, Any]) -> tuple[str, Recipe]:
    """A recipe's name and the recipe for an experiment, with a person's changes."""
    chosen = experiment(experiment_name)
    name = recipe_name or chosen.best
    recipe, changes = named(name).recipe, dict(changes)
    check_fit(name, chosen.molecule is not None, experiment_name)
    recipe = recipe.changed(_fitting(chosen, recipe), name)
    if "metric" in changes and not isinstance(recipe, Vmc):
        recipe = _with_metric(name, recipe, changes.pop("metric"))
    return name, recipe.changed(changes, name)


def _fitting(chosen: Experiment, recipe: Recipe) -> dict[str, Any]:
    """The experiment's own options, for its best method's family, where the recipe has nothing to say."""
    family = type(named(chosen.best).recipe)
    if not isinstance(recipe, family):
        return {}
    usual = {spec.name: spec.default for spec in fields(family)}
    return {k: v for k, v in chosen.options.items() if getattr(recipe, k) == usual[k]}


def _with_metric(name: str, recipe: Recipe, metric: str) -> Recipe:
    """The same kind of method in another metric."""
    if metric not in METRICS:
        raise ValueError(unknown("metric", metric, METRICS))
    if type(recipe) is Sobolev and metric in SIZES:
        size = SIZES[metric] / SIZES[recipe.metric]
        return recipe.changed({"metric": metric, "rate": recipe.rate * size, "damping": recipe.damping * size}, name)
    if isinstance(recipe, GaussNewton) and metric == "energy":
        return recipe
    if isinstance(recipe, GaussNewton):
        raise ValueError(
            f"{name} lives in the energy metric; for {metric} take --optimizer ngd-{metric} or angd-{metric}."
        )
    if isinstance(recipe, Sobolev):
        raise ValueError(f"{name} lives in a Sobolev metric; for energy take --optimizer energy or energy-accelerated.")
    raise ValueError(f"{name} has no metric; take an optimiser whose name begins with energy, ngd or angd.")
