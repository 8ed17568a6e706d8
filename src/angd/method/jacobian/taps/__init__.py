"""Taps: the layers of any model, found by reading its jaxpr.

Write the per-sample function f(params, x) (a network, a PDE residual with its derivatives, log|ψ|) as a jaxpr and walk
it. Wherever a parameter leaf W is contracted with an activation, record the activation a_t and the cotangent g_t of the
output; then, exactly, whatever the framework and however often W is used,

    ∂f/∂W = Σ_t a_t ⊗ g_t        (t runs over electrons, pixels, derivative channels of a residual, ...).

`views` follows a leaf through transposes and reshapes, `contractions` brings each use to one normal form, `walk` reads
the jaxpr, `biases` finds the leaves added to a contraction, `factors` assembles (a, g) per leaf, and `report` tells the
user what had to be done without factors.
"""

from angd.method.jacobian.taps.factors import Group, Leaf, Taps, taps

__all__ = ["Group", "Leaf", "Taps", "taps"]
