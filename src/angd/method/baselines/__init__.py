"""What one would use instead, behind the same `init` and `step`: SGD, Adam, L-BFGS, self-scaled Broyden."""

from angd.method.baselines.base import Baseline, Decayed, FirstOrder, adam, lbfgs, sgd
from angd.method.baselines.broyden import SelfScaledBroyden

__all__ = ["Baseline", "Decayed", "FirstOrder", "SelfScaledBroyden", "adam", "lbfgs", "sgd"]
