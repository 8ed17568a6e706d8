"""What a recipe is: options with ranges and texts, and the phases of training they lead to. Imports nothing heavy.

    Recipe      options → phases(task)        one frozen dataclass per recipe; bad values are refused in one sentence
    Phase       an optimiser on the points of a sampler, for some steps

A recipe of your own is one class:

    @dataclass(frozen=True)
    class Mine(Recipe):
        '''Gauss–Newton with constant damping.'''

        damping: float = number(1e-3, 1e-12, 1e6, "λ")

        def phases(self, task, seed=0):
            return [Phase(angd.ANGD(...), task.sampler())]
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields, replace
from difflib import get_close_matches
from typing import Any, ClassVar

from angd import address

INFINITE = float("inf")
Grid = Mapping[str, tuple[Any, ...]]


def number(default: float, low: float, high: float, about: str) -> Any:
    """An option that is a number, with its range and text.

    **Arguments:**

    - `default`: in the range.
    - `low`: the smallest value that is allowed.
    - `high`: the largest one.
    - `about`: a few words for `--help`.

    **Returns:** a field of a `Recipe`; annotate it `int` for whole numbers, `float` for others.
    """
    return field(default=default, metadata={"low": low, "high": high, "about": about})


def one_of(*choices: str, about: str, own: str = "") -> Any:
    """An option that is one of several words, the first by default.

    **Arguments:**

    - `*choices`: the words.
    - `about`: a few words for `--help`.
    - `own`: what an address (`file.py:name`) would be, e.g. "solver", where objects of one's own are welcome.

    **Returns:** a field of a `Recipe`; annotate it `str`.
    """
    return field(default=choices[0], metadata={"choices": choices, "about": about, "own": own})


def switch(default: bool, about: str) -> Any:
    """An option that is on or off.

    **Arguments:**

    - `default`: on or off.
    - `about`: a few words for `--help`.

    **Returns:** a field of a `Recipe`; annotate it `bool`.
    """
    return field(default=default, metadata={"choices": (True, False), "about": about})


def unknown(kind: str, name: Any, known: Any) -> str:
    """A sentence about a name that nobody knows, with the nearest one."""
    near = get_close_matches(str(name), [str(k) for k in known], 1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(map(str, sorted(known)))}."
    return f"There is no {kind} called {name!r}; {hint}"


@dataclass(frozen=True)
class Phase:
    """`steps` steps of an optimiser on the points of a sampler.

    A phase begins with the parameters of the one before it. With the same optimiser, damping and momentum continue as
    well, and where it `follows`, so do the samples.

    **Arguments:**

    - `optimiser`: an object with `init(problem, params, samples)` and `step(problem, params, samples, state)`.
    - `sampler`: a function `(key, problem, params)` → samples, called every `sampler.every` steps (1 by default); one
      with `move(key, problem, params, samples)`, a Markov chain, is called once and moves its samples before every
      step.
    - `steps`: how many, at most; infinite for the last phase.
    - `below`: the phase ends when the loss is below this number.
    - `until`: it also ends when `until(losses, steps, seconds)` is true, asked after every step at new points: the
      losses of the phase at points that no step had seen, and what the budget has left. None is never.
    - `share`: it also ends when this share of the budget is used; infinite is never.
    - `grow`: a function `(key, problem, params, loss)` → the parameters with which the phase begins, perhaps of another
      structure, where it is not the first; `loss` is the last one at new points. None leaves them as they are.
    - `rounds`: when the phase ends, it begins again, so often in all.
    - `single`: train in single precision; solvers may still solve their systems in double.
    - `follows`: keep the samples of the phase before.
    - `pretraining`: its loss is not that of the problem, so errors and energies are not evaluated.
    - `name`: a word or two for the line of progress and for reports.
    """

    optimiser: Any
    sampler: Any
    steps: float = INFINITE
    below: float = -INFINITE
    until: Callable[[Sequence[float], float, float], bool] | None = None
    share: float = INFINITE
    grow: Callable[[Any, Any, Any, Any], Any] | None = None
    rounds: int = 1
    single: bool = False
    follows: bool = False
    pretraining: bool = False
    name: str = ""

    def __post_init__(self):
        if not self.steps >= 1:
            raise ValueError(f"Phase: steps must be at least 1, got {self.steps}.")
        if not self.share > 0:
            raise ValueError(f"Phase: share must be positive, got {self.share}.")
        if not self.rounds >= 1:
            raise ValueError(f"Phase: rounds must be at least 1, got {self.rounds}.")


@dataclass(frozen=True)
class Recipe:
    """A way to train: its fields are its options, `phases` says what is done.

    Fields are declared with `number`, `one_of` or `switch`, which carry range and text. They are checked when the
    recipe is made, in Python and on the command line alike.

    **Attributes:** `grid` has the values that a sweep tries, `paper` those of the paper's grid; `double` says that it
    needs double precision to be accurate; `either` has pairs of options that say the same thing, so that one
    takes the other's place.
    """

    grid: ClassVar[Grid] = {}
    paper: ClassVar[Grid] = {}
    double: ClassVar[bool] = True
    either: ClassVar[tuple[tuple[str, str], ...]] = ()

    def __post_init__(self):
        for spec in fields(self):
            value = getattr(self, spec.name)
            flaw = _flaw(spec, value)
            if flaw:
                raise ValueError(f"{type(self).__name__}: {spec.name} {flaw}")
            if kind_of(spec) in (int, float):
                object.__setattr__(self, spec.name, kind_of(spec)(value))
        contradiction = self.contradiction()
        if contradiction:
            raise ValueError(f"{type(self).__name__}: {contradiction}")

    def contradiction(self) -> str | None:
        """A sentence about options that do not go together; None where all is well."""
        return None

    def problem(self, task: Any) -> Any:
        """The task's problem as this recipe trains it."""
        return task.problem

    def start(self, task: Any, params: Any) -> Any:
        """The first parameters as this recipe trains them, from those of the task or of another run."""
        return params

    def phases(self, task: Any, seed: int = 0) -> list[Phase]:
        """What is done.

        **Arguments:** `task`, an `angd.Task`; `seed`, for points that stay the same throughout a run.

        **Returns:** the phases, one after the other.
        """
        raise NotImplementedError(f"{type(self).__name__} must say how it trains: define phases(self, task, seed).")

    def final(self, task: Any, observables: Any = None) -> Callable[[Any, Any], dict[str, Any]] | None:
        """A final evaluation `(params, key)` with `error` and `standard_error`, where steps are not the last word, and
        with `observables`, functions by name."""
        return None

    def changed(self, changes: Mapping[str, Any], name: str | None = None) -> Any:
        """With other values, given as numbers or as text; `name` is how messages call the recipe.

        **Returns:** a new recipe. Unknown options and values out of range raise one sentence.
        """
        known, label = {spec.name: spec for spec in fields(self)}, name or type(self).__name__
        for option in changes:
            if option not in known:
                raise ValueError(unknown(f"option of {label}", option, known))
        typed = {option: as_type(kind_of(known[option]), value) for option, value in changes.items()}
        flaws = {option: _flaw(known[option], value) for option, value in typed.items()}
        for option, flaw in flaws.items():
            if flaw:
                raise ValueError(f"{label}: {option} {flaw}")
        for pair in self.either:
            given = [option for option in pair if typed.get(option)]
            if len(given) > 1:
                raise ValueError(f"{label}: {' and '.join(given)} say the same thing; give one of them.")
            typed |= {option: 0 for option in pair if given and option not in given}
        try:
            return replace(self, **typed)
        except ValueError as error:
            raise ValueError(f"{label}: {str(error).removeprefix(f'{type(self).__name__}: ')}") from None

    def options(self) -> dict[str, Any]:
        """Every option with its value."""
        return {spec.name: getattr(self, spec.name) for spec in fields(self)}


