"""Physics-informed networks: a residual on a callable field, a box, conditions on its faces.

Network(widths)                                     what is sought
Problem(network, domain, equation, conditions)      what it should satisfy
Uniform(interior=..., ...)(key, problem, params)    where it is asked to
"""

from angd.problems.pinn.derivatives import d
from angd.problems.pinn.domains import Box, Data, Face, Faces
from angd.problems.pinn.networks import Mirrored, Model, Network, Periodic
from angd.problems.pinn.problem import Condition, Problem, observed
from angd.problems.pinn.sampling import Adaptive, Balanced, Fixed, Renewed, Rolling, Sampler, Sobol, Uniform

__all__ = [
    "Adaptive",
    "Balanced",
    "Box",
    "Condition",
    "Data",
    "Face",
    "Faces",
    "Fixed",
    "Mirrored",
    "Model",
    "Network",
    "Periodic",
    "Problem",
    "Renewed",
    "Rolling",
    "Sampler",
    "Sobol",
    "Uniform",
    "d",
    "observed",
]
