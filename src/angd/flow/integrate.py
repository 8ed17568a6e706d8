"""`solve_flow`: integrate an ARG flow, or a gradient flow, on a manifold and say what happened.

The integration is diffrax's (Dormand–Prince 8(7), adaptive). It stops when the state leaves the manifold: after the
step at whose end the velocity would carry it out within a millionth of the time span, or has just done so. The time of
exit is extrapolated with that velocity.
"""

from collections.abc import Callable
from typing import Any, Literal

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from angd.flow.coefficients import ARGFlow, GradientFlow
from angd.flow.forms import AbstractForm, CotangentForm, CovariantForm, GradientForm
from angd.flow.manifolds.base import AbstractGeodesicManifold, AbstractManifold, Functional, Point, Tangent
from angd.flow.progress import CallbackMeter
from angd.flow.theorem import Certificate, certify, fit_rate, vanishing_damping
from angd.results import RESULTS

_FORMS = {"cotangent": CotangentForm, "covariant": CovariantForm}
_IMMINENT = 1e-6
_LOWER, _FLAT = 1e-9, 1e-2  # how far L may fall below that of a minimiser, and how steep it may be there


class FlowSolution(eqx.Module):
    """A trajectory of the flow at T saved times, with what the theorem says of it.

    **Attributes:**

    - `ts`: the times that were reached, shape (T,).
    - `rho`, `rho_dot`: points and velocities, with a leading axis of length T.
    - `L`: the functional, shape (T,).
    - `gap`: L − L* where the minimiser was given, otherwise L less its least value on the trajectory.
    - `minimum_known`: was the minimiser given?
    - `rate`: r of the decay `gap` ~ t^−r, NaN without the minimiser.
    - `certificate`: what the theorem promises; None unless the friction is α/t, the minimiser was given
      and the manifold knows its logarithm.
    - `exit_time`: when the flow reached the boundary of the manifold, None if it did not.
    - `result`: how it ended, a member of `RESULTS`.
    - `num_steps`: steps of the integrator.
    - `doubt`: why a point given as the minimiser cannot be one; it then counts as not given. None where there is none.
    """

    ts: Float[Array, "T"]
    rho: Point
    rho_dot: Tangent
    L: Float[Array, "T"]
    gap: Float[Array, "T"]
    minimum_known: bool
    rate: float
    certificate: Certificate | None
    exit_time: float | None
    result: RESULTS
    num_steps: int
    doubt: str | None = None

    def verdict(self) -> str:
        """What happened, in one line."""
        parts = [f"L {_course(self.L)} at t = {self.ts[-1]:.6g}"]
        if np.isfinite(self.rate):
            parts.append(f"decay like t^-{self.rate:.2f}")
        if self.certificate is not None:
            parts.append(_judge(self.certificate))
        if self.doubt is not None:
            parts.append(f"no O(1/t²) guarantee, for the minimiser given is none: {self.doubt}")
        if self.exit_time is not None:
            parts.append(f"the flow reached the boundary of the manifold at t = {self.exit_time:.6g}")
        if self.result not in (RESULTS.successful, RESULTS.crossed_boundary):
            parts.append(RESULTS[self.result])
        return "; ".join(parts) + "."


def _course(L: Float[Array, "T"]) -> str:
    """Fell, rose or stayed."""
    first, last = float(L[0]), float(L[-1])
    if first == last:
        return f"stayed at {first:.6g}"
    return f"{'fell' if last < first else 'rose'} from {first:.6g} to {last:.6g}"


def _judge(certificate: Certificate) -> str:
    broken = certificate.conditions.violated()
    if broken:
        return f"no O(1/t²) guarantee, for condition {', '.join(broken)} of the theorem fails"
    if not certificate.conditions.convex:
        return "no O(1/t²) guarantee, for L is not convex along the flow"
    falls = certificate.largest_increase <= 1e-8 * float(jnp.max(certificate.lyapunov))
    return "O(1/t²) holds by the theorem; its Lyapunov function " + (
        "never increases" if falls else "increases: lower rtol"
    )


