"""The Jacobian O of a per-sample function over a batch, and four ways to hold it.

Row i·m + c of O is ∂_θ f_c(θ, x_i). Metrics and solvers need `O d`, `Oᵀ y`, the kernel `O Oᵀ` and the Gram matrix
`Oᵀ O`, and do not care where these come from:

    Dense        the matrix, when it fits and factors gain nothing
    Factored     activations and cotangents of each layer (`angd.method.jacobian.taps`): kernels without an n × p matrix
    Chunked      rows recomputed a few at a time
    MatrixFree   forward and reverse passes only
    Centred      one of them less its mean row
    Rescaled     one of them in other units of the parameters
    Stacked      several of them, one below the other: the terms of a loss
    Split        one of them on every device of a mesh, with its share of the rows

`jacobian` chooses by shapes.
"""

from angd.method.jacobian.base import AbstractJacobian, Layout
from angd.method.jacobian.build import jacobian
from angd.method.jacobian.centred import Centred, centre
from angd.method.jacobian.check import check_params
from angd.method.jacobian.chunked import Chunked
from angd.method.jacobian.dense import Dense
from angd.method.jacobian.factored import Factored
from angd.method.jacobian.matrix_free import MatrixFree
from angd.method.jacobian.rescaled import Rescaled, rescaled
from angd.method.jacobian.split import Split
from angd.method.jacobian.stacked import Stacked, stack

__all__ = [
    "AbstractJacobian",
    "Centred",
    "Chunked",
    "Dense",
    "Factored",
    "Layout",
    "MatrixFree",
    "Rescaled",
    "Split",
    "Stacked",
    "centre",
    "check_params",
    "jacobian",
    "rescaled",
    "stack",
]
