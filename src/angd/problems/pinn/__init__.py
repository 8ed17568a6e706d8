"""Physics-informed networks: a residual on a callable field, a box, conditions on its faces.

Network(widths)                                     what is sought
Problem(network, domain, equation, conditions)      what it should satisfy
Problem(..., unknowns={"nu": Coefficient(0.1)})     an inverse problem: equation(u, z, c)
Uniform(interior=..., ...)(key, problem, params)    where it is asked to
"""

from angd.problems.estimate import Estimate
from angd.problems.pinn.causal import Causal
from angd.problems.pinn.derivatives import d
from angd.problems.pinn.domains import Box, Data, Face, Faces
from angd.problems.pinn.estimates import estimates
from angd.problems.pinn.integrals import Integral, Nodes
from angd.problems.pinn.laplacian import laplacian
from angd.problems.pinn.networks import Mirrored, Model, Network, Periodic
from angd.problems.pinn.problem import Condition, Problem, observed
from angd.problems.pinn.regions import Boundary, Region
from angd.problems.pinn.sampling import Adaptive, Balanced, Fixed, Renewed, Rolling, Sampler, Sobol, Uniform
from angd.problems.pinn.shapes import Ball, Polygon, SignedDistance
from angd.problems.pinn.unknowns import Coefficient

__all__ = [
    "Adaptive",
    "Balanced",
    "Ball",
    "Boundary",
    "Box",
    "Causal",
    "Coefficient",
    "Condition",
    "Data",
    "Estimate",
    "Face",
    "Faces",
    "Fixed",
    "Integral",
    "Mirrored",
    "Model",
    "Network",
    "Nodes",
    "Periodic",
    "Polygon",
    "Problem",
    "Region",
    "Renewed",
    "Rolling",
    "Sampler",
    "SignedDistance",
    "Sobol",
    "Uniform",
    "d",
    "estimates",
    "laplacian",
    "observed",
]
