"""The command line: typed options of commands and recipes through tyro, and one sentence for whatever is wrong.

A recipe's fields are options of `angd run TASK RECIPE`, with their texts; `angd sweep TASK RECIPE` takes several values
for each. Task and recipe come first, because they decide which options there are. Imports nothing heavy.
"""

import io
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, suppress
from dataclasses import Field, field, fields, make_dataclass
from difflib import get_close_matches
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn

import tyro

from angd.problems.library import TASKS
from angd.problems.lookup import check_task
from angd.program.help import with_help
from angd.recipes.base import INFINITE, Recipe, kind_of
from angd.recipes.choice import suited
from angd.recipes.named import named
from angd.train.config import Config, usual_recipe
from angd.train.folder import RunFolder

# Options that may be left out; help shows their type alone.
Whole = Annotated[int | None, tyro.conf.arg(metavar="INT", help_behavior_hint="")]
Number = Annotated[float | None, tyro.conf.arg(metavar="FLOAT", help_behavior_hint="")]
Bytes = Annotated[str | None, tyro.conf.arg(metavar="BYTES", help_behavior_hint="")]
Place = Annotated[Path | None, tyro.conf.arg(metavar="PATH", help_behavior_hint="")]
Size = Annotated[str | None, tyro.conf.arg(metavar="small|paper", help_behavior_hint="(default: small)")]
Switch = Annotated[bool, tyro.conf.FlagCreatePairsOff, tyro.conf.arg(help_behavior_hint="")]
Paper = Annotated[Literal["narrow", "wide"] | None, tyro.conf.arg(metavar="narrow|wide", help_behavior_hint="")]
PLACES = ("--out", "--resume", "--config", "--from")  # options whose empty word would be the present folder
# What options of the first version are called now.
OLD = {
    "--set": "write the recipe's options out, e.g. angd run burgers energy --damping 1e-3.",
    "--optimizer": "the recipe is the second word: angd run burgers adam.",
    "--optimizers": "the recipes are the second word: angd compare burgers energy,adam.",
    "--max-steps": "it is --steps.",
    "--max-seconds": "it is --seconds.",
    "--max-cpu-seconds": "it is --cpu-seconds.",
    "--max-refusals": "it is --max-rejections.",
}


def parse(argv: Sequence[str], commands: Mapping[str, type]) -> Any:
    """The options of a command, as an object of its class, or of one with the options of a recipe added.

    **Arguments:** `argv`, without the program's name; `commands`, classes by name.

    **Returns:** the options; what cannot be read raises one sentence.
    """
    name, rest = argv[0], list(argv[1:])
    if name not in commands:
        hint = _near(name, list(commands), f"there are {', '.join(commands)}.")
        raise ValueError(f"There is no command {name!r}; {hint}")
    kind = commands[name]
    old = next((word for word in rest if word.partition("=")[0] in OLD), None)
    if old is not None:
        raise ValueError(_unrecognized(old, [], f"angd {name}"))
    empty = next((option for option in PLACES if _is_empty(option, rest)), None)
    if empty is not None:
        raise ValueError(f"{empty} must name a {'file' if empty == '--config' else 'folder'}, got nothing.")
    if getattr(kind, "of_recipe", False):
        recipe = recipe_of(rest)
        kind = with_recipe(kind, recipe, several=kind.several) if recipe is not None else kind
    return read(kind, rest, f"angd {name}")


def _is_empty(option: str, rest: Sequence[str]) -> bool:
    """Is an option given without a word after it that says something?"""
    return f"{option}=" in rest or any(pair == (option, "") for pair in pairwise(rest))


def recipe_of(rest: Sequence[str]) -> Recipe | None:
    """The recipe whose options a command line may have; None where only the task can say."""
    places = list(takewhile(lambda word: not word.startswith("-"), rest))
    config = _given_config(rest, bool(places))
    if config is not None:
        return None if config.recipe is None or config.python else named(config.recipe).recipe
    if not places:
        return None
    check_task(places[0], {})
    name = places[1] if len(places) > 1 else usual_recipe(places[0], {})
    if name is None:
        return None
    recipe = named(name).recipe
    return suited(recipe, TASKS[places[0]], name=name) if places[0] in TASKS else recipe


def _given_config(rest: Sequence[str], has_task: bool) -> Config | None:
    """The configuration that `--config FILE` names, or `--from DIR` where no task is named."""
    given = {word.partition("=")[0]: _value(rest, i) for i, word in enumerate(rest) if word.startswith("--")}
    if given.get("--config"):
        return Config.read(Path(given["--config"]))
    if given.get("--from") and not has_task:
        return Config.read(RunFolder(Path(given["--from"])).own_config())
    return None


def _value(rest: Sequence[str], i: int) -> str:
    """What follows an option, after `=` or as the next word."""
    return rest[i].partition("=")[2] or (rest[i + 1] if i + 1 < len(rest) else "")


