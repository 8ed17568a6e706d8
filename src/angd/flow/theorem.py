"""The convergence theorem, evaluated along a trajectory.

For α_t = α/t put w = γ − β̇ − β/t. If L is geodesically convex with minimiser ρ* and

    (i) w > 0,    (ii) t ẇ ≤ (α − 3) w,    (iii) 4 t w ≥ (α − 1) κ β,

then E = t² w (L − L*) + ½ ‖−(α − 1) log_ρ ρ* + t (ρ̇ + β grad L)‖² never increases, hence L − L* ≤ E(t₀)/(t² w).
"""

import itertools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from angd.flow.coefficients import ARGFlow
from angd.flow.manifolds.base import AbstractGeodesicManifold, Functional, Point, Tangent
from angd.tree import combine

_SLACK = 1e-9  # rounding in the derivative of a schedule


class Conditions(eqx.Module):
    """By how much each condition of the theorem holds along the trajectory (negative: violated).

    **Attributes:**

    - `positive_weight`: (i), w.
    - `slow_weight`: (ii), (α − 3) w − t ẇ.
    - `bounded_beta`: (iii), 4 t w − (α − 1) κ β.
    - `convexity`: −g(log_ρ ρ*, grad L) − (L − L*), all of convexity that the proof uses.
    """

    positive_weight: Float[Array, "T"]
    slow_weight: Float[Array, "T"]
    bounded_beta: Float[Array, "T"]
    convexity: Float[Array, "T"]

    def violated(self) -> list[str]:
        """Names of the conditions that fail somewhere."""
        broken = {
            "(i)": self.positive_weight <= 0,
            "(ii)": self.slow_weight < -_SLACK,
            "(iii)": self.bounded_beta < -_SLACK,
        }
        return [name for name, where in broken.items() if bool(jnp.any(where))]

    @property
    def convex(self) -> bool:
        """Whether L was as convex as the proof needs, at every saved time."""
        return bool(jnp.all(self.convexity >= -_SLACK * jnp.max(jnp.abs(self.convexity))))


class Certificate(eqx.Module):
    """The theorem's quantities at the saved times.

    **Attributes:**

    - `alpha`: α of the friction α/t.
    - `lyapunov`: E at the saved times, shape (T,).
    - `bound`: E(t₀) / (t² w), which bounds L − L*, shape (T,).
    - `conditions`: by how much the conditions hold.
    """

    alpha: float
    lyapunov: Float[Array, "T"]
    bound: Float[Array, "T"]
    conditions: Conditions

    @property
    def largest_increase(self) -> float:
        """Largest rise of the Lyapunov function between saved times (≤ 0 when it only falls)."""
        return float(jnp.max(jnp.diff(self.lyapunov)))


def vanishing_damping(flow: ARGFlow, ts: Array) -> float | None:
    """α, if the friction is α/t along `ts`; otherwise None."""
    scaled = np.asarray(ts) * np.asarray(jax.vmap(lambda t: flow.at(t).alpha)(ts))
    return float(scaled[0]) if np.allclose(scaled, scaled[0], rtol=1e-9, atol=1e-12) else None


def certify(
    manifold: AbstractGeodesicManifold,
    functional: Functional,
    flow: ARGFlow,
    alpha: float,
    trajectory: tuple[Float[Array, "T"], Point, Tangent],
    minimiser: Point,
) -> Certificate:
    """Evaluate Lyapunov function, bound and conditions along a trajectory (ts, ρ, ρ̇)."""
    energy, weight, margins = _evaluate_all(manifold, functional, flow, alpha, trajectory, minimiser)
    return Certificate(alpha, energy, energy[0] / weight, Conditions(*margins))


@eqx.filter_jit
def _evaluate_all(manifold, functional, flow, alpha, trajectory, minimiser):
    """Energy E, weight t²w and the margins of the three conditions at every time of the trajectory."""
    minimum = functional(minimiser)

    def evaluate(t, rho, rho_dot):
        now, w_dot = jax.jvp(flow.at, (t,), (jnp.ones_like(t),))
        w, w_rate = now.w, _weight_rate(now, w_dot)
        f, T, gap = manifold.variation(functional, rho), manifold.log(rho, minimiser), functional(rho) - minimum
        inner = combine((1.0, rho_dot), (now.beta, manifold.G_inv(rho, f)))
        v = combine((1.0 - alpha, T), (t, inner))
        energy = t**2 * w * gap + 0.5 * manifold.square_norm(rho, v)
        bounded = 4 * t * w - (alpha - 1) * manifold.kappa(rho, minimiser) * now.beta
        margins = (w, (alpha - 3) * w - t * w_rate, bounded, -manifold.pairing(f, T) - gap)
        return energy, t**2 * w, margins

    return jax.vmap(evaluate)(*trajectory)


def _weight_rate(now: Any, dot: Any) -> Array:
    """ẇ = γ̇ − β̈ − (β/t)˙."""
    return dot.gamma - dot.beta_dot - (dot.beta * now.t - now.beta * dot.t) / now.t**2


def fit_rate(times: Any, gaps: Any, windows: int = 8) -> float:
    """Exponent r of gap ~ t^(−r), fitted to the maxima over `windows` log-spaced windows of the later half of log t.

    Maxima, because an oscillating gap touches zero. NaN when fewer than three windows hold a positive gap.
    """
    ts, gap = np.asarray(times, dtype=float), np.asarray(gaps, dtype=float)
    if ts.size < 2 or ts[0] <= 0:
        return float("nan")
    edges = np.geomspace(np.sqrt(ts[0] * ts[-1]), ts[-1], windows + 1)
    points = []
    for low, high in itertools.pairwise(edges):
        inside = np.flatnonzero((ts > low) & (ts <= high))
        if inside.size and gap[best := inside[np.argmax(gap[inside])]] > 0:
            points.append((np.log(ts[best]), np.log(gap[best])))
    if len(points) < 3:
        return float("nan")
    log_t, log_gap = np.transpose(points)
    return float(-np.polyfit(log_t, log_gap, 1)[0])
