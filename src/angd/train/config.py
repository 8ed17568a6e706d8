"""A run as data: what `config.json` holds, complete, so that running it again gives the same numbers. Nothing heavy."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from angd.recipes.base import Recipe, unknown
from angd.recipes.experiments import experiment, preset
from angd.recipes.named import named

CHOICES = {"network": ("small", "paper"), "precision": ("f64", "f32")}
RANGES = {
    "seed": (int, 0, 10**9),
    "max_refusals": (int, 1, 10**9),
    "max_steps": (int, 1, 10**12),
    "max_seconds": (float, 1e-3, 1e9),
    "max_cpu_seconds": (float, 1e-3, 1e9),
}
BUDGETS = ("max_steps", "max_seconds", "max_cpu_seconds")


@dataclass(frozen=True)
class Config:
    """One run. `options` are complete: every option of the optimiser with its value."""

    experiment: str
    optimizer: str
    options: Mapping[str, Any]
    network: str = "small"
    seed: int = 0
    precision: str = "f64"
    max_steps: int | None = None
    max_seconds: float | None = None
    max_cpu_seconds: float | None = None
    max_refusals: int = 50

    @classmethod
    def of(
        cls, experiment_name: str, optimizer: str | None = None, changes: Mapping[str, Any] | None = None, **rest: Any
    ) -> "Config":
        """From names and changes; without any limit, the experiment's usual CPU seconds."""
        check_settings(rest)
        if optimizer is None and rest.get("network") == "paper":
            optimizer = experiment(experiment_name).large
        name, recipe = preset(experiment_name, optimizer, changes or {})
        found = cls(experiment_name, name, recipe.options(), **rest)
        if all(getattr(found, limit) is None for limit in BUDGETS):
            found = replace(found, max_cpu_seconds=experiment(experiment_name).cpu_seconds)
        return found

    def preset(self) -> Recipe:
        """The recipe."""
        return named(self.optimizer).recipe.changed(dict(self.options), self.optimizer)

    def with_budget(self, **limits: Any) -> "Config":
        """With other limits; those that are not named fall away, and nothing changes where none is."""
        given = {name: value for name, value in limits.items() if value is not None}
        if not given:
            return self
        check_settings(given)
        return replace(self, **dict.fromkeys(BUDGETS, None) | given)

    def changes(self) -> dict[str, Any]:
        """Options that differ from the preset's."""
        plain = Config.of(self.experiment, self.optimizer, max_steps=1)
        return {name: value for name, value in self.options.items() if plain.options[name] != value}

    def differences(self, other: "Config") -> list[str]:
        """What would make another run of this one: everything but the limits."""
        mine, theirs = self.to_dict(), other.to_dict()
        free = {*BUDGETS, "max_refusals", "options"}
        names = [name for name in mine if name not in free and mine[name] != theirs[name]]
        keys = mine["options"].keys() | theirs["options"].keys()
        return names + sorted(k for k in keys if mine["options"].get(k) != theirs["options"].get(k))

    def to_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        found = asdict(self)
        found["options"] = {k: "inf" if v == math.inf else v for k, v in self.options.items()}
        return found

    @classmethod
    def from_dict(cls, data: Any, source: str) -> "Config":
        """Read back, with a sentence for whatever is wrong."""
        if not isinstance(data, dict) or not {"experiment", "optimizer"} <= data.keys():
            raise ValueError(f"{source} is not the configuration of a run: it names no experiment and optimizer.")
        known = {spec.name for spec in fields(cls)}
        for name in data:
            if name not in known:
                raise ValueError(f"{source}: {unknown('setting', name, known)}")
        options = data.get("options", {})
        if not isinstance(options, dict):
            raise ValueError(f"{source}: options must be an object of names and values.")
        rest = {k: v for k, v in data.items() if k not in ("experiment", "optimizer", "options")}
        try:
            return cls.of(data["experiment"], data["optimizer"], options, **rest)
        except ValueError as error:
            raise ValueError(f"{source}: {error}") from None

    @classmethod
    def read(cls, path: Path) -> "Config":
        """From a file."""
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise ValueError(f"There is no file {str(path)!r}.") from None
        except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
            raise ValueError(f"{str(path)!r} cannot be read as JSON: {error}.") from None
        return cls.from_dict(data, repr(str(path)))


def check_settings(settings: Mapping[str, Any]) -> None:
    """Refuse values out of range in one sentence that names the option."""
    for name, value in settings.items():
        option = f"--{name.replace('_', '-')}"
        if name in CHOICES and value not in CHOICES[name]:
            raise ValueError(f"{option} must be one of {', '.join(CHOICES[name])}, got {value!r}.")
        if name in RANGES and value is not None:
            kind, low, high = RANGES[name]
            words = "a whole number" if kind is int else "a number"
            fits = isinstance(value, int | kind) and not isinstance(value, bool) and low <= value <= high
            if not fits:
                raise ValueError(f"{option} must be {words} from {low:g} to {high:g}, got {value!r}.")
