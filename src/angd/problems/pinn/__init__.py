"""Physics-informed networks: a residual on a callable field, a box, conditions on its faces.

u = Network(...)                     what is sought
Problem(equation, domain, ...)       what it should satisfy
problem.sample(key, ...)             where it is asked to
"""

from angd.problems.pinn.derivatives import d
from angd.problems.pinn.domains import Box, Face
from angd.problems.pinn.networks import Network
from angd.problems.pinn.problem import Condition, Problem
from angd.problems.pinn.sampling import Adaptive, Fixed, Sampler, Sobol, Uniform

__all__ = ["Adaptive", "Box", "Condition", "Face", "Fixed", "Network", "Problem", "Sampler", "Sobol", "Uniform", "d"]