def without_effect(recipe: Recipe, names: Iterable[str], usual: type[Recipe]) -> str | None:
    """A sentence about the first of these options that is not as usual, though the method does not have it."""
    defaults = {spec.name: spec.default for spec in fields(usual)}
    idle = [name for name in names if getattr(recipe, name) != defaults[name]]
    return f"{idle[0]} has no effect on this method; leave it out." if idle else None


def kind_of(spec: Field[Any]) -> Any:
    """The type of an option, also where annotations are text (`from __future__ import annotations`)."""
    return {"int": int, "float": float, "bool": bool, "str": str}.get(str(spec.type), spec.type)


def _flaw(spec: Field[Any], value: Any) -> str | None:
    """What is wrong with a value."""
    about = spec.metadata
    if about.get("own") and isinstance(value, str) and address.is_address(value):
        address.check(value, about["own"])
    elif "choices" in about and not any(value is choice or value == choice for choice in about["choices"]):
        ending = f", or the address of a {about['own']} of your own" if about.get("own") else ""
        return f"must be one of {', '.join(map(str, about['choices']))}{ending}, got {value!r}."
    if "low" in about and not (_is_number(value) and about["low"] <= value <= about["high"]):
        return f"must be a number from {about['low']:g} to {about['high']:g}, got {value!r}."
    if kind_of(spec) is int and not (isinstance(value, int | float) and value == int(value)):
        return f"must be a whole number, got {value!r}."
    return None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value  # not NaN


def as_type(kind: Any, value: Any) -> Any:
    """A value, perhaps text, in the type of its option, or as it is where that cannot be."""
    if kind is bool:
        return {"true": True, "yes": True, "false": False, "no": False}.get(str(value).lower(), value)
    if kind is str or isinstance(value, bool):
        return value
    try:
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        return value
    return int(found) if kind is int and math.isfinite(found) and found == int(found) else found
