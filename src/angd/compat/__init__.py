"""`angd` as a guest in other people's frameworks: one module for each, loaded when it is named.

angd.compat.optax         ANGD as a transformation: chains, masks, schedules, flax.nnx.Optimizer
angd.compat.optimistix    ANGD as a solver of least_squares and root_find
angd.compat.netket        ANGD as a driver on NetKet's states, samplers, operators and loggers
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, submodules=["netket", "optax", "optimistix"])
