"""`angd flow`: integrate a flow of the catalogue, draw it, judge it in one line. The options import nothing heavy."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import tyro

from angd.program.arguments import Switch
from angd.program.expressions import check_range, parse
from angd.program.flow_catalogue import pick
from angd.train.files import check_writable


@dataclass(frozen=True)
class FlowOptions:
    """Integrate an accelerated Riemannian gradient flow, or a plain one, and draw L(ρ_t) against the proven rate.

    Coefficients are formulas in t: `--alpha 3/t`, `--beta 0.4`, `--gamma 1+0.4/t`. `angd list` shows what can be run.
    """

    examples: ClassVar[tuple[str, ...]] = (
        "angd flow --manifold simplex --beta 0.5 --gamma 1+0.5/t",
        "angd flow --manifold sobolev --functional power --alpha 2/t --t1 200",
        "angd flow --order 1 --out gradient.pdf",
    )

    manifold: Annotated[str, tyro.conf.arg(metavar="NAME")] = "fisher-rao"
    """Manifold, e.g. fisher-rao, simplex, sobolev, interval, wasserstein, gaussian, quantiles, particles, hessian."""
    functional: Annotated[str | None, tyro.conf.arg(metavar="NAME", help_behavior_hint="")] = None
    """What to minimise on it; by default the first that `angd list` shows."""
    alpha: str = "3/t"
    """Friction α."""
    beta: str = "0"
    """Hessian-driven damping β."""
    gamma: str = "1"
    """Gain γ of the gradient."""
    order: Literal[1, 2] = 2
    """2: the accelerated flow; 1: the gradient flow ρ̇ = −γ grad L, without α and β."""
    t0: float = 1.0
    """Time of the start, at rest."""
    t1: float = 40.0
    """Time of the end."""
    form: Literal["cotangent", "covariant"] = "cotangent"
    """First-order system in (ρ, Ψ), or second-order equation with Christoffel symbols."""
    s: int = 1
    """Order of the Sobolev space, any integer from −8 to 8."""
    out: Path = Path("flow.png")
    """Figure to write: .png, .svg or .pdf."""
    json: Switch = False
    """Print the verdict as one JSON object."""

    def check(self) -> None:
        """Refuse bad values in one sentence, before anything heavy is imported."""
        pick(self.manifold, self.functional)
        if not 0 <= self.t0 < self.t1 <= 1e6:
            raise ValueError(f"--t0 and --t1 must satisfy 0 ≤ t0 < t1 ≤ 1e6, got {self.t0:g} and {self.t1:g}.")
        if not -8 <= self.s <= 8:
            raise ValueError(f"--s must lie between -8 and 8, got {self.s}.")
        for name in ("alpha", "beta", "gamma") if self.order == 2 else ("gamma",):
            check_range(getattr(self, name), f"--{name}", (self.t0, self.t1))
        if self.order == 1 and (self.alpha, self.beta, self.form) != ("3/t", "0", "cotangent"):
            raise ValueError("--order 1 is ρ̇ = −γ grad L: --alpha, --beta and --form do not belong to it.")
        check_writable(self.out, (".png", ".svg", ".pdf"))


def run_flow(options: FlowOptions) -> int:
    """Do it; the verdict goes to standard output, progress to standard error."""
    import jax

    jax.config.update("jax_enable_x64", True)

    from angd.flow.integrate import solve_flow
    from angd.problems.flows import build
    from angd.view.flows import save_figure
    from angd.view.progress import progress_bar

    functional = pick(options.manifold, options.functional)
    problem = build(options.manifold, functional, options.s)
    with progress_bar(f"{options.manifold} · {functional}") as report:
        solution = solve_flow(
            problem.manifold,
            problem.functional,
            _flow(options),
            problem.rho0,
            options.t0,
            options.t1,
            form=options.form,
            minimiser=problem.minimiser,
            save=4001,
            progress=report,
        )
    friction = f"α = {options.alpha}, β = {options.beta}" if options.order == 2 else "gradient flow"
    save_figure(solution, f"{options.manifold}, {functional}: {friction}, γ = {options.gamma}", options.out)
    print(f"figure: {options.out}", file=sys.stderr)
    print(
        json.dumps(_as_json(options, functional, solution), ensure_ascii=False) if options.json else solution.verdict()
    )
    return 0


def _flow(options: FlowOptions):
    from angd.flow.coefficients import ARGFlow, GradientFlow

    gamma = _schedule(options.gamma, "gamma")
    if options.order == 1:
        return GradientFlow(gamma, t0=options.t0)
    alpha, beta = _schedule(options.alpha, "alpha"), _schedule(options.beta, "beta")
    return ARGFlow(alpha=alpha, beta=beta, gamma=gamma, t0=options.t0)


def _schedule(text: str, name: str):
    function = parse(text, name)
    return lambda k, t: function(t)


def _as_json(options: FlowOptions, functional: str, solution) -> dict:
    certificate = solution.certificate
    return {
        "manifold": options.manifold,
        "functional": functional,
        "order": options.order,
        "alpha": options.alpha if options.order == 2 else None,
        "beta": options.beta if options.order == 2 else None,
        "gamma": options.gamma,
        "t": float(solution.ts[-1]),
        "loss_first": float(solution.L[0]),
        "loss": float(solution.L[-1]),
        "rate": None if solution.rate != solution.rate else solution.rate,
        "conditions_violated": None if certificate is None else certificate.conditions.violated(),
        "lyapunov_largest_increase": None if certificate is None else certificate.largest_increase,
        "exit_time": solution.exit_time,
        "steps": solution.num_steps,
        "verdict": solution.verdict(),
        "out": str(options.out),
    }