def with_recipe(kind: type, recipe: Recipe, several: bool) -> type:
    """A class of options with those of a recipe added; each is None unless it is given."""
    own = [(spec.name, *_option(spec, getattr(recipe, spec.name), several)) for spec in fields(recipe)]
    made = make_dataclass(kind.__name__, own, bases=(kind,), frozen=True)
    made.__doc__ = kind.__doc__
    return made


def _option(spec: Field[Any], value: Any, several: bool) -> tuple[Any, Any]:
    """The type of an option, with its text, and its default."""
    about, kind = spec.metadata, kind_of(spec)
    shown = "inf" if value == INFINITE else value
    if kind is bool and not several:
        hint = f"(default: {'on' if value else 'off'})"
        text = about.get("about", "")
        return Annotated[bool, tyro.conf.arg(help=text, help_behavior_hint=hint)], field(default=value)
    metavar = {int: "INT", float: "FLOAT"}.get(kind, "TEXT")
    metavar = "|".join(map(str, about["choices"])) if "choices" in about else metavar
    bounds = f", from {about['low']:g} to {about['high']:g}" if "low" in about else ""
    text = f"{about.get('about', '')}{bounds} (default: {shown})"
    shape = f"{metavar},…" if several else metavar
    return Annotated[str | None, tyro.conf.arg(metavar=shape, help=text, help_behavior_hint="")], field(default=None)


def changes(options: Any, base: type) -> dict[str, Any]:
    """The recipe's options that were given: those that `base`, the command's own class, does not have."""
    known = {spec.name for spec in fields(base)}
    own = [spec for spec in fields(options) if spec.name not in known]
    return {spec.name: value for spec in own if (value := getattr(options, spec.name)) != spec.default}


def read(kind: type, rest: Sequence[str], prog: str) -> Any:
    """Arguments as an object; tyro shows help, and its complaints become one sentence."""
    try:
        from tyro._errors import on_parse_error
    except ImportError:  # another version of tyro: its box is not shown, the sentence says less
        return _read(kind, rest, prog)
    with on_parse_error(lambda event: _complain(event, kind, prog)):
        return _read(kind, rest, prog)


def _read(kind: type, rest: Sequence[str], prog: str) -> Any:
    said = io.StringIO()
    try:
        with redirect_stderr(said):
            if not {"-h", "--help"}.isdisjoint(rest):
                with_help(kind, prog, lambda: tyro.cli(kind, prog=prog, args=["--help"]))
                raise SystemExit(0)
            return tyro.cli(kind, prog=prog, args=list(rest))
    except SystemExit as stop:
        if stop.code:
            raise ValueError(f"The arguments of {prog} cannot be read; {prog} --help tells more.") from None
        raise


def _complain(event: Any, kind: type, prog: str) -> NoReturn:
    """One sentence about what tyro cannot read."""
    sentence = f"The arguments of {prog} cannot be read; {prog} --help tells more."
    with suppress(AttributeError, IndexError, TypeError):
        sentence = _sentence(event, kind, prog) or sentence
    raise ValueError(sentence)


def _sentence(event: Any, kind: type, prog: str) -> str | None:
    known = [f"--{spec.name.removeprefix('sweep_').rstrip('_').replace('_', '-')}" for spec in fields(kind)]
    match type(event).__name__:
        case "UnrecognizedArgs":
            return _unrecognized(event.tokens[0], known, prog)
        case "MissingArgs":
            missing = event.missing_arguments[0].arg
            name = missing.lowered.metavar or missing.display_name()
            return f"{prog} needs {name}; {prog} --help tells more."
        case "BadValue":
            return f"{event.argument.display_name()} takes a value; {prog} --help tells more."
        case "InvalidChoice":
            return f"{event.argument.display_name()} must be one of {', '.join(event.choices)}, got {event.value!r}."
        case "InstantiationFailure" if event.argument is not None:
            argument = event.argument
            metavar = (argument.lowered.metavar or "another value").replace("{None}|", "")
            return f"{argument.display_name()} takes {metavar}, not {_values(event.message)}."
    return None


def _unrecognized(token: str, known: Sequence[str], prog: str) -> str:
    option = token.partition("=")[0].replace("_", "-")
    if not option.startswith("-"):
        return f"{prog}: {token!r} is one word too many; {prog} --help tells more."
    hint = _near(option, known, f"{prog} --help shows those there are.")
    if option in OLD:
        return f"{prog} has no option {option} any more; {OLD[option]}"
    if prog in ("angd run", "angd sweep") and not {"--rate", "--keep"} & set(known):
        hint = f"options of a recipe follow its name, {prog} TASK RECIPE {option} …"
    return f"{prog} has no option {option}; {hint}"


def _values(message: str) -> str:
    """What was typed, as tyro's message quotes it last."""
    quoted = message.split("'")
    return repr(quoted[-2]) if len(quoted) > 2 else "that"


def _near(word: str, known: Sequence[str], otherwise: str) -> str:
    near = get_close_matches(word, known, 1)
    return f"did you mean {near[0]}?" if near else otherwise