def solve_flow(
    manifold: AbstractManifold,
    functional: Functional,
    flow: ARGFlow | GradientFlow,
    rho0: Point,
    t0: float | None = None,
    t1: float = 10.0,
    *,
    form: Literal["cotangent", "covariant"] = "cotangent",
    minimiser: Point | None = None,
    save: int | Any = 401,
    rtol: float | None = None,
    max_steps: int = 100_000,
    progress: Callable[[float], None] | None = None,
) -> FlowSolution:
    """Integrate the ARG flow of a functional from rest, or its gradient flow, by Dormand–Prince 8(7), adaptively.

    **Arguments:**

    - `manifold`: where ρ lives, an `AbstractManifold`.
    - `functional`: L, a JAX function of a point to a scalar.
    - `flow`: the coefficients, an `ARGFlow` of t alone (its `h` is not used), or a `GradientFlow`.
    - `rho0`: the first point, as the manifold's `check` asks for.
    - `t0`: first time; that of the flow by default.
    - `t1`: last time.
    - `form`: `"cotangent"` (first order in ρ and Ψ) or `"covariant"` (second order, with Christoffel
      symbols, which on Fisher–Rao goes on where the density has reached zero). A gradient flow has only one.
    - `minimiser`: the minimising point, for the gap to the minimum and the Lyapunov function.
    - `save`: how many times to save (log-spaced if t₀ > 0), or the times themselves.
    - `rtol`: relative tolerance; 1e-10 in double precision and 1e-5 in single by default.
    - `max_steps`: of the integrator; more are reported as `RESULTS.too_many_steps`.
    - `progress`: a function that is called with the fraction done.

    **Returns:** a `FlowSolution`.

    **Example:** `angd.solve_flow(manifold, L, angd.ARGFlow(alpha=angd.OverTime(3.0)), rho0, t1=50.0)`
    """
    rho0 = _as_point(manifold, rho0, "rho0")
    minimiser = None if minimiser is None else _as_point(manifold, minimiser, "minimiser")
    ts = _times(flow.t0 if t0 is None else t0, t1, save)
    flow.check_continuous(float(ts[0]))
    _check_functional(functional, rho0)
    system = _form_of(flow, form)(manifold, functional, flow)
    # Numbers become arrays, so that another alpha or beta does not compile anew.
    system = jax.tree.map(lambda leaf: jnp.asarray(leaf) if isinstance(leaf, float) else leaf, system)
    solution = _integrate(system, rho0, ts, rtol, max_steps, progress)
    return _summarise(system, solution, minimiser)


def _form_of(flow: ARGFlow | GradientFlow, form: str) -> Callable[..., AbstractForm]:
    if form not in _FORMS:
        raise ValueError(f"form must be 'cotangent' or 'covariant', got {form!r}.")
    if isinstance(flow, ARGFlow):
        return _FORMS[form]
    if form == "covariant":
        raise ValueError("A gradient flow has no covariant form, for it has no acceleration: leave `form` out.")
    return GradientForm


def _as_point(manifold: AbstractManifold, point: Point, name: str) -> Point:
    point = jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype=float), point)
    if not all(bool(jnp.all(jnp.isfinite(leaf))) for leaf in jax.tree.leaves(point)):
        raise ValueError(f"{name} contains values that are not finite.")
    manifold.check(point, name)
    return point


def _times(t0: float, t1: float, save: Any) -> Array:
    if not (np.isfinite(t0) and np.isfinite(t1) and 0 <= t0 < t1):
        raise ValueError(f"The time span must satisfy 0 ≤ t0 < t1 < ∞, got t0 = {t0}, t1 = {t1}.")
    if isinstance(save, int):
        if save < 2:
            raise ValueError(f"save must be at least 2 (the two ends), got {save}.")
        ts = np.geomspace(t0, t1, save) if t0 > 0 else np.linspace(t0, t1, save)
        ts[0], ts[-1] = t0, t1
        return jnp.asarray(ts)
    ts = np.asarray(save, dtype=float)
    if ts.ndim != 1 or ts.size < 2 or ts[0] < t0 or ts[-1] > t1 or np.any(np.diff(ts) <= 0):
        raise ValueError("save must be a number, or at least two increasing times between t0 and t1.")
    return jnp.asarray(np.unique(np.concatenate([[t0], ts])))


def _check_functional(functional: Functional, rho0: Point) -> None:
    value = functional(rho0)
    if jnp.shape(value) != ():
        raise ValueError(f"The functional must return a scalar, got shape {jnp.shape(value)}.")
    if not bool(jnp.isfinite(value)):
        raise ValueError("The functional is not finite at rho0.")


def _integrate(
    system: AbstractForm, rho0: Point, ts: Array, rtol: float | None, max_steps: int, progress: Any
) -> diffrax.Solution:
    dtype = jax.tree.leaves(rho0)[0].dtype
    rtol = (1e-10 if dtype == jnp.float64 else 1e-5) if rtol is None else rtol
    return diffrax.diffeqsolve(
        diffrax.ODETerm(_field),
        diffrax.Dopri8(),
        t0=ts[0],
        t1=ts[-1],
        dt0=None,
        y0=system.start(ts[0], rho0),
        args=(system, _IMMINENT * (ts[-1] - ts[0])),
        saveat=diffrax.SaveAt(subs=[diffrax.SubSaveAt(ts=ts), diffrax.SubSaveAt(t1=True)]),
        stepsize_controller=diffrax.ClipStepSizeController(
            diffrax.PIDController(rtol=rtol, atol=rtol / 10), step_ts=ts
        ),
        event=diffrax.Event(_is_leaving),
        max_steps=max_steps,
        throw=False,
        adjoint=diffrax.ForwardMode(),  # nobody differentiates through this solve; it compiles faster
        progress_meter=diffrax.NoProgressMeter() if progress is None else CallbackMeter(progress),
    )


