"""Recipes for densities that draw their own samples: Fisher–Rao or Wasserstein-2, plain or accelerated, or Adam.

New independent samples in every step, no Markov chain. For Wasserstein-2 they are particles: they move with the flow
for `every` steps, and the velocities of the last ones are fitted by a field that new ones read. Imports nothing heavy.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

from angd import address
from angd.recipes.base import INFINITE, Phase, Recipe, number, one_of, switch, without_effect
from angd.recipes.pinn import SOLVER, made, solver

METRICS = ("fisher-rao", "wasserstein", "parametric-wasserstein", "none")


@dataclass(frozen=True)
class Inference(Recipe):
    """Fit a density to a target or to data: natural gradients, plain or accelerated, or Adam.

    For problems with `log_density` and `draw(params, key, n)`, such as `ReverseKL` and `ForwardKL`; those without
    `variation` are fitted to data by Fisher scoring.

    **Arguments:** see `angd run funnel inference --help`; `rate`, `damping` and `samples` are the ones to tune.

    **Example:** `angd.fit(problem, angd.recipes.Inference(samples=500), steps=200)`
    """

    double: ClassVar[bool] = False

    metric: str = one_of(*METRICS, about="none is Adam", own="metric")
    rate: float = number(0.05, 1e-9, 10, "h² γ at the start")
    mu: float = number(0.8, 0, 0.9999, "momentum μ = 1 − hα; 0 is plain natural gradient descent")
    beta: float = number(0, 0, 100, "Hessian-driven damping β / h")
    decay: float = number(0, 0, 10, "γ, and the rate with it, falls as 1/(1 + decay k)")
    damping: float = number(1e-3, 1e-12, 1e6, "λ")
    solver: str = one_of("normal", "iterative", "kfac", about=SOLVER, own="solver")
    norm: float = number(1.0, 1e-12, INFINITE, "C of the norm constraint ‖h d‖² ≤ C")
    restart: bool = switch(True, "drop the momentum when it points uphill")
    limit: float = number(0.5, 1e-6, INFINITE, "bound of h|φ| in the quadratic term of Fisher–Rao")
    samples: int = number(1000, 2, 10**7, "independent samples in every step")
    every: float = number(1, 1, INFINITE, "steps that samples serve; for Wasserstein-2 they move in between")
    refit: str = one_of("affine", "kernel", "none", about="how velocities are carried to new samples, Wasserstein-2")

    def contradiction(self) -> str | None:
        if self.metric == "parametric-wasserstein" and self.beta > 0:
            return "beta acts on velocities, which parametric-wasserstein has not; leave it out."
        return without_effect(self, self._idle(), Inference)

    def _idle(self) -> tuple[str, ...]:
        """Options that the method does not have."""
        if self.metric == "none":
            return ("beta", "damping", "solver", "norm", "limit", "refit")
        return () if self.metric == "wasserstein" or address.is_address(self.metric) else ("refit",)

    def phases(self, task: Any, seed: int = 0) -> list[Phase]:
        """One phase, on fresh samples."""
        if task.samples is None and not task.is_drawn:
            raise ValueError(
                f"{task.name}: a {type(task.problem).__name__} draws no samples of its own; give it "
                "draw(params, key, n), or samples=: a sampler (key, problem, params) -> Samples."
            )
        sampler = task.draws(self.samples, self.every) if task.samples is None else task.sampler()
        return [Phase(self.optimiser(task.problem), sampler)]

    def optimiser(self, problem: Any) -> Any:
        """The method that the options describe; what is tuned enters as arrays, so that a sweep compiles once."""
        import jax.numpy as jnp

        import angd
        from angd.method import baselines
        from angd.recipes.tuned import falling

        if self.metric == "none":
            return baselines.FirstOrder(jnp.asarray(self.rate))
        h = self.rate**0.5
        flow = angd.ARGFlow(
            alpha=jnp.asarray((1 - self.mu) / h),
            beta=jnp.asarray(self.beta * h) if self.beta > 0 else 0.0,
            gamma=falling(1.0, self.decay),
            h=jnp.asarray(h),
        )
        return angd.ANGD(flow, self.space(problem), solver(self.solver, jnp.asarray(self.damping)), self.control())

    def space(self, problem: Any) -> Any:
        """The metric."""
        import angd

        if address.is_address(self.metric):
            return made(self.metric, "metric")
        limit = None if self.limit == INFINITE else self.limit
        if self.metric == "fisher-rao":
            known = hasattr(problem, "variation")
            return angd.FisherRao(limit, correction=self.mu > 0) if known else angd.FisherScoring(limit)
        if not hasattr(problem, "variation"):
            raise ValueError(
                f"Inference: a {type(problem).__name__} has no variation(params, x), whose gradient is the force of "
                "Wasserstein-2 (of data it would need the density): take fisher-rao."
            )
        if self.metric == "parametric-wasserstein":
            return angd.ParametricWasserstein()
        refits = {"affine": angd.AffineRefit, "kernel": angd.KernelRefit, "none": lambda: None}
        return angd.Wasserstein(refits[self.refit]())

    def control(self) -> Any:
        """Restarts, then the norm constraint."""
        import jax.numpy as jnp

        import angd

        parts = [angd.Restart()] if self.restart else []
        return angd.in_turn([*parts, angd.StepNorm(jnp.asarray(self.norm))])
