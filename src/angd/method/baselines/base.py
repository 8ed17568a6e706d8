"""Any optax transformation behind `init` and `step`: SGD, Adam, L-BFGS."""

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, PyTree

from angd.method.jacobian import check_params
from angd.method.metrics.pointwise import over, variations
from angd.method.protocols import DensityProblem, GivesLossOf, LossProblem
from angd.method.samples import check_start
from angd.method.step import Info, check_state
from angd.results import RESULTS
from angd.tree import all_finite, dot, norm, where


class AbstractBaseline(eqx.Module):
    """An optax transformation, for problems with a loss or a density; a step that is not finite is refused."""

    @abc.abstractmethod
    def rule(self) -> optax.GradientTransformationExtraArgs:
        """The transformation."""

    def init(self, problem: object, params: PyTree, samples: Any) -> PyTree:
        """The transformation's state.

        **Arguments:**

        - `problem`: with `loss(params, samples)`, or with `log_density` and `variation`.
        - `params`: a pytree of real floating-point arrays.
        - `samples`: what the problem's `loss` takes; `Samples` for a density.

        **Returns:** a state for `step`.
        """
        check_params(params)
        check_start(problem, params, samples)
        return self.rule().init(params)

    def step(self, problem: object, params: PyTree, samples: Any, state: PyTree) -> tuple[PyTree, Any, PyTree, Info]:
        """One step, pure: `eqx.filter_jit(opt.step)`.

        **Arguments:**

        - `problem`: with `loss(params, samples)`, or with `log_density` and `variation`.
        - `params`: the present parameters.
        - `samples`: the batch of this step.
        - `state`: what `init`, or the step before, returned.

        **Returns:** new parameters, the samples (bad ones replaced), the new state and an `Info`.
        """

        def loss(params: PyTree) -> Any:
            return problem.loss(params, samples) if isinstance(problem, LossProblem) else jnp.nan

        check_state(state, jax.eval_shape(self.rule().init, params), type(self).__name__)
        value, gradient, samples = slope(problem, params, samples)
        update, after = self.rule().update(gradient, state, params, value=value, grad=gradient, value_fn=loss)
        moved = optax.apply_updates(params, update)
        ok = all_finite(moved) & jnp.isfinite(value)
        params, state = where(ok, (moved, after), (params, state))
        return params, samples, state, report(value, gradient, update, ok)


def slope(problem: object, params: PyTree, samples: Any) -> tuple[Array, PyTree, Any]:
    """L and ∂_θ L: of a `loss`, or for densities E[(f − E f) ∂_θ log ρ] with f = δL/δρ at the samples; and the samples,
    bad ones replaced."""
    if isinstance(problem, LossProblem):
        return *jax.value_and_grad(problem.loss)(params, samples), samples
    if not isinstance(problem, DensityProblem):
        raise ValueError(
            f"A baseline needs loss(params, samples), or log_density and variation, of the problem, but "
            f"{type(problem).__name__} has neither."
        )
    fit, f, _ = variations(problem, params, samples)
    force = fit.centre(f)

    def weighed(params: PyTree) -> Array:
        return fit.mean(force * over(problem.log_density, params, fit.x))

    value = problem.loss_of(f, fit) if isinstance(problem, GivesLossOf) else fit.mean(f)
    return value, jax.grad(weighed)(params), fit.weighed_as(samples)


class Baseline(AbstractBaseline):
    """Any optax transformation behind `init` and `step`; `adam`, `sgd` and `lbfgs` make the usual ones.

    **Arguments:**

    - `transformation`: of optax, with extra arguments:
      `optax.with_extra_args_support(optax.lion(1e-3))`.
    """

    transformation: optax.GradientTransformationExtraArgs

    def rule(self) -> optax.GradientTransformationExtraArgs:
        return self.transformation


