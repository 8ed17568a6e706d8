"""`ANGD` as an optax transformation, for chains, masks, injected hyper-parameters and `flax.nnx.Optimizer`.

    transformation = angd.compat.optax.angd(opt, problem, samples)
    state = transformation.init(params)
    updates, state = transformation.update(grads, state, params, samples=batch, value=loss)

What `grads` are for depends on the metric:

    L2, Hs(s ≥ 0), GridHs    they drive the step: ∂_θ L of whatever loss, and of the problem only `field` is asked
    all others               they are not looked at: residuals, costs and variations are the problem's, at `samples`

The step is that of `ANGD`. It sees a view of the problem: with the parameters that a mask took out put back, and with a
loss of the given value and gradient.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import lax
from jaxtyping import Array, Float, PyTree

from angd.compat.blank import blank_info
from angd.method.jacobian import check_params
from angd.method.metrics import AbstractSobolev, Wasserstein
from angd.method.protocols import GivesVariations, TermsProblem
from angd.method.samples import check_samples
from angd.method.step import ANGD, Info, State
from angd.tree import zeros_like

__all__ = ["ANGDState", "angd"]

Loss = Callable[[PyTree, Any], Array]
Join = Callable[[PyTree], PyTree]
# Methods of a problem whose first argument are parameters, and no other is.
OF_PARAMS = (
    "check_start",
    "field",
    "log_amplitude",
    "log_density",
    "loss",
    "residual",
    "variation",
    "variation_gradients",
)


class ANGDState(NamedTuple):
    """What survives between two updates, a pytree of arrays.

    **Attributes:**

    - `step`: the `angd.State`.
    - `info`: the `angd.Info` of the last update: damping, norm, what became of the step.
    """

    step: State
    info: Info


def angd(opt: Any, problem: object, samples: Any, whole: PyTree = None) -> optax.GradientTransformationExtraArgs:
    """ANGD as an optax transformation; its updates are θ_new − θ, ready for `optax.apply_updates`.

    `update(grads, state, params, samples=…)` needs the batch of the step, and may be given

    - `value`: L at `params`. With it a loss that is not finite refuses the step, and `state.info.loss` is known.
    - `value_fn`: L as a function of the parameters, for controllers that compare losses; else the problem's `loss`.
    - `whole`: all parameters, where `optax.masked` or `optax.partition` have taken some out.

    `value` and `value_fn` belong to `grads`: a metric that does not look at these takes the loss from the problem.

    **Arguments:**

    - `opt`: an `ANGD`; a metric that moves its samples (`Wasserstein`) is refused.
    - `problem`: with the methods that the metric asks for, of which `loss` is not needed where `grads` drive.
    - `samples`: a batch like those of the steps, for its shapes.
    - `whole`: all parameters, where some are masked, for their shapes.

    **Returns:** an `optax.GradientTransformationExtraArgs`.

    **Example:** `optax.chain(optax.clip_by_global_norm(1.0), angd.compat.optax.angd(opt, problem, samples))`
    """
    _check_choices(opt)
    check_samples(samples, "compat.optax")

    def init(params: PyTree) -> ANGDState:
        check_params(params)
        view = _view(problem, _join(params, whole), _leaning(_silent, zeros_like(params)) if _driven(opt) else None)
        state = opt.init(view, params, samples)
        return ANGDState(state, blank_info(opt, view, params, samples, state))

    def update(
        grads: PyTree,
        state: ANGDState,
        params: PyTree = None,
        *,
        samples: Any = None,
        value: Any = None,
        value_fn: Callable[[PyTree], Any] | None = None,
        whole: PyTree = None,
        **others: Any,
    ) -> tuple[PyTree, ANGDState]:
        del others
        _check_update(grads, params, samples)
        loss = _leaning(_loss(opt, problem, value, value_fn), grads) if _driven(opt) else None
        view = _view(problem, _join(params, whole), loss)
        after, _, step, info = opt.step(view, params, samples, state.step)
        if _driven(opt) and value is None and value_fn is None:
            info = eqx.tree_at(lambda info: info.loss, info, jnp.full_like(info.loss, jnp.nan))
        return jax.tree.map(jnp.subtract, after, params), ANGDState(step, info)

    both: tuple[Any, Any] = (init, update)  # optax calls the arguments of `init` and `update` otherwise
    return optax.GradientTransformationExtraArgs(*both)


def _driven(opt: ANGD) -> bool:
    """Does the metric know nothing of the loss but its gradient?"""
    return isinstance(opt.metric, AbstractSobolev)


def _silent(params: PyTree, samples: Any) -> Float[Array, ""]:
    """In place of a loss that nobody gave."""
    return jnp.zeros(())


def _loss(opt: ANGD, problem: object, value: Any, value_fn: Callable[[PyTree], Any] | None) -> Loss:
    """L at the present parameters or, if the controller compares losses, at any."""
    if value_fn is not None and (opt.controller.compares_losses or value is None):
        return lambda params, samples: jnp.asarray(value_fn(params), float)
    if opt.controller.compares_losses:
        raise ValueError(
            f"compat.optax: {type(opt.controller).__name__} compares losses: call update(..., value_fn=loss) with L as "
            "a function of the parameters."
        )
    return _silent if value is None else lambda params, samples: jnp.asarray(value, float)


def _leaning(loss: Loss, grads: PyTree) -> Loss:
    """A loss with the same values, whose gradient is the given one."""

    def leaning(params: PyTree, samples: Any) -> Float[Array, ""]:
        moves = jax.tree.map(lambda leaf: leaf - lax.stop_gradient(leaf), params)
        return lax.stop_gradient(loss(params, samples)) + optax.tree.vdot(grads, moves)

    return leaning


class _View:
    """A problem as the metric sees it: some methods replaced, the rest as they are."""

    def __init__(self, problem: object, methods: dict[str, Any]):
        self.__dict__ |= {"_problem": problem} | methods

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_problem"], name)


def _view(problem: object, join: Join | None, loss: Loss | None) -> object:
    """The problem as a function of the parameters that are trained, with another loss if there is one."""
    given = {} if loss is None else {"loss": loss}
    if join is None and not given:
        return problem
    # Its name is what messages say.
    kind = type(type(problem).__name__, (_View,), {})
    return kind(problem, _methods(problem, join or (lambda params: params)) | given)


def _methods(problem: object, join: Join) -> dict[str, Any]:
    """Every method that is a function of parameters, as one of those that are trained."""

    def through(method: Callable[..., Any]) -> Callable[..., Any]:
        return lambda params, *rest: method(join(params), *rest)

    found: dict[str, Any] = {name: through(getattr(problem, name)) for name in OF_PARAMS if hasattr(problem, name)}
    if isinstance(problem, TermsProblem):
        found["residuals"] = {name: through(residual) for name, residual in problem.residuals.items()}
    if isinstance(problem, GivesVariations):
        found["variations"] = lambda params, samples, old=None: problem.variations(
            join(params), samples, None if old is None else join(old)
        )
    return found


def _masked(node: Any) -> bool:
    return isinstance(node, optax.MaskedNode)


def _join(params: PyTree, whole: PyTree) -> Join | None:
    """How parameters that a mask has taken out are put back; None if there are none."""
    if not any(map(_masked, jax.tree.leaves(params, is_leaf=_masked))):
        return None
    if whole is None:
        raise ValueError(
            "compat.optax: some parameters are masked and the model needs them all: give whole=params, both to "
            "angd(...) and to update(...)."
        )

    def join(part: PyTree) -> PyTree:
        return jax.tree.map(lambda mine, all_: all_ if _masked(mine) else mine, part, whole, is_leaf=_masked)

    try:
        jax.eval_shape(join, params)
    except ValueError:
        raise ValueError(
            "compat.optax: whole must be the parameters as they are before masking, but its structure is another one."
        ) from None
    return join


def _check_choices(opt: Any) -> None:
    if not isinstance(opt, ANGD):
        raise ValueError(f"compat.optax: the first argument must be an angd.ANGD, got {type(opt).__name__}.")
    if isinstance(opt.metric, Wasserstein):
        raise ValueError(
            "compat.optax: Wasserstein moves its samples, for which optax has no place: use ParametricWasserstein, or "
            "call opt.step yourself."
        )


def _check_update(grads: PyTree, params: PyTree, samples: Any) -> None:
    if params is None:
        raise ValueError("compat.optax: the step depends on where it starts: call update(grads, state, params, ...).")
    if samples is None:
        raise ValueError("compat.optax: samples are missing: call update(grads, state, params, samples=batch).")
    if jax.tree.structure(grads) != jax.tree.structure(params):
        raise ValueError("compat.optax: grads and params have different structures: differentiate in params.")
