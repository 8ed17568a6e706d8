"""Metrics: each turns a problem, its samples and the previous step into a sampled system for the direction."""

from angd.method.metrics.base import AbstractMetric, LinearisedStep, Previous, StepContext, StepOutcome
from angd.method.metrics.energy import Energy
from angd.method.metrics.fisher_rao import FisherRao
from angd.method.metrics.fubini_study import FubiniStudy
from angd.method.metrics.ggn import GGN
from angd.method.metrics.refit import AbstractRefit, AffineRefit, KernelRefit
from angd.method.metrics.scoring import FisherScoring
from angd.method.metrics.sobolev import L2, AbstractSobolev, GridHs, PositiveHs
from angd.method.metrics.variation import Hs, L2Pointwise, NegativeHs
from angd.method.metrics.wasserstein import ParametricWasserstein, Wasserstein

__all__ = [
    "GGN",
    "L2",
    "AbstractMetric",
    "AbstractRefit",
    "AbstractSobolev",
    "AffineRefit",
    "Energy",
    "FisherRao",
    "FisherScoring",
    "FubiniStudy",
    "GridHs",
    "Hs",
    "KernelRefit",
    "L2Pointwise",
    "LinearisedStep",
    "NegativeHs",
    "ParametricWasserstein",
    "PositiveHs",
    "Previous",
    "StepContext",
    "StepOutcome",
    "Wasserstein",
]
