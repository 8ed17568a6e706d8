"""What is asked of a model: to be close to a target that is known up to a constant, or to data.

    ReverseKL(model, log_target)    KL(ρ ‖ target) = E_ρ[log ρ − log target],     δL/δρ = log ρ − log target
    ForwardKL(model, data)          KL(data ‖ ρ)   = −E_data[log ρ] + constant,   δL/δρ = −p_data/ρ, not known pointwise

Both draw exact samples of the model in every step: no Markov chain. For data, δL/δρ cannot be evaluated, but all that
Fisher–Rao needs of it can, by averages over the data: `angd.FisherScoring`. Wasserstein-2 needs its gradient in x, and
so a density of the data: it is for targets.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from angd.flow.schedules import is_concrete
from angd.method.samples import Samples
from angd.problems.inference.base import check_model


class ReverseKL(eqx.Module):
    """Fit a model to a density that is known up to a constant: variational inference, L = KL(ρ ‖ target).

    For `FisherRao`, `Wasserstein` and `ParametricWasserstein`. Where the model can be exact, the variation is constant
    at the optimum and the last steps have no noise. The loss that a step reports is KL less the logarithm of the
    target's integral: minus a lower bound of the log evidence.

    **Arguments:**

    - `model`: a `DensityModel`: `AffineGaussian`, `Mixture`, `RealNVP`, `SplineFlow`, or your own.
    - `log_target`: `log_target(x)` at one point, one number; a JAX function.

    **Example:** `angd.fit(ReverseKL(RealNVP(2), lambda x: -jnp.sum(x**4)))`
    """

    model: Any
    log_target: Any

    def __check_init__(self):
        check_model(self.model, "ReverseKL")
        if not callable(self.log_target):
            raise ValueError(f"ReverseKL: log_target must be a function of one point, got {self.log_target!r}.")

    def init(self, key: Array) -> PyTree:
        """The model's first parameters; also tries the target at one point."""
        params = self.model.init(key)
        self.check_start(params, self.model.sample(params, key, 1)[0])
        return params

    def log_density(self, params: PyTree, x: Float[Array, " d"]) -> Float[Array, ""]:
        """log ρ_θ."""
        return self.model.log_density(params, x)

    def variation(self, params: PyTree, x: Float[Array, " d"]) -> Float[Array, ""]:
        """δL/δρ = log ρ − log target, up to a constant."""
        return self.model.log_density(params, x) - self.log_target(x)

    def loss_of(self, variations: Float[Array, " n"], samples: Samples) -> Float[Array, ""]:
        """KL less the logarithm of the target's integral."""
        return samples.mean(variations)

    def draw(self, params: PyTree, key: Array, n: int) -> Samples:
        """n independent samples of the model."""
        return Samples(self.model.sample(params, key, n))

    def check_start(self, params: PyTree, x: Float[Array, " d"]) -> None:
        """Refuse a target that is not one real finite number."""
        value = self.log_target(x)
        if jnp.shape(value) != ():
            raise ValueError(
                f"ReverseKL: log_target must return one number at one point x of shape {jnp.shape(x)}, got an array of "
                f"shape {jnp.shape(value)}: sum over coordinates."
            )
        if not jnp.issubdtype(jnp.result_type(value), jnp.floating):
            raise ValueError(f"ReverseKL: log_target must return a real number, got {jnp.result_type(value)}.")
        if is_concrete(value) and not bool(jnp.isfinite(value)):
            raise ValueError(
                f"ReverseKL: log_target is {value} at {x.tolist()}, a sample of the first model: start the model where "
                "the target has mass, or map bounded quantities to the whole line."
            )


class ForwardKL(eqx.Module):
    """Fit a model to data: maximum likelihood, L = −E_data[log ρ], which is KL(data ‖ ρ) up to a constant.

    For `angd.FisherScoring`, which takes the gradient from the data and the metric from samples of the model; and, as
    it has a `loss`, for Adam, L-BFGS and every controller that compares losses.

    **Arguments:**

    - `model`: a `DensityModel`: `AffineGaussian`, `Mixture`, `RealNVP`, `SplineFlow`, or your own.
    - `data`: points, shape (N, d), floating-point numbers.
    - `batch`: how many of them serve a step, drawn anew in each; None: all.

    **Example:** `angd.fit(ForwardKL(SplineFlow(2), data))`
    """

    model: Any
    data: Float[Array, "N d"]
    batch: int | None = eqx.field(static=True)

    def __init__(self, model: Any, data: Any, batch: int | None = None):
        check_model(model, "ForwardKL")
        data = np.asarray(data)
        _check_data(data, model.dimension, batch)
        self.model, self.data, self.batch = model, jnp.asarray(data, float), batch

    def init(self, key: Array) -> PyTree:
        """The model's first parameters."""
        return self.model.init(key)

    def log_density(self, params: PyTree, x: Float[Array, " d"]) -> Float[Array, ""]:
        """log ρ_θ."""
        return self.model.log_density(params, x)

    def loss(self, params: PyTree, samples: dict[str, Samples]) -> Float[Array, ""]:
        """−E_data[log ρ], of the batch that a step has."""
        data = samples["data"]
        return -data.mean(jax.vmap(self.log_density, (None, 0))(params, data.x))

    def draw(self, params: PyTree, key: Array, n: int) -> dict[str, Samples]:
        """n samples of the model, and the data or a batch of them."""
        first, second = jax.random.split(key)
        return {"model": Samples(self.model.sample(params, first, n)), "data": Samples(self._batch(second))}

    def _batch(self, key: Array) -> Float[Array, "m d"]:
        if self.batch is None:
            return self.data
        return self.data[jax.random.choice(key, self.data.shape[0], (self.batch,), replace=False)]


def _check_data(data: Any, dimension: int, batch: int | None) -> None:
    """Refuse what is not a table of real measurements."""
    kind, shape = jnp.result_type(data), jnp.shape(data)
    if not jnp.issubdtype(kind, jnp.floating):
        raise ValueError(
            f"ForwardKL: the data are {kind}, but a density is of real numbers: give floating-point numbers, and add "
            "uniform noise where they count something."
        )
    if len(shape) != 2 or shape[1] != dimension or shape[0] < 1:
        raise ValueError(f"ForwardKL: the data must have the shape (N, {dimension}), as the model has, got {shape}.")
    if not bool(jnp.all(jnp.isfinite(jnp.asarray(data)))):
        raise ValueError("ForwardKL: the data have entries that are not finite: leave those points out.")
    if batch is not None and not (isinstance(batch, int) and 1 <= batch <= shape[0]):
        raise ValueError(f"ForwardKL: batch must be a whole number from 1 to {shape[0]}, or None, got {batch!r}.")
