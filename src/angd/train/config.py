"""A run as data: what `config.json` holds, complete, so that running it again gives the same numbers. Nothing heavy."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from angd import address
from angd.problems.library import TASKS
from angd.problems.lookup import check_task
from angd.recipes.base import Recipe, unknown
from angd.recipes.choice import check_fit, suited
from angd.recipes.named import named

FORMAT = 2
BUDGETS = ("steps", "seconds", "cpu_seconds")
RANGES = {
    "seed": (int, 0, 10**9),
    "max_rejections": (int, 1, 10**9),
    "recover": (int, 0, 10**9),
    "steps": (int, 1, 10**12),
    "seconds": (float, 1e-3, 1e9),
    "cpu_seconds": (float, 1e-3, 1e9),
    "memory": (int, 1, 10**18),
}
PRECISIONS = ("f64", "f32")
FREE = {*BUDGETS, "max_rejections", "recover", "source", "memory"}  # what may change while a run remains the same


@dataclass(frozen=True)
class Config:
    """One run.

    **Attributes:**

    - `task`: where the task is found: a built-in name, `file.py:name`, `package.module:name`, `water.xyz`; for a run
      from Python, its name.
    - `recipe`: a name or address of a recipe, None until the task is known and has chosen; for an optimiser that was
      made in Python, what it looks like.
    - `options`: those of the recipe that differ from its defaults, all of them once the task is known.
    - `arguments`: of the task, `network`, `charge`, `spin`.
    - `seed`: for parameters and samples.
    - `precision`: "f64" or "f32".
    - `steps`, `seconds`, `cpu_seconds`: the budget; None is no limit.
    - `max_rejections`: so many rejected steps in a row end the run.
    - `recover`: go back to the last good state after so many steps in a row that are not finite; 0 is never.
    - `memory`: bytes that a step may take; None is a part of what the device has.
    - `source`: the user's file and a hash of its text.
    - `start`: of a branch, the folder and the step whose parameters it starts from, and a hash of them.
    - `python`: the run was begun by a call of `angd.fit` that the program cannot repeat.
    """

    task: str
    recipe: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    arguments: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    precision: str = "f64"
    steps: int | None = None
    seconds: float | None = None
    cpu_seconds: float | None = None
    max_rejections: int = 50
    recover: int = 0
    memory: int | None = None
    source: Mapping[str, str] | None = None
    start: Mapping[str, Any] | None = None
    python: bool = False

    @classmethod
    def of(
        cls,
        task: str,
        recipe: str | None = None,
        changes: Mapping[str, Any] | None = None,
        arguments: Mapping[str, Any] | None = None,
        **rest: Any,
    ) -> "Config":
        """From names and changes: all that can be refused without building the task is refused here, and only here."""
        source = rest.pop("source", None) or address.source(task)
        check_settings(rest)
        given = dict(arguments or {})
        check_task(address.found(task, source), given)
        given = {name: value for name, value in given.items() if (name, value) != ("network", "small")}
        recipe, density = usual_recipe(task, given) if recipe is None else recipe, is_density(task)
        if recipe is not None and density is not None:
            check_fit(recipe, density, task)
        if changes and recipe is None:
            raise ValueError(f"Say whose options these are: {task} RECIPE --{next(iter(changes))} …, e.g. {task} adam.")
        options = {} if recipe is None else _typed(recipe, changes or {})
        return cls(task, recipe, options, given, source=source, **rest)

    def completed(self, task: Any) -> tuple["Config", Recipe]:
        """With everything that the task decides: recipe, all options, and a limit.

        **Arguments:** `task`, an `angd.Task`.

        **Returns:** the configuration as it is written down, and the recipe.
        """
        from angd.recipes.choice import default

        name = default(task) if self.recipe is None else self.recipe
        check_fit(name, task.is_density, task.name)
        recipe = suited(named(name).recipe, task, self.options, name)
        limits = {} if self.is_limited else {"cpu_seconds": task.cpu_seconds}
        return replace(self, recipe=name, options=recipe.options(), **limits), recipe

    @property
    def place(self) -> str:
        """Where the task is found now: its file by its full path, where one is not in the folder of the first call."""
        return address.found(self.task, self.source)

    @property
    def is_limited(self) -> bool:
        return any(getattr(self, name) is not None for name in BUDGETS)

    def with_budget(self, **limits: Any) -> "Config":
        """With other limits; those that are not named fall away, and nothing changes where none is."""
        given = {name: value for name, value in limits.items() if value is not None}
        if not given:
            return self
        check_settings(given)
        return replace(self, **dict.fromkeys(BUDGETS, None) | given)

    def changes(self) -> dict[str, Any]:
        """Options that differ from what the recipe's name and the task say by themselves."""
        if self.recipe is None or self.python:
            return dict(self.options)
        plain = named(self.recipe).recipe
        if self.task in TASKS:
            plain = suited(plain, TASKS[self.task])
        return {name: value for name, value in self.options.items() if plain.options().get(name) != value}

    def differences(self, other: "Config") -> list[str]:
        """What would make another run of this one: everything but the limits."""
        mine, theirs = self.to_dict(), other.to_dict()
        names = [name for name in mine if name not in {*FREE, "options"} and mine[name] != theirs[name]]
        keys = mine["options"].keys() | theirs["options"].keys()
        return names + sorted(k for k in keys if mine["options"].get(k) != theirs["options"].get(k))

    def to_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        found = {"format": FORMAT} | asdict(self)
        found["options"] = {k: "inf" if v == math.inf else v for k, v in self.options.items()}
        return found

    @classmethod
    def from_dict(cls, data: Any, source: str) -> "Config":
        """Read back, with a sentence for whatever is wrong."""
        _check_form(data, source, {spec.name for spec in fields(cls)})
        settings = {k: v for k, v in data.items() if k in RANGES or k in ("precision", "source", "start")}
        if data.get("python"):
            check_settings({k: v for k, v in settings.items() if k != "source"})
            return cls(**{k: v for k, v in data.items() if k != "format"})
        try:
            return cls.of(data["task"], data["recipe"], data.get("options"), data.get("arguments"), **settings)
        except ValueError as error:
            raise ValueError(f"{source}: {error}") from None

    @classmethod
    def read(cls, path: Path) -> "Config":
        """From a file."""
        if path.exists() and not path.is_file():
            raise ValueError(f"{str(path)!r} is not a file that can hold a configuration.")
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise ValueError(f"There is no file {str(path)!r}.") from None
        except (OSError, ValueError, RecursionError) as error:
            raise ValueError(f"{str(path)!r} cannot be read as JSON: {error}.") from None
        return cls.from_dict(data, repr(str(path)))


