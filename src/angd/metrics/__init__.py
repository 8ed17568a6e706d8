"""Metrics: each turns a problem, its samples and the previous step into a sampled system for the direction."""

from angd.metrics.base import AbstractMetric, Memory, Setting
from angd.metrics.energy import Energy
from angd.metrics.fisher_rao import FisherRao
from angd.metrics.sobolev import L2, AbstractSobolev, Hs

__all__ = ["L2", "AbstractMetric", "AbstractSobolev", "Energy", "FisherRao", "Hs", "Memory", "Setting"]