# At module level, with the system as an argument, so that a second solve of the same problem is not compiled again.
def _field(t, y, args):
    system, _ = args
    return system.field(t, y)


def _is_leaving(t, y, args, **kwargs):
    system, imminent = args
    return system.time_to_boundary(t, y) < imminent


@eqx.filter_jit
def _read(system: AbstractForm, ts: Array, ys: Any) -> tuple[Point, Tangent, Array, Array]:
    """ρ, ρ̇, L and the margin to the boundary at every saved time."""
    rho, rho_dot = jax.vmap(system.read)(ts, ys)
    return rho, rho_dot, jax.vmap(system.functional)(rho), jax.vmap(system.margin)(ys)


def _summarise(system: AbstractForm, solution: diffrax.Solution, minimiser: Point | None) -> FlowSolution:
    saved_ts, last_t = solution.ts  # pyright: ignore[reportGeneralTypeIssues]
    saved, last = solution.ys  # pyright: ignore[reportGeneralTypeIssues]
    reached = np.flatnonzero(np.isfinite(np.asarray(saved_ts)) & np.asarray(saved_ts <= last_t[0]))
    ts, ys = saved_ts[reached], jax.tree.map(lambda leaf: leaf[reached], saved)
    rho, rho_dot, L, margin = _read(system, ts, ys)
    doubt = None if minimiser is None else _doubt(system, rho, L, minimiser)
    minimiser = minimiser if doubt is None else None
    left = solution.result == diffrax.RESULTS.event_occurred
    exit_time = _time_of_exit(system, last_t, last) if left else _first_crossing(np.asarray(ts), np.asarray(margin))
    minimum = jnp.min(L) if minimiser is None else system.functional(minimiser)
    return FlowSolution(
        ts=ts,
        rho=rho,
        rho_dot=rho_dot,
        L=L,
        gap=L - minimum,
        minimum_known=minimiser is not None,
        rate=float("nan") if minimiser is None else fit_rate(ts, L - minimum),
        certificate=_certificate(system, (ts, rho, rho_dot), minimiser),
        exit_time=exit_time,
        result=_result(solution, L, exit_time),
        num_steps=int(solution.stats["num_steps"]),
        doubt=doubt,
    )


def _doubt(system: AbstractForm, rho: Point, L: Array, minimiser: Point) -> str | None:
    """Why a point cannot be the minimiser: L is lower on the trajectory, or its gradient there does not vanish."""
    minimum, lowest = float(system.functional(minimiser)), float(jnp.min(L))
    scale = max(abs(minimum), float(jnp.max(jnp.abs(L))))
    if not minimum <= lowest + _LOWER * scale:
        return f"L is {minimum:.6g} there and {lowest:.6g} on the trajectory"
    start = jax.tree.map(lambda leaf: leaf[0], rho)
    there, here = (_steepness(system, point) for point in (minimiser, start))
    if there > _FLAT * here:
        return f"the gradient has length {there:.2g} there and {here:.2g} at the start"
    return None


def _steepness(system: AbstractForm, rho: Point) -> float:
    """‖grad L‖; not a number on the boundary of some manifolds."""
    gradient = system.manifold.gradient(system.functional, rho)
    return float(jnp.sqrt(system.manifold.square_norm(rho, gradient)))


def _certificate(system: AbstractForm, trajectory: Any, minimiser: Point | None) -> Certificate | None:
    flow = system.flow
    if minimiser is None or isinstance(flow, GradientFlow):
        return None
    alpha = vanishing_damping(flow, trajectory[0])
    if alpha is None or not isinstance(system.manifold, AbstractGeodesicManifold):
        return None
    return certify(system.manifold, system.functional, flow, alpha, trajectory, minimiser)


def _time_of_exit(system: AbstractForm, last_t: Array, last: Any) -> float:
    """The last time, extrapolated by what the velocity there leaves."""
    t, y = last_t[0], jax.tree.map(lambda leaf: leaf[0], last)
    return float(t + system.time_to_boundary(t, y))


def _first_crossing(ts: np.ndarray, margin: np.ndarray) -> float | None:
    """When the first of the margins (T, n) becomes negative, by linear interpolation between saved times."""
    outside = np.flatnonzero((margin < 0).any(axis=1))
    if not outside.size:
        return None
    j = outside[0]
    before, after = margin[j - 1, margin[j] < 0], margin[j, margin[j] < 0]
    return float(np.min(ts[j - 1] + (ts[j] - ts[j - 1]) * before / (before - after)))


def _result(solution: diffrax.Solution, L: Array, exit_time: float | None) -> RESULTS:
    if solution.result == diffrax.RESULTS.event_occurred:
        return RESULTS.left_manifold
    if solution.result == diffrax.RESULTS.max_steps_reached:
        return RESULTS.too_many_steps
    if solution.result != diffrax.RESULTS.successful or not bool(jnp.all(jnp.isfinite(L))):
        return RESULTS.not_finite
    return RESULTS.successful if exit_time is None else RESULTS.crossed_boundary
