"""Everything that can be run by name, with one line each: experiments and optimisers. Imports nothing heavy."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from angd.recipes.base import FirstOrder, GaussNewton, Options, QuasiNewton, Sobolev, Vmc, unknown

Grid = Mapping[str, tuple[Any, ...]]


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


@dataclass(frozen=True)
class Optimiser:
    """A preset: options of a family; `grid` is what a sweep tries, `paper` the grid of the paper."""

    about: str
    options: Options
    grid: Grid = field(default_factory=dict)
    paper: Grid = field(default_factory=dict)


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

# About as many for either, so that two dozen cover both alike.
NGD: Grid = {"rate": (0.01, 0.03, 0.1, 0.3, 1.0), "damping": (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 1e-1)}
ANGD: Grid = {"rate": (0.01, 0.03, 0.1, 0.3), "damping": (1e-3, 1e-2), "mu": (0.8, 0.95), "beta": (0.0, 1.0)}
ADAM: Grid = {"rate": (5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2), "halving": (1000, 3000, 6000, 12000)}
SGD: Grid = {"rate": (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1), "momentum": (0.0, 0.9, 0.99)}
# Section 6.1 of the paper, whose α₀ and β₀ from {0.01, 0.05, 0.1, 0.15} are read as 1 − μ, and as β at h = 0.1; both
# decay. It does not say in which units they are, nor how fast they decay.
PAPER_RATES = (0.001, 0.005, 0.01)
PAPER_DECAY = (0.0, 1e-4, 5e-5)
PAPER_NGD: Grid = {"rate": PAPER_RATES, "weight_decay": PAPER_DECAY}
PAPER_ANGD: Grid = PAPER_NGD | {"mu": (0.99, 0.95, 0.9, 0.85), "beta": (0.1, 0.5, 1.0, 1.5), "decay": (1e-3,)}
PAPER_ADAM: Grid = PAPER_NGD | {"momentum": (0.9, 0.99), "second": (0.99, 0.999)}

SPACES = {"l2": "L² metric", "h1": "H¹ metric", "h2": "H² metric"}
# Derivatives make the metric larger; damping is in its units, and so are the best rates (NGD's were 0.03 to 1 in L², 1
# in H¹ and 10 or more in H²: whoever may not go there is slow).
SIZES = {"l2": 1, "h1": 10, "h2": 100}


def _scaled(grid: Grid, metric: str) -> Grid:
    sized = {"damping", "rate"}
    return {name: tuple(SIZES[metric] * v if name in sized else v for v in values) for name, values in grid.items()}


def _plain(metric: str) -> Optimiser:
    options = Sobolev(metric=metric, rate=0.1 * SIZES[metric], damping=1e-3 * SIZES[metric])
    return Optimiser(f"natural gradient, {SPACES[metric]}", options, _scaled(NGD, metric), PAPER_NGD)


def _accelerated(metric: str) -> Optimiser:
    options = Sobolev(metric=metric, mu=0.8, rate=0.03 * SIZES[metric], damping=1e-3 * SIZES[metric])
    return Optimiser(f"accelerated natural gradient, {SPACES[metric]}", options, _scaled(ANGD, metric), PAPER_ANGD)


FIELDS: Mapping[str, Optimiser] = {
    "energy": Optimiser("energy metric (Gauss–Newton), Levenberg–Marquardt, adaptive points", GaussNewton()),
    "energy-fast": Optimiser(
        "energy on fewer points, for a minute or two", GaussNewton(interior=2000, condition=200, fresh=200)
    ),
    "energy-large": Optimiser(
        "energy for more parameters than points: the kernel's form, fresh adaptive points",
        GaussNewton(interior=1000, condition=125, warm_steps=30, fresh=float("inf"), scaling=0),
    ),
    "energy-trust": Optimiser(
        "energy with a trust region by target ratio: one factorisation, many radii",
        GaussNewton(controller="trust-region"),
    ),
    "energy-projected": Optimiser(
        "energy with projected momentum", GaussNewton(momentum=0.9), {"momentum": (0.5, 0.9, 0.99)}
    ),
    "energy-accelerated": Optimiser(
        "energy with the accelerated flow (heavy ball, transported)",
        GaussNewton(mu=0.5, rate=0.5),
        {"mu": (0.3, 0.5, 0.8), "rate": (0.3, 0.5, 1.0), "restart": (False, True)},
    ),
    **{f"ngd-{metric}": _plain(metric) for metric in SPACES},
    **{f"angd-{metric}": _accelerated(metric) for metric in SPACES},
    "angd-l2-covector": Optimiser(
        "as angd-l2 with the recursion as printed in the paper, for comparison",
        Sobolev(mu=0.8, rate=0.03, transport="covector"),
        ANGD,
        PAPER_ANGD,
    ),
    "adam": Optimiser("Adam with a decaying rate", FirstOrder(kind="adam", rate=1e-2, halving=6000), ADAM, PAPER_ADAM),
    "sgd": Optimiser("gradient descent with momentum", FirstOrder(kind="sgd", rate=1e-3), SGD, PAPER_NGD),
    "lbfgs": Optimiser(
        "L-BFGS on adaptive points that serve 500 steps",
        QuasiNewton(kind="lbfgs"),
        {"keep": (100, 500, 2000), "interior": (1000, 3000), "memory": (20, 50, 100)},
    ),
    "ssbroyden": Optimiser(
        "self-scaled Broyden on adaptive points that serve 500 steps",
        QuasiNewton(kind="ssbroyden"),
        {"keep": (100, 500, 2000), "interior": (1000, 3000)},
    ),
}

# Section 6.3 of the paper: rates of Fisher–Rao and Wasserstein-2, α₀ as 1 − μ.
PAPER_PLAIN: Grid = {"rate": (0.001, 0.005, 0.01, 0.05, 0.1), "decay": (1e-4,)}
PAPER_FAST: Grid = {"rate": (0.001, 0.005, 0.01, 0.02, 0.05), "mu": (0.9, 0.8, 0.5), "decay": (1e-4,)}
PAPER_BETA: Grid = {"beta": (0.0, 0.01, 0.05, 0.1, 0.15)}
VMC_PLAIN: Grid = {"rate": (0.02, 0.05, 0.1, 0.2), "norm": (0.01, 0.05, 0.25)}
VMC_FAST: Grid = {"rate": (0.005, 0.01, 0.02), "mu": (0.9, 0.8), "norm": (0.01, 0.05, 0.25)}
DENSITIES: Mapping[str, Optimiser] = {
    "angd-fr": Optimiser(
        "accelerated natural gradient, Fisher–Rao, projected momentum",
        Vmc(mu=0.8, rate=0.01, restart=True),
        VMC_FAST,
        PAPER_FAST | PAPER_BETA,
    ),
    "spring": Optimiser(
        "SPRING: natural gradient, Fisher–Rao, projected momentum", Vmc(rate=0.05), VMC_PLAIN, PAPER_PLAIN
    ),
    "minsr": Optimiser("minSR: natural gradient, Fisher–Rao", Vmc(rate=0.05, eta=0), VMC_PLAIN, PAPER_PLAIN),
    "angd-w2": Optimiser(
        "accelerated natural gradient, Wasserstein-2, velocities re-fitted",
        Vmc(metric="wasserstein", mu=0.8, rate=0.01, eta=0, restart=True),
        VMC_FAST,
        PAPER_FAST,
    ),
    "angd-w2p": Optimiser(
        "accelerated natural gradient, Wasserstein-2, momentum in the parameters",
        Vmc(metric="parametric-wasserstein", mu=0.8, rate=0.01, eta=0, restart=True),
        VMC_FAST,
        PAPER_FAST,
    ),
    "angd-w2-kfac": Optimiser(
        "accelerated natural gradient, Wasserstein-2, Kronecker factors",
        Vmc(metric="wasserstein", mu=0.8, rate=0.01, eta=0, restart=True, solver="kfac"),
        VMC_FAST,
    ),
    "ngd-w2": Optimiser(
        "natural gradient, Wasserstein-2: the direction of Wasserstein quantum Monte Carlo",
        Vmc(metric="wasserstein", rate=0.05, eta=0),
        VMC_PLAIN,
        PAPER_PLAIN,
    ),
    "kfac-fr": Optimiser(
        "natural gradient, Fisher–Rao, Kronecker factors", Vmc(rate=0.05, eta=0, solver="kfac"), VMC_PLAIN
    ),
    "adam-vmc": Optimiser("Adam on the energy", Vmc(metric="none", rate=2e-3), {"rate": (5e-4, 1e-3, 2e-3, 5e-3)}),
}
OPTIMISERS: Mapping[str, Optimiser] = {**FIELDS, **DENSITIES}

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


def preset(experiment_name: str, optimiser: str | None, changes: Mapping[str, Any]) -> tuple[str, Options]:
    """The optimiser's name and its options for an experiment, with a person's changes."""
    chosen = experiment(experiment_name)
    name = optimiser or chosen.best
    if name not in OPTIMISERS:
        raise ValueError(unknown("optimiser", name, OPTIMISERS))
    if (name in DENSITIES) != (chosen.molecule is not None):
        fitting = DENSITIES if chosen.molecule else FIELDS
        raise ValueError(f"{name} is not for {experiment_name}: take one of {', '.join(fitting)}.")
    options, changes = OPTIMISERS[name].options, dict(changes)
    options = options.changed(name, _fitting(chosen, options))
    if "metric" in changes and not isinstance(options, Vmc):
        name, options = _with_metric(name, options, changes.pop("metric"))
    return name, options.changed(name, changes)


def _fitting(chosen: Experiment, options: Options) -> dict[str, Any]:
    """The experiment's own options, for its best method's family, where the preset has nothing to say."""
    if type(options) is not type(OPTIMISERS[chosen.best].options):
        return {}
    usual = type(options)()
    return {k: v for k, v in chosen.options.items() if getattr(options, k) == getattr(usual, k)}


def _with_metric(name: str, options: Options, metric: str) -> tuple[str, Options]:
    """The same kind of method in another metric."""
    if metric not in METRICS:
        raise ValueError(unknown("metric", metric, METRICS))
    if isinstance(options, Sobolev) and metric in SIZES:
        size = SIZES[metric] / SIZES[options.metric]
        return name, replace(options, metric=metric, rate=options.rate * size, damping=options.damping * size)
    if isinstance(options, GaussNewton) and metric == "energy":
        return name, options
    if isinstance(options, GaussNewton):
        raise ValueError(
            f"{name} lives in the energy metric; for {metric} take --optimizer ngd-{metric} or angd-{metric}."
        )
    if isinstance(options, Sobolev):
        raise ValueError(f"{name} lives in a Sobolev metric; for energy take --optimizer energy or energy-accelerated.")
    raise ValueError(f"{name} has no metric; take an optimiser whose name begins with energy, ngd or angd.")
