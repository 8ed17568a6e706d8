"""Controllers: what may happen to a step before it is taken. Each reports in `Info` what it did."""

from angd.method.controllers.base import AbstractController, Chain, Constant, Proposal, Trial, chain
from angd.method.controllers.safety import Restart, StepNorm
from angd.method.controllers.search import LevenbergMarquardt, LineSearch, TrustRegion

__all__ = [
    "AbstractController",
    "Chain",
    "Constant",
    "LevenbergMarquardt",
    "LineSearch",
    "Proposal",
    "Restart",
    "StepNorm",
    "Trial",
    "TrustRegion",
    "chain",
]
