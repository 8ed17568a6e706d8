"""What a metric does: with π the momentum in its own representation and f the force,

    π_k = μ_k T π_{k−1} − h_k R_k − β_{k−1} (f_k − T f_{k−1}) − h_k γ_k f_k,      π_0 = −h_0 γ_0 f_0,

T being the transport. The metric returns this as a sampled system; a solver finds the direction d from it.
"""

import abc
from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree

from angd.flow.coefficients import Coefficients
from angd.method.jacobian import AbstractJacobian, jacobian
from angd.method.metrics.pointwise import variations
from angd.method.samples import Samples
from angd.method.system import AbstractSystem, Gram
from angd.method.transport import AbstractTransport
from angd.tree import scale, zeros_like

Invert = Callable[[AbstractSystem], PyTree]


class Memory(eqx.Module):
    """What one step leaves to the next: θ and d of that step, and what the metric wanted to keep.

    `started` is false before the first step and after a refused one.
    """

    params: PyTree
    d: PyTree
    kept: PyTree
    started: Bool[Array, ""]

    @classmethod
    def fresh(cls, params: PyTree, kept: PyTree) -> "Memory":
        """At rest in `params`."""
        return cls(params, zeros_like(params), kept, jnp.zeros((), bool))


class Setting(eqx.Module):
    """Everything a metric may look at in one step.

    `hessian` says, before compilation, whether β may be non-zero; `form` is the Jacobian that the solver needs.
    """

    problem: Any
    params: PyTree
    samples: Any
    c: Coefficients
    memory: Memory
    transport: AbstractTransport
    hessian: bool = eqx.field(static=True)
    form: type[AbstractJacobian] | None = eqx.field(static=True, default=None)

    @property
    def beta_prev(self) -> Array:
        """β_{k−1}, or 0 at the first step, where f_{k−1} counts as f_k."""
        return jnp.where(self.memory.started, self.c.beta_prev, 0.0)

    @property
    def kick(self) -> Array:
        """hγ, what the force is multiplied by in a step from rest."""
        return self.c.h * self.c.gamma

    def jacobian(self, f: Callable[..., Any], xs: PyTree) -> AbstractJacobian:
        """∂_θ f at the present parameters, in the form that the solver needs."""
        return jacobian(f, self.params, xs, form=self.form)

    def vetted(self, older: bool = False) -> tuple["Setting", Float[Array, "n"], Float[Array, "n"]]:
        """With samples fit for a step, δL/δρ there, and if wanted that of the parameters of the step before."""
        samples, f, f_old = variations(self.problem, self.params, self.samples, self.memory.params if older else None)
        return eqx.tree_at(lambda setting: setting.samples, self, samples), f, f_old

    def carried(self, f: Callable[..., Any], xs: PyTree, d: PyTree) -> Float[Array, "n *m"]:
        """The momentum function ⟨∂_θ f, d⟩ of the step before, at new points."""
        return self.transport.push(f, self.params, self.memory.params, xs, d)


class Draft(eqx.Module):
    """A step before it is taken.

    **Attributes:** `system` is what the solver solves; `at_rest` the same G with the force alone, for a step without
    momentum; `gradient` is ∂_θ L and `loss` is L where the metric knows it; `note` is the metric's own.
    """

    system: AbstractSystem
    at_rest: AbstractSystem
    gradient: PyTree
    loss: Float[Array, ""] | None = None
    note: Any = None


class Taken(eqx.Module):
    """How a step was taken: how far (θ moved by `stride` d) and whether from rest."""

    stride: Array
    restarted: Bool[Array, ""]


class AbstractMetric(eqx.Module):
    """A row of the table of metrics.

    **Attributes:** `rows`: is the right-hand side known at the samples? `gauss_newton`: is G the curvature of the loss,
    so that a quadratic model predicts its decrease? `covectors`: does the Covector transport exist?
    """

    rows: ClassVar[bool] = True
    gauss_newton: ClassVar[bool] = False
    covectors: ClassVar[bool] = False

    @abc.abstractmethod
    def draft(self, setting: Setting) -> Draft:
        """The sampled system of this step."""

    def centre(self, setting: Setting) -> PyTree:
        """What the damping pulls the direction towards, so that momentum survives it."""
        return scale(setting.c.mu, setting.memory.d)

    def start(self, problem: Any, params: PyTree, samples: Any) -> PyTree:
        """What the metric keeps, before the first step."""
        return None

    def remember(self, setting: Setting, draft: Draft, taken: Taken, invert: Invert) -> PyTree:
        """What the metric keeps for the next step; `invert` finds the direction of another system with the same G."""
        return setting.memory.kept

    def move(self, setting: Setting, draft: Draft, taken: Taken) -> Any:
        """The samples, after they moved with the flow."""
        return setting.samples

    def second(self, problem: Any, params: PyTree, samples: Any, d: PyTree) -> Float[Array, "N"]:
        """∂²r(d, d) at every row, where the metric has residuals: geodesic corrections ask for it."""
        raise ValueError(f"A geodesic correction needs residuals, which {type(self).__name__} has not: use Energy.")

    def loss(self, problem: Any, params: PyTree, samples: Any) -> Float[Array, ""]:
        """L at these parameters and samples, where it can be had: controllers that compare losses ask for it."""
        if not hasattr(problem, "loss"):
            raise ValueError(
                f"This controller compares losses, but {type(problem).__name__} has no loss(params, samples) and "
                f"{type(self).__name__} cannot compute one: use Constant, StepNorm or Restart, or add the method."
            )
        return problem.loss(params, samples)


def require(problem: Any, metric: AbstractMetric, *names: str) -> None:
    """Say which methods of the problem a metric needs, if they are not there."""
    missing = [name for name in names if not hasattr(problem, name)]
    if missing:
        raise ValueError(
            f"{type(metric).__name__} needs {' and '.join(f'{n}(params, x)' for n in names)} of the problem, but "
            f"{type(problem).__name__} has no {' and no '.join(missing)}."
        )


def one_measure(samples: Any, on: str, metric: AbstractMetric) -> Samples:
    """The samples that carry the metric: all of them, or those called `on` where each term of the loss has its own."""
    if isinstance(samples, Samples):
        return samples
    if not isinstance(samples, dict) or on not in samples:
        names = ", ".join(sorted(samples)) if isinstance(samples, dict) else type(samples).__name__
        raise ValueError(f"{type(metric).__name__}(on={on!r}) finds no such samples; there are: {names}.")
    return samples[on]


def gram_like(system: AbstractSystem, v: PyTree) -> Gram:
    """The same G with another right-hand side."""
    return Gram(O=system.O, v=v, omega=system.omega, centred=system.centred)


def known_loss(setting: Setting, f: Float[Array, "n"] | None = None) -> Float[Array, ""] | None:
    """L, if the problem can tell: by `loss_of(variations, samples)` from what is known already, or by `loss`."""
    problem = setting.problem
    if f is not None and hasattr(problem, "loss_of"):
        return problem.loss_of(f, setting.samples)
    return problem.loss(setting.params, setting.samples) if hasattr(problem, "loss") else None