class FirstOrder(AbstractBaseline):
    """Adam, or gradient descent with momentum, with a rate that halves; all numbers may be swept at one compile.

    **Arguments:**

    - `rate`: learning rate at the start; 1e-3 to 1e-2 for Adam.
    - `halving`: steps in which the rate halves, infinite for never.
    - `momentum`: β₁ of Adam, or the momentum of gradient descent.
    - `second`: β₂ of Adam (Kingma and Ba 2015); None is gradient descent.
    - `weight_decay`: decoupled weight decay, 0 for none.
    """

    rate: Any
    halving: Any = jnp.inf
    momentum: Any = 0.9
    second: Any = 0.999
    weight_decay: Any = 0.0

    def rule(self) -> optax.GradientTransformationExtraArgs:
        def rate(k: Any) -> Any:
            return self.rate * 0.5 ** (k / self.halving)

        moved = optax.trace(self.momentum) if self.second is None else optax.scale_by_adam(self.momentum, self.second)
        parts = (moved, optax.add_decayed_weights(self.weight_decay), optax.scale_by_learning_rate(rate))
        return optax.with_extra_args_support(optax.chain(*parts))


class Decayed(eqx.Module):
    """Any optimiser, and after each step it takes θ ← (1 − amount) θ.

    **Arguments:**

    - `inner`: an optimiser with `init` and `step`.
    - `amount`: share that is taken off in a step, 0 to 1; 1e-4 times the rate is usual.
    """

    inner: Any
    amount: Any

    def init(self, problem: object, params: PyTree, samples: Any) -> PyTree:
        """The state of the inner optimiser.

        **Arguments:**

        - `problem`, `params`, `samples`: as the inner optimiser takes them.

        **Returns:** a state for `step`.
        """
        return self.inner.init(problem, params, samples)

    def step(self, problem: object, params: PyTree, samples: Any, state: PyTree) -> tuple[PyTree, Any, PyTree, Info]:
        """One step of the inner optimiser, and the decay where it was taken.

        **Arguments:**

        - `problem`, `params`, `samples`: as the inner optimiser takes them.
        - `state`: what `init`, or the step before, returned.

        **Returns:** as the inner optimiser.
        """
        params, samples, state, info = self.inner.step(problem, params, samples, state)
        shrink = jnp.where(info.accepted, 1 - self.amount, 1.0)
        return jax.tree.map(lambda leaf: (shrink * leaf).astype(leaf.dtype), params), samples, state, info


def sgd(rate: Any, momentum: float | None = None) -> Baseline:
    """Stochastic gradient descent.

    **Arguments:**

    - `rate`: learning rate, a number or an optax schedule.
    - `momentum`: in [0, 1), or None for none.

    **Returns:** a `Baseline`.
    """
    return _baseline(optax.sgd(rate, momentum))


def adam(rate: Any = 1e-3) -> Baseline:
    """Adam (Kingma and Ba 2015).

    **Arguments:**

    - `rate`: learning rate, a number or an optax schedule.

    **Returns:** a `Baseline`.
    """
    return _baseline(optax.adam(rate))


def lbfgs(memory: int = 50) -> Baseline:
    """L-BFGS with optax's zoom line search (Liu and Nocedal 1989), for fixed samples.

    **Arguments:**

    - `memory`: pairs of steps and gradients that it remembers.

    **Returns:** a `Baseline`.
    """
    return _baseline(optax.lbfgs(memory_size=memory))


def _baseline(transformation: optax.GradientTransformation) -> Baseline:
    return Baseline(optax.with_extra_args_support(transformation))


def report(value: Any, gradient: PyTree, update: PyTree, ok: Any) -> Info:
    """What one step of a baseline reports."""
    nothing = jnp.full((), jnp.nan)
    return Info(
        loss=value,
        norm=norm(update),
        moved=jnp.where(ok, norm(update), 0.0),
        slope=dot(gradient, update),
        damping=nothing,
        ratio=nothing,
        smallest=nothing,
        accepted=ok,
        restarted=jnp.zeros((), bool),
        result=RESULTS.where(ok, RESULTS.successful, RESULTS.loss_not_finite),
    )
