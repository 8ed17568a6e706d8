"""Every way a computation can end, each with its remedy in words.

Misuse that is visible before any work starts raises `ValueError` with one sentence. What can only be seen while numbers
are flowing is a member of `RESULTS`, carried by the returned object: compare with `==`, read it with `RESULTS[result]`.
"""

import equinox as eqx


class RESULTS(eqx.Enumeration):
    """How a run ended; the text of each member says what to do about it."""

    successful = "finished without incident"
    left_manifold = (
        "the flow left the manifold: raise alpha (Fisher–Rao needs about alpha² ≥ 2 gamma max[f] to keep a density "
        "positive) or stop earlier; on Fisher–Rao, form='covariant' follows the flow across the boundary"
    )
    crossed_boundary = (
        "the covariant form carried the flow across the boundary of the manifold: what follows the reported time is a "
        "flow on the extended manifold only"
    )
    too_many_steps = "the integrator used up its steps: raise max_steps, loosen rtol, or integrate over a shorter time"
    not_finite = "a value became infinite or not-a-number: start from a smoother point, or check the functional there"
    loss_not_finite = (
        "the loss is infinite or not-a-number at the present parameters, so the step was refused: check the data and "
        "the samples, or start again from an earlier point with a smaller step"
    )
    direction_not_finite = (
        "the force or the momentum is not finite, so the step was refused and the momentum restarted: look for samples "
        "where the problem is not finite, clip them, or lower h"
    )
    singular = (
        "the linear system could not be solved, so the step was refused and the momentum restarted: raise damping, "
        "remove duplicated samples, or use WithFallback"
    )
    step_not_finite = (
        "the step would have made a parameter or a sample infinite, or its length is, so it was refused and the "
        "momentum restarted: look for samples where the problem is huge, lower h or gamma, or raise damping"
    )
    coefficients_out_of_range = (
        "a coefficient of the flow left its range at this step (h must be positive, alpha, beta and gamma not "
        "negative, h * alpha at most 1), so the step was refused: check the schedules"
    )
    no_direction = (
        "the direction is zero although the force is not, so nothing moved: check that the model depends on its "
        "parameters at the samples, and that not all weights are zero"
    )
    rejected = (
        "no step lowered the loss, so the parameters stay: if this lasts, draw new samples, loosen the controller, or "
        "stop, because nothing is left to gain here"
    )
    not_converged = (
        "the iterative solver stopped before its tolerance and the step was taken as it was: raise max_steps, rank or "
        "damping, or loosen rtol"
    )
    restarted = "the momentum was dropped and the step taken from rest: if this happens often, lower mu or h"
