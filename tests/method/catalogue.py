"""One registry, every exam: each metric with a problem it fits, each solver, controller and transport."""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import angd
from angd import Samples

N = 8


def draw_params(dtype: Any = float) -> Any:
    """A small network whose parameters are a nested pytree."""
    rng = np.random.default_rng(0)

    def draw(*shape):
        return jnp.asarray(rng.normal(size=shape) / np.sqrt(shape[0]), dtype)

    return {"layers": [{"W": draw(2, 4), "b": (draw(4),)}], "out": draw(4)}


def network(params, x):
    (layer,) = params["layers"]
    return jnp.tanh(x @ layer["W"] + layer["b"][0]) @ params["out"]


class FieldProblem(eqx.Module):
    """Regression to sin x₀ · x₁, told in every way a metric may ask for it."""

    def field(self, params, x):
        return network(params, x)

    def variation(self, params, x):
        return network(params, x) - jnp.sin(x[0]) * x[1]

    def residual(self, params, x):
        return self.variation(params, x)

    def cost(self, z, x):
        return jnp.sum(jnp.cosh(z - jnp.sin(x[0]) * x[1]))

    def loss(self, params, samples):
        return 0.5 * samples.mean(jax.vmap(self.variation, (None, 0))(params, samples.x) ** 2)


class DensityProblem(eqx.Module):
    """ρ = exp(network − |x|²/2), KL to a standard normal up to a constant."""

    def log_density(self, params, x):
        return network(params, x) - jnp.sum(x**2) / 2

    def variation(self, params, x):
        return network(params, x)


class LikelihoodProblem(eqx.Module):
    """A normalised density: a normal one whose mean is the network's output at a fixed place."""

    def log_density(self, params, x):
        return -jnp.sum((x - network(params, jnp.array([0.3, -0.5]))) ** 2) / 2


class AmplitudeProblem(eqx.Module):
    """ψ = exp((1 + i) network / 2 − |x|²/4), with a variation that has a phase."""

    def log_amplitude(self, params, x):
        return (0.5 + 0.5j) * network(params, x) - jnp.sum(x**2) / 4

    def variation(self, params, x):
        return (1 + 0.3j) * network(params, x)


@dataclass(frozen=True)
class Case:
    """A metric, its problem, and whether the unaccelerated direction must descend."""

    metric: Any
    problem: Any
    descends: bool = True
    of_data: bool = False

    def batch(self, seed: int = 0, dtype: Any = float) -> Any:
        """Samples as the metric takes them."""
        samples = batch(seed, dtype)
        return {"model": samples, "data": batch(seed + 100, dtype)} if self.of_data else samples


METRICS = {
    "L2": Case(angd.L2(), FieldProblem()),
    "L2 by rows": Case(angd.L2Pointwise(), FieldProblem()),
    "H1": Case(angd.Hs(1), FieldProblem()),
    "H2": Case(angd.Hs(2), FieldProblem()),
    "H^-1": Case(angd.Hs(-1), FieldProblem(), descends=False),
    "H^-1 on a grid": Case(angd.GridHs(angd.SobolevManifold(-1, N)), FieldProblem()),
    "Fisher-Rao": Case(angd.FisherRao(), DensityProblem()),
    "implicit Fisher-Rao": Case(angd.FisherRao(limit=None, implicit=True), DensityProblem()),
    "Fisher scoring": Case(angd.FisherScoring(), LikelihoodProblem(), of_data=True),
    "Fubini-Study": Case(angd.FubiniStudy(), AmplitudeProblem()),
    "Wasserstein": Case(angd.Wasserstein(), DensityProblem(), descends=False),
    "parametric Wasserstein": Case(angd.ParametricWasserstein(), DensityProblem(), descends=False),
    "Energy": Case(angd.Energy(), FieldProblem()),
    "GGN": Case(angd.GGN(), FieldProblem()),
}
SOLVERS = {
    "Normal": angd.Normal(1e-2),
    "Kernel": angd.Kernel(1e-2),
    "KFAC": angd.KFAC(1e-2),
    "KFAC reduce": angd.KFAC(1e-2, shared="reduce"),
    "Iterative": angd.Iterative(1e-2, rtol=1e-10),
    "Nystrom": angd.Iterative(1e-2, rtol=1e-10, rank=4),
    "ProjectedMomentum": angd.ProjectedMomentum(0.9, angd.Normal(1e-2)),
    "Scaled": angd.Scaled(angd.Normal(1e-2)),
    "WithFallback": angd.WithFallback(angd.Normal(1e-2), angd.Normal(1.0)),
}
CONTROLLERS = {
    "Constant": angd.Constant(),
    "StepNorm": angd.StepNorm(1e-3),
    "StepNorm in the metric": angd.StepNorm(1e-3, in_metric=True),
    "Restart": angd.Restart(),
    "Restart above": angd.Restart(above=1.0),
    "LineSearch": angd.LineSearch(points=4),
    "LevenbergMarquardt": angd.LevenbergMarquardt(),
    "TrustRegion": angd.TrustRegion(radii=4),
    "in turn": angd.in_turn([angd.Restart(), angd.LevenbergMarquardt(), angd.StepNorm(1e-2)]),
}
TRANSPORTS = {"JVP": angd.JVP(), "CurrentJVP": angd.CurrentJVP(), "Printed": angd.Printed()}
DENSITY_CONTROLLERS = ("Constant", "StepNorm", "StepNorm in the metric", "Restart", "Restart above")


def legal(metric: str, solver: str = "Normal", controller: str = "Constant", transport: str = "JVP") -> bool:
    """May these be used together?"""
    case = METRICS[metric]
    rows = case.metric.rows or not SOLVERS[solver].needs_rows
    losses = hasattr(case.problem, "loss") or case.of_data or controller in DENSITY_CONTROLLERS
    return rows and losses and (case.metric.covectors or transport != "Printed")


def batch(seed: int = 0, dtype: Any = float) -> Samples:
    return Samples(jnp.asarray(np.random.default_rng(seed).normal(size=(N, 2)), dtype))


def optimiser(metric: str, solver: str = "Normal", controller: str = "Constant", transport: str = "JVP", beta=0.0):
    flow = angd.ARGFlow(h=0.1, alpha=2.0, beta=beta)
    return angd.ANGD(
        flow, METRICS[metric].metric, SOLVERS[solver], CONTROLLERS[controller], transport=TRANSPORTS[transport]
    )
