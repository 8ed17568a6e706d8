"""Physics-informed networks: a residual on a callable field, a box, conditions on its faces.

u = Network(...)                     what is sought
Problem(equation, domain, ...)       what it should satisfy
problem.sample(key, ...)             where it is asked to
"""

from angd.problems.pinn.derivatives import d
from angd.problems.pinn.domains import Box, Data, Face, Faces
from angd.problems.pinn.networks import Mirrored, Network
from angd.problems.pinn.problem import Condition, Problem, observed
from angd.problems.pinn.sampling import Adaptive, Balanced, Fixed, Renewed, Sampler, Sobol, Uniform

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
    "Network",
    "Problem",
    "Renewed",
    "Sampler",
    "Sobol",
    "Uniform",
    "d",
    "observed",
]
