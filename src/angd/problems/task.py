"""A task: a problem with what is known beside it. Imports nothing heavy.

    Task(problem)                        a bare problem is a task: it runs, and is judged by its held-out loss
    Task(problem, exact=u)               with a solution, to which errors are measured
    Task(problem, reference=(z, {...}))  with values on a grid
    Task(GroundState(...), samples=chain, params=start)   a Hamiltonian of one's own
    Task.of(molecule)                    a molecule with its network and Hamiltonian

Everything that trains, compares, draws and reports works from tasks; built-in ones are in `angd.problems.library`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

TEST_POINTS, TEST_KEY = 4096, 20261116
GRID = {1: (401,), 2: (101, 201)}  # points along each coordinate of what is drawn
Values = Mapping[str, Any]
Reference = tuple[Any, Values]


@dataclass(frozen=True, eq=False)
class Task:
    """A problem to be trained on, with what is known about it.

    **Arguments:**

    - `problem`: any problem that metrics understand (`residual` or `residuals`; `field` and `loss`; `log_density` and
      `variation`).
    - `name`, `about`: for folders and reports; `about` is one line.
    - `exact`: the solution at one point, `z` → number or vector, a JAX function. Optional.
    - `reference`: points and values of each field there, `(z, {"u": values})`, or a function that returns them, of
      nothing or of the numbers of points along each coordinate (None for the usual ones); instead of `exact`.
      Optional.
    - `energy`: the reference energy of a ground state. Optional.
    - `fields`: names of the components of the field, `("u",)` by default.
    - `coordinates`: names of the coordinates, for figures.
    - `observables`: numbers worth recording, by name: functions of the parameters.
    - `held_out`: samples that no optimiser sees, for the test loss. Drawn in the domain where the problem has one.
    - `params`: the first parameters. By default the problem's own `init`, or that of its wave function, gives them.
    - `init`: a function of a key that gives them, instead.
    - `samples`: `Samples`, a dictionary of them, a sampler `(key, problem, params)` → samples, or a Markov chain with
      `move`. By default the recipe draws points in the problem's domain.
    - `options`: options of the default recipe that suit this task.
    - `cpu_seconds`: how long a run takes when nobody says.
    - `address`, `arguments`: where the program finds it again; set by whoever looked it up.
    - `equation`: what is solved, as one line of text, for reports: "u_t + u u_x = ν u_xx".
    """

    problem: Any
    name: str = "problem"
    about: str = ""
    exact: Callable[[Any], Any] | None = None
    reference: Reference | Callable[..., Reference] | None = None
    energy: float | None = None
    fields: tuple[str, ...] | None = None
    coordinates: tuple[str, ...] | None = None
    observables: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)
    held_out: Any = None
    params: Any = None
    init: Callable[[Any], Any] | None = None
    samples: Any = None
    options: Mapping[str, Any] = field(default_factory=dict)
    cpu_seconds: float = 60.0
    address: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    equation: str = ""

    def __post_init__(self):
        if isinstance(self.problem, Task):
            raise ValueError("Task: the problem is a task already; use dataclasses.replace to change it.")
        if self.exact is not None and self.reference is not None:
            raise ValueError("Task: give exact, a function of a point, or reference, points and values; not both.")

    @classmethod
    def of(cls, what: Any, **known: Any) -> "Task":
        """A task from whatever says what is to be solved.

        **Arguments:** `what`, a `Task`, a problem, or a `Molecule`; `known`, arguments of `Task` to set.

        **Returns:** a task.
        """
        if isinstance(what, Task):
            return replace(what, **known) if known else what
        if hasattr(what, "symbols") and hasattr(what, "spins"):
            from angd.problems.vmc.molecules import as_task

            return as_task(what, **known)
        if not any(hasattr(what, name) for name in ("residual", "residuals", "log_density", "loss", "field")):
            raise ValueError(
                f"A {type(what).__name__} is not a problem: it needs `residual` or `residuals`, `log_density` and "
                "`variation`, or `field` and `loss` (or `variation`, or `cost`)."
            )
        return cls(what, **known)

    @property
    def is_residual(self) -> bool:
        """Does the problem have residuals?"""
        return hasattr(self.problem, "residuals") or hasattr(self.problem, "residual")

    @property
    def is_density(self) -> bool:
        """Is a probability density sought?"""
        known = hasattr(self.problem, "variation") or self.is_drawn
        return hasattr(self.problem, "log_density") and known

    @property
    def is_drawn(self) -> bool:
        """Does the problem draw independent samples of its density, `draw(params, key, n)`?"""
        return hasattr(self.problem, "draw")

    def start(self, key: Any) -> Any:
        """The first parameters, as arrays."""
        import jax
        import jax.numpy as jnp

        made = self.params
        if made is None:
            wave = getattr(self.problem, "log_psi", None)
            init = self.init or getattr(self.problem, "init", None) or getattr(wave, "init", None)
            if init is None:
                raise ValueError(
                    f"{self.name}: where does training start? Give params=, or a problem (or task) with init(key)."
                )
            made = init(key)
        return jax.tree.map(jnp.asarray, made)

    @cached_property
    def size(self) -> int:
        """How many parameters there are."""
        import jax

        from angd.tree import count

        return count(self.start(jax.random.key(0)))

    def sampler(self) -> Any:
        """The task's samples as a sampler."""
        from angd.problems.samplers import as_sampler

        return as_sampler(self.samples, self.name)

    def draws(self, n: int, every: float = 1) -> Any:
        """A sampler of n points that the problem draws by itself, each for so many steps."""
        from angd.problems.samplers import Drawn

        return Drawn(n, every)

    def counts(self, interior: int, condition: int) -> dict[str, int]:
        """How many points each term of a differential equation gets.

        Measurements are used in every step, all of them, unless they are more than the points inside.
        """
        if not hasattr(self.problem, "places"):
            raise ValueError(
                f"{self.name}: a {type(self.problem).__name__} has no domain to draw points in; give samples=: "
                "Samples, or a sampler (key, problem, params) -> Samples."
            )
        places = self.problem.places().items()
        counts = {name: interior if name == "interior" else condition for name, _ in places}
        measured = {name: place.count for name, place in places if getattr(place, "count", None)}
        return counts | {name: count for name, count in measured.items() if count <= interior}

    def rows(self, interior: int, condition: int) -> float:
        """How many residuals there are, with so many points; infinite where that is not known beforehand."""
        from angd.problems.samplers import count_rows

        return count_rows(self, interior, condition)

    def field(self, params: Any, x: Any) -> Any:
        """The trained field, log|ψ| or log ρ at points along a leading axis.

        **Arguments:** `params`; `x`, an array whose first axis counts points.

        **Returns:** an array of values, one for each point.
        """
        import jax

        return jax.vmap(self.at_point, (None, 0))(params, x)

    def at_point(self, params: Any, x: Any) -> Any:
        """The same at one point."""
        if hasattr(self.problem, "field"):
            return self.problem.field(params, x)
        if hasattr(self.problem, "log_psi"):
            return self.problem.log_psi(params, x)[1]
        if hasattr(self.problem, "log_density"):
            return self.problem.log_density(params, x)
        raise ValueError(f"{self.name}: a {type(self.problem).__name__} has no `field`; use fit.params.")
