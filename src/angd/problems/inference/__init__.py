"""Inference: fit a density to a target that is known up to a constant, or to data, with exact samples in every step.

AffineGaussian, Mixture, RealNVP, SplineFlow     ρ_θ: log_density(params, x) and sample(params, key, n)
ReverseKL(model, log_target)                     variational inference → FisherRao, Wasserstein, ParametricWasserstein
ForwardKL(model, data)                           maximum likelihood → FisherScoring, Adam, L-BFGS
judge                                            how good a fit is, by importance weights
"""

from angd.problems.inference.base import DensityModel
from angd.problems.inference.coupling import AbstractCouplingFlow
from angd.problems.inference.gaussian import AffineGaussian
from angd.problems.inference.judge import Quality, judge
from angd.problems.inference.mixture import Mixture
from angd.problems.inference.problems import ForwardKL, ReverseKL
from angd.problems.inference.realnvp import RealNVP
from angd.problems.inference.spline import SplineFlow

__all__ = [
    "AbstractCouplingFlow",
    "AffineGaussian",
    "DensityModel",
    "ForwardKL",
    "Mixture",
    "Quality",
    "RealNVP",
    "ReverseKL",
    "SplineFlow",
    "judge",
]
