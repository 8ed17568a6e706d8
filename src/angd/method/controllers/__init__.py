"""Controllers: what may happen to a step before it is taken. Each reports in `Info` what it did."""

from angd.method.controllers.base import AbstractController, Constant, InTurn, Proposal, Trial, in_turn
from angd.method.controllers.safety import Restart, StepNorm
from angd.method.controllers.search import LevenbergMarquardt, LineSearch, TrustRegion

__all__ = [
    "AbstractController",
    "Constant",
    "InTurn",
    "LevenbergMarquardt",
    "LineSearch",
    "Proposal",
    "Restart",
    "StepNorm",
    "Trial",
    "TrustRegion",
    "in_turn",
]