def usual_recipe(task: str, arguments: Mapping[str, Any]) -> str | None:
    """What a built-in task or a molecule is run with when nobody says; None where only the task itself can say."""
    if task in TASKS and TASKS[task].recipe is not None:
        return TASKS[task].recipe
    if is_density(task):
        return "angd-fr"
    if task not in TASKS:
        return None
    return "energy-large" if arguments.get("network") == "paper" else "energy"


def is_density(task: str) -> bool | None:
    """Whether a task seeks a density, None where that is not known before it is built."""
    return TASKS[task].density if task in TASKS else True if task.endswith(".xyz") else None


def check_settings(settings: Mapping[str, Any]) -> None:
    """Refuse values out of range in one sentence that names the option."""
    for name, value in settings.items():
        option = f"--{name.replace('_', '-')}"
        if name == "precision" and value not in PRECISIONS:
            raise ValueError(f"{option} must be one of {', '.join(PRECISIONS)}, got {value!r}.")
        if name in RANGES and not (value is None and name in (*BUDGETS, "memory")):
            kind, low, high = RANGES[name]
            words = "a whole number" if kind is int else "a number"
            fits = isinstance(value, int | kind) and not isinstance(value, bool) and low <= value <= high
            if not fits:
                raise ValueError(f"{option} must be {words} from {low:g} to {high:g}, got {value!r}.")
    if settings.get("recover", 0) >= settings.get("max_rejections", Config.max_rejections):
        raise ValueError("--recover must be smaller than --max-rejections, at which a run gives up.")


def _typed(recipe: str, changes: Mapping[str, Any]) -> dict[str, Any]:
    """A person's options, checked, in the types of the recipe."""
    made = named(recipe).recipe.changed(changes, recipe)
    return {name: getattr(made, name) for name in changes}


def _check_form(data: Any, source: str, known: set[str]) -> None:
    """Refuse what is no configuration, or one of another format."""
    if isinstance(data, dict) and "format" not in data and "experiment" in data:
        raise ValueError(f"{source} was written by an older version of angd, whose runs this one cannot continue.")
    if not isinstance(data, dict) or not {"task", "recipe", "format"} <= data.keys():
        raise ValueError(f"{source} is not the configuration of a run: it names no format, task and recipe.")
    if data["format"] != FORMAT:
        raise ValueError(f"{source} has format {data['format']!r}, and this version of angd reads {FORMAT}.")
    for name in data:
        if name not in known | {"format"}:
            raise ValueError(f"{source}: {unknown('setting', name, known)}")
    for name, kind in (
        ("task", str),
        ("recipe", str | None),
        ("options", dict),
        ("arguments", dict),
        ("source", dict | None),
        ("start", dict | None),
        ("python", bool),
    ):
        if name in data and not isinstance(data[name], kind):
            raise ValueError(f"{source}: {name} must not be {data[name]!r}.")
    _check_texts(data.get("source"), ("path", "sha256"), f"{source}: source")
    _check_texts(data.get("start"), ("folder", "sha256"), f"{source}: start")


def _check_texts(found: Any, names: tuple[str, ...], owner: str) -> None:
    """Refuse an object without these texts."""
    wrong = [] if found is None else [name for name in names if not isinstance(found.get(name), str)]
    if wrong:
        raise ValueError(f"{owner} must have a text {wrong[0]!r}, got {found!r}.")
