"""Recipes for residuals and fields: Gauss–Newton in the energy metric, natural gradients in Sobolev metrics.

Points come from the task where it has samples of its own; otherwise they are drawn in the domain of the problem, for
which `interior` and `condition` say how many. Imports nothing heavy.
"""

import inspect
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from angd import address
from angd.recipes.base import INFINITE, Phase, Recipe, number, one_of, switch, without_effect

POINTS = "new points in every step (random or Sobol), the same in all, or adaptive ones that serve ten steps"
ADAPT_EVERY = 10  # choosing adaptive points costs as much as three steps of a first-order method
STAGE = 300  # steps after which one asks whether a stage has become slow
SOLVER = "how the linear systems are solved"
ALPHA = "friction α of the flow at the start, in place of μ = 1 − hα with h = √rate; 0 takes mu"
H_DECAY = "h falls as 1/(1 + h_decay k), and the rate as its square"
ALPHA_DECAY = "α falls as 1/(1 + alpha_decay k)"
BETA_DECAY = "β falls as 1/(1 + beta_decay k)"
DECAYS = ("h_decay", "alpha_decay", "beta_decay")


@dataclass(frozen=True)
class GaussNewton(Recipe):
    """The energy metric with Levenberg–Marquardt damping, at first of λI, then in the units of each parameter.

    Uniform points for `warm_steps` or until the loss is below `warm` (adaptive ones would chase the front of a solution
    that is not there yet), `fresh` steps on adaptive points, new in each, then ones that serve `keep` steps: less
    noise. When they have become slow, one more network on top of the frozen ones learns what is left, and so on: up to
    `stages` of them, for a `Problem` without measured values. With `slabs`, one network after the other in time instead
    (`angd.problems.slabs`). For problems with `residual` or `residuals`.

    **Arguments:** see `angd run burgers energy --help`; of these, `interior` and `condition` (numbers of points) are
    the ones to change: more points than parameters.

    **Example:** `angd.fit(problem, angd.recipes.GaussNewton(interior=300, condition=50), steps=200)`
    """

    interior: int = number(3000, 1, 1e7, "points inside the domain")
    condition: int = number(300, 1, 1e7, "points of each initial or boundary condition")
    warm: float = number(1e-3, 0, 1e6, "loss at which uniform points end")
    warm_steps: int = number(150, 1, 1e9, "steps after which uniform points end")
    fresh: float = number(500, 1, INFINITE, "steps on points that are new in each")
    keep: int = number(20, 1, 1e9, "steps that later points serve")
    stages: int = number(8, 0, 1e3, "networks on top of the first one, at most; 0 is none")
    slabs: int = number(1, 1, 1000, "time slabs, each from the end of the one before; 1 is none")
    causal: float = number(0, 0, 1e6, "ε of causal weights: times wait until earlier ones are learnt; 0 is none")
    more: float = number(2, 1, 100, "points of such a network, in units of those of the first")
    damping: float = number(1e-2, 1e-12, 1e6, "λ at the start")
    scaling: float = number(0.5, 0, 1, "power of diag G in the damping after the first phase, for normal; 0 is λI")
    solver: str = one_of("normal", "iterative", "kfac", about=SOLVER, own="solver")
    controller: str = one_of(
        "levenberg-marquardt", "trust-region", about="how damping follows success", own="controller"
    )
    momentum: float = number(0, 0, 0.999, "η of projected momentum; 0 is none")
    mu: float = number(0, 0, 0.999, "μ of the accelerated flow; 0 is none")
    rate: float = number(1, 1e-6, 10, "h² γ")
    transport: str = one_of("jvp", "current", about="how the momentum of the flow crosses to the next step")
    restart: bool = switch(False, "drop the momentum of the flow when it points uphill")
    geodesic: bool = switch(False, "second-order correction of the step")
    balance: float = number(0, 0, 1, "power by which conditions are weighed against the equation; 0 is not at all")
    single_steps: int = number(0, 0, 1e9, "first steps in single precision")

    def contradiction(self) -> str | None:
        if self.geodesic and self.controller == "trust-region":
            return "geodesic goes with levenberg-marquardt; leave out one of the two."
        if self.mu == 0 and (self.restart or self.transport != "jvp"):
            return "restart and transport are about the flow's momentum: set mu > 0 as well."
        return None

    def phases(self, task: Any, seed: int = 0) -> list[Phase]:
        if self.scaling > 0 and self.solver == "normal":
            first, second = self._scaled(self.damping, 0.0), self._scaled(self.damping / 10, self.scaling)
        else:
            first = second = self.optimiser(solver(self.solver, self.damping))
        if self.slabs > 1:
            return self._marching(task, first, second)
        uniform, adaptive, kept = self._samplers(task)
        warm = Phase(first, uniform, self.warm_steps, self.warm, name="uniform points")
        short = Phase(first, uniform, self.single_steps or 1, self.warm, single=True, name="single precision")
        fresh = Phase(second, adaptive, self.fresh, name="adaptive points")
        last = self._last(task, second, kept) if self.fresh < INFINITE else []
        return [*([short] if self.single_steps else []), warm, fresh, *last]

    def start(self, task: Any, params: Any) -> Any:
        """As slabs, where there are any."""
        if self.slabs == 1:
            return params
        from angd.problems.slabs import Slabs, check

        check(task.problem, task.name)
        return params if isinstance(params, Slabs) else Slabs.of(params, task.problem.domain.intervals[0], self.slabs)

    def _marching(self, task: Any, first: Any, second: Any) -> list[Phase]:
        """One slab after the other, each with an equal share of the budget."""
        from angd.problems.slabs import InSlab, Next, OfSlab, check

        check(task.problem, task.name)
        uniform, _, kept = (OfSlab(sampler) for sampler in self._samplers(task))
        first, second = InSlab(first), InSlab(second)
        shares = [i / self.slabs for i in range(1, self.slabs)]
        warm = Phase(first, uniform, self.warm_steps, self.warm, share=shares[0], name="slab 1, uniform points")
        slabs = [Phase(second, kept, share=share, name=f"slab {i}") for i, share in enumerate([*shares, INFINITE], 1)]
        return [warm, slabs[0], *(replace(phase, grow=Next()) for phase in slabs[1:])]

    def _last(self, task: Any, optimiser: Any, kept: Any) -> list[Phase]:
        """Points that serve several steps, for the first network and for those on top of it."""
        from angd.problems.stages import Grow, OnTop
        from angd.recipes.stages import Crawl, stacks

        if self.stages == 0 or not stacks(task):
            return [Phase(optimiser, kept, name="kept points")]
        slow = Crawl(least=-(-STAGE // self.keep))
        first = Phase(optimiser, kept, until=slow, name="kept points")
        above = Phase(OnTop(optimiser), self._rolling(task), until=Crawl(least=STAGE), grow=Grow(), name="stages")
        return [first, replace(above, rounds=self.stages)]

    def _rolling(self, task: Any) -> Any:
        """The points of networks on top: more of them, each serves `keep` steps, and some are new in every step."""
        from angd.problems.pinn import Rolling

        counts = [round(self.more * n) for n in (self.interior, self.condition)]
        few = [max(1, n // self.keep) for n in counts]
        whole, part = (replace(self, interior=n, condition=m)._samplers(task)[1] for n, m in (counts, few))
        return Rolling(whole, part)

    def optimiser(self, solver: Any) -> Any:
        """Steps in the energy metric, with a solver."""
        import angd

        if self.momentum > 0:
            solver = angd.ProjectedMomentum(self.momentum, solver)
        flow = angd.ARGFlow.momentum(self.mu, self.rate) if self.mu > 0 else angd.ARGFlow.gradient(self.rate)
        damper = self.damper()
        controller = angd.in_turn([angd.Restart(), damper]) if self.restart else damper
        return angd.ANGD(flow, angd.Energy(), solver, controller, transport(self.transport))

    def _scaled(self, damping: float, power: float) -> Any:
        """Both phases have the same step with other numbers, which are arrays: XLA compiles it once."""
        import jax.numpy as jnp

        import angd

        return self.optimiser(angd.Scaled(angd.Normal(jnp.asarray(damping)), jnp.asarray(power)))

    def damper(self) -> Any:
        """What sets the damping."""
        import angd

        if address.is_address(self.controller):
            return made(self.controller, "controller")
        if self.controller == "trust-region":
            return angd.TrustRegion()
        return angd.LevenbergMarquardt(geodesic=0.75) if self.geodesic else angd.LevenbergMarquardt()

    def _samplers(self, task: Any) -> tuple[Any, Any, Any]:
        """Uniform points, adaptive ones, and adaptive ones that serve several steps."""
        if task.samples is not None:
            return (task.sampler(),) * 3
        from angd.problems.pinn import Adaptive, Balanced, Causal, Renewed, Uniform

        counts = task.counts(self.interior, self.condition)
        uniform, adaptive = Uniform(**counts), Adaptive(**counts)
        if self.causal > 0:
            uniform, adaptive = Causal(uniform, self.causal), Causal(adaptive, self.causal)
        if self.balance > 0:
            uniform, adaptive = Balanced(uniform, self.balance), Balanced(adaptive, self.balance)
        return uniform, adaptive, Renewed(adaptive, self.keep) if self.keep > 1 else adaptive


@dataclass(frozen=True)
class Sobolev(Recipe):
    """H^s as the metric (L² for s = 0), accelerated where μ > 0; `beta` in units of the step, β = `beta` √rate.

    For problems with `field` and `loss`, in particular differential equations.

    **Arguments:** see `angd run burgers angd-l2 --help`; `rate` and `damping` are the ones to tune.
    """

    either: ClassVar[tuple[tuple[str, str], ...]] = (("mu", "alpha"),)

    metric: str = one_of("l2", "h1", "h2", about="the Sobolev space", own="metric")
    rate: float = number(1e-2, 1e-9, 1e6, "h² γ")
    mu: float = number(0, 0, 0.9999, "momentum μ = 1 − hα at the start; 0 is plain natural gradient descent")
    alpha: float = number(0, 0, 1e6, ALPHA)
    beta: float = number(0, 0, 100, "Hessian-driven damping β / h at the start")
    h_decay: float = number(0, 0, 10, H_DECAY)
    alpha_decay: float = number(0, 0, 10, ALPHA_DECAY)
    beta_decay: float = number(0, 0, 10, BETA_DECAY)
    damping: float = number(1e-3, 1e-12, 1e6, "λ")
    solver: str = one_of("normal", "iterative", "kfac", about=SOLVER, own="solver")
    transport: str = one_of(
        "jvp", "current", "printed", about="how momentum crosses; printed: the covector, as in the paper"
    )
    search: bool = switch(True, "line search; constant steps diverge on fresh points at rates fine on fixed ones")
    points: str = one_of("fresh", "sobol", "fixed", "adaptive", about=POINTS)
    weight_decay: float = number(0, 0, 1, "θ shrinks by weight_decay × rate in every step")
    interior: int = number(1000, 1, 1e7, "points inside the domain")
    condition: int = number(250, 1, 1e7, "points of each initial or boundary condition")

    def contradiction(self) -> str | None:
        return too_much_friction(self) or without_effect(self, self._idle(), Sobolev)

    def _idle(self) -> tuple[str, ...]:
        """Options that the method does not have."""
        return ("h_decay", "alpha_decay") if self.mu == self.alpha == 0 else ()

    def phases(self, task: Any, seed: int = 0) -> list[Phase]:
        return [Phase(self.optimiser(), points(self, task, seed))]

    def optimiser(self) -> Any:
        """What is tuned enters as arrays, so that a sweep compiles once."""
        import jax.numpy as jnp

        import angd
        from angd.method import baselines
        from angd.recipes.tuned import flow_of

        found = angd.ANGD(
            flow_of(self, self.beta * self.rate**0.5),
            self.space(),
            solver(self.solver, jnp.asarray(self.damping)),
            self.control(),
            transport(self.transport),
        )
        return baselines.Decayed(found, jnp.asarray(self.weight_decay * self.rate)) if self.weight_decay > 0 else found

    def space(self) -> Any:
        """The metric."""
        import angd

        if address.is_address(self.metric):
            return made(self.metric, "metric")
        order = {"l2": 0, "h1": 1, "h2": 2}[self.metric]
        return angd.Hs(order) if order else angd.L2()

    def control(self) -> Any:
        """The controller."""
        import angd

        return angd.LineSearch() if self.search else angd.Constant()


def too_much_friction(recipe: Any) -> str | None:
    """A sentence about an α for which momentum would change sign in every step."""
    largest = recipe.rate**-0.5
    if recipe.alpha <= largest:
        return None
    return f"alpha must be at most 1/√rate = {largest:g}, got {recipe.alpha:g}: μ = 1 − hα with h = √rate."


def points(recipe: Any, task: Any, seed: int) -> Any:
    """The sampler of a recipe with options `points`, `interior` and `condition`, or the task's own samples."""
    if task.samples is not None:
        return task.sampler()
    import jax

    from angd.problems.pinn import Adaptive, Fixed, Renewed, Sobol, Uniform

    counts = task.counts(recipe.interior, recipe.condition)
    if recipe.points == "adaptive":
        return Renewed(Adaptive(**counts), ADAPT_EVERY)
    if recipe.points == "fixed":
        return Fixed(Uniform(**counts), jax.random.key(seed))
    return Sobol(**counts) if recipe.points == "sobol" else Uniform(**counts)


def solver(name: str, damping: Any) -> Any:
    """A solver by its name, or of one's own, called with the damping."""
    import angd

    if address.is_address(name):
        return address.load(name, "solver")(damping)

    return {"normal": angd.Normal, "iterative": angd.Iterative, "kfac": angd.KFAC}[name](damping)


def made(text: str, what: str) -> Any:
    """An object of somebody's own at an address, or what is made by calling it without arguments."""
    found = address.load(text, what)
    return found() if isinstance(found, type) or inspect.isfunction(found) else found


def transport(name: str) -> Any:
    """A transport of momentum by its name."""
    import angd

    return {"jvp": angd.JVP, "current": angd.CurrentJVP, "printed": angd.Printed}[name]()
