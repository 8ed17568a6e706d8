"""Self-scaled Broyden (Al-Baali and Khalfan 2005).

Urbán, Stefanou and Pons (2024) and Kiyani et al. (2025) found it the most accurate quasi-Newton method on
physics-informed networks.

With H ≈ (∇²L)⁻¹, s the step and y the change of the gradient,

    H ← [H − Hy(Hy)ᵀ/yᵀHy + φ yᵀHy vvᵀ]/τ + ssᵀ/yᵀs,     v = s/yᵀs − Hy/yᵀHy.

φ = τ = 1 is BFGS. Every φ and τ > 0 keep the secant equation Hy = s; the choice below keeps H positive and lets it
shrink.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PyTree

from angd.method.baselines.base import report
from angd.method.jacobian import check_params
from angd.method.protocols import LossProblem
from angd.method.step import check_state
from angd.tree import all_finite, where


class SelfScaledBroyden(eqx.Module):
    """A dense quasi-Newton method with optax's zoom line search (Al-Baali and Khalfan 2005).

    For problems with `loss(params, samples)`. Points should serve many steps (`Renewed`, `Fixed`); H survives when
    they change. It holds p × p numbers.

    **Arguments:**

    - `line_search_steps`: losses and gradients at most in one line search.
    """

    line_search_steps: int = eqx.field(static=True, default=20)

    def init(self, problem: LossProblem, params: PyTree, samples: Any) -> Float[Array, "p p"]:
        """H = I.

        **Arguments:**

        - `problem`: with `loss(params, samples)`.
        - `params`: a pytree of p real floating-point numbers.
        - `samples`: what the loss takes.

        **Returns:** the identity, shape (p, p).
        """
        check_params(params)
        flat, _ = ravel_pytree(params)
        return jnp.eye(flat.size, dtype=flat.dtype)

    def step(
        self, problem: LossProblem, params: PyTree, samples: Any, state: Float[Array, "p p"]
    ) -> tuple[PyTree, Any, Float[Array, "p p"], Any]:
        """One step along −H ∂L, and the update of H.

        **Arguments:**

        - `problem`: with `loss(params, samples)`.
        - `params`: the present parameters.
        - `samples`: what the loss takes.
        - `state`: H, shape (p, p), as `init` or the step before returned it.

        **Returns:** new parameters, the samples, the new H and an `Info`.
        """
        theta, unravel = ravel_pytree(params)
        _check_state(state, theta.size)

        def loss(theta: Float[Array, "p"]) -> Float[Array, ""]:
            return problem.loss(unravel(theta), samples)

        value, g = jax.value_and_grad(loss)(theta)
        s, g_next = self._search(loss, theta, value, g, -state @ g)
        ok = all_finite((s, g_next)) & jnp.isfinite(value)
        params = where(ok, unravel(theta + s), params)
        return params, samples, where(ok, _update(state, s, g_next - g, g), state), report(value, g, s, ok)

    def _search(self, loss: Any, theta: Array, value: Array, g: Array, d: Array) -> tuple[Array, Array]:
        """A step along d that meets the Wolfe conditions, and the gradient at its end."""
        search = optax.scale_by_zoom_linesearch(self.line_search_steps, initial_guess_strategy="one")
        found: Any = search.update(d, search.init(theta), theta, value=value, grad=g, value_fn=loss)
        s, after = found
        return s, after.grad


def _check_state(H: Any, p: int) -> None:
    if not eqx.is_array(H) or H.shape != (p, p):
        check_state(H, None, "SelfScaledBroyden")


def _update(H: Float[Array, "p p"], s: Array, y: Array, g: Array) -> Float[Array, "p p"]:
    """The next H; s = −aHg for some step length a, so that sᵀH⁻¹s = −a sᵀg. Left alone where yᵀs ≤ 0."""
    Hg, Hy, ys = H @ g, H @ y, jnp.vdot(y, s)
    yHy = jnp.vdot(y, Hy)
    sound = (ys > 0) & (yHy > 0)
    ys, yHy = jnp.where(sound, ys, 1.0), jnp.where(sound, yHy, 1.0)
    length = -jnp.vdot(s, Hg) / jnp.maximum(jnp.vdot(Hg, Hg), jnp.finfo(H.dtype).tiny)
    phi, tau = _scaling(-length * jnp.vdot(s, g) / ys, yHy / ys, s.size)
    v = s / ys - Hy / yHy
    bracket = H - _outer(Hy) / yHy + phi * yHy * _outer(v)
    updated = bracket / tau + _outer(s) / ys
    return jnp.where(sound & jnp.all(jnp.isfinite(updated)), updated, H)


def _scaling(b: Array, h: Array, p: int) -> tuple[Array, Array]:
    """(φ, τ) from b = sᵀH⁻¹s/yᵀs and h = yᵀHy/yᵀs, whose product is at least 1."""
    a = jnp.maximum(b * h - 1, jnp.finfo(b.dtype).eps)
    lowest = jnp.minimum(1.0, h * (1 - jnp.sqrt(a / (1 + a))))
    theta = jnp.maximum((lowest - 1) / a, jnp.minimum(1 / lowest, (1 - b) / b))
    sigma = 1 + theta * a
    shrink, spread = jnp.minimum(1.0, 1 / b), sigma ** (-1 / max(p - 1, 1))
    outside = jnp.minimum(shrink * spread, sigma)
    inside = shrink * jnp.minimum(spread, 1 / jnp.where(theta > 0, theta, 1.0))
    return (1 - theta) / sigma, jnp.where(theta > 0, inside, outside)


def _outer(x: Float[Array, "p"]) -> Float[Array, "p p"]:
    return x[:, None] * x[None, :]
