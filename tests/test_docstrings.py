"""Every public name says what it is, what each of its arguments means, and what a function returns.

Names are read from `angd.__all__` and the `__all__` of the rooms that a user imports from, so that a name which is
added later is held to the same. Options of recipes have their texts in the fields, which `--help` shows.
"""

import importlib
import inspect
import re
from dataclasses import fields, is_dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import angd
from angd.recipes.base import Recipe
from angd.recipes.named import RECIPES as BY_NAME

ROOMS = [
    "angd",
    "angd.compat.optax",
    "angd.compat.optimistix",
    "angd.method.baselines",
    "angd.problems.inference",
    "angd.problems.lattice",
    "angd.problems.pinn",
    "angd.problems.vmc",
    "angd.train.callbacks",
    *["angd.compat.netket"] * (find_spec("netket") is not None),
]
# Constants: what they hold is said where they are defined. Modules have docstrings of their own.
CONSTANTS = {"MOLECULES"}
# Their text is that of Python's own class.
FOREIGN = (BaseException,)
METHODS = [
    (owner, method)
    for owner in (angd.ANGD, angd.baselines.Baseline, angd.baselines.Decayed, angd.baselines.SelfScaledBroyden)
    for method in ("init", "step")
]


def public(room: str) -> list[tuple[str, Any]]:
    module = importlib.import_module(room)
    found = [(f"{room}.{name}", getattr(module, name)) for name in module.__all__ if name not in CONSTANTS]
    return [(name, thing) for name, thing in found if not inspect.ismodule(thing)]


NAMES = dict(entry for room in ROOMS for entry in public(room))
MODULES = [f"angd.{name}" for name in vars(angd)["__all__"] if inspect.ismodule(getattr(angd, name))]
RECIPES = {type(entry.recipe).__name__: type(entry.recipe) for entry in BY_NAME.values()} | {
    name: thing for name, thing in public("angd.recipes") if inspect.isclass(thing) and issubclass(thing, Recipe)
}


def parameters(thing: Any) -> list[str]:
    """What a caller may give: fields or arguments, less private ones."""
    if inspect.isclass(thing) and (thing.__name__.startswith("Abstract") or getattr(thing, "_is_protocol", False)):
        return []
    if inspect.isclass(thing) and issubclass(thing, FOREIGN):
        return []
    try:
        signature = inspect.signature(thing)
    except ValueError:
        return []
    return [name for name in signature.parameters if not name.startswith("_") and name != "self"]


def section(doc: str, title: str) -> str:
    """The text under a heading such as `**Arguments:**`, up to the next heading."""
    found = re.search(rf"\*\*{title}:\*\*(.*?)(?=\n\s*\*\*\w+:\*\*|\Z)", doc, re.S)
    return found.group(1) if found else ""


def unexplained(thing: Any) -> list[str]:
    """Arguments without a bullet; records that the library makes for the user list attributes instead."""
    doc = thing.__doc__ or ""
    text = section(doc, "Arguments") + section(doc, "Attributes")
    bullets = " ".join(re.findall(r"^\s*- ((?:`\*{0,2}\w+`(?:, | and )?)+):", text, re.M))
    return [name for name in parameters(thing) if not re.search(rf"`\*{{0,2}}{name}`", bullets)]


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_says_what_it_is(name):
    thing = NAMES[name]
    doc = (thing.__doc__ if inspect.isfunction(thing) else vars(thing).get("__doc__")) or ""
    assert doc.strip(), f"{name} has no docstring of its own"


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_explains_every_argument(name):
    assert not unexplained(NAMES[name]), f"{name}: no bullet in **Arguments:** for {unexplained(NAMES[name])}"


@pytest.mark.parametrize("name", [name for name, thing in NAMES.items() if inspect.isfunction(thing)])
def test_a_public_function_says_what_it_returns(name):
    assert section(NAMES[name].__doc__ or "", "Returns").strip(), f"{name}: **Returns:** is missing"


@pytest.mark.parametrize(("owner", "method"), METHODS)
def test_init_and_step_explain_arguments_and_what_they_return(owner, method):
    thing = getattr(owner, method)
    assert not unexplained(thing), f"{owner.__name__}.{method}: no bullet for {unexplained(thing)}"
    assert section(thing.__doc__ or "", "Returns").strip(), f"{owner.__name__}.{method}: **Returns:** is missing"


@pytest.mark.parametrize("name", MODULES)
def test_a_public_module_says_what_it_holds(name):
    assert (getattr(angd, name.removeprefix("angd.")).__doc__ or "").strip()


@pytest.mark.parametrize("name", RECIPES)
def test_every_option_of_a_recipe_has_its_text(name):
    recipe = RECIPES[name]
    assert is_dataclass(recipe)
    assert issubclass(recipe, Recipe)
    assert (recipe.__doc__ or "").strip()
    assert not [spec.name for spec in fields(recipe) if not spec.metadata.get("about", "").strip()]


def reference() -> dict[str, Any]:
    """Everything that the reference pages list, modules left out."""
    pages = sorted((Path(__file__).parent.parent / "docs").glob("reference-*.md"))
    names = [name for page in pages for name in re.findall(r"^::: (\S+)$", page.read_text("utf-8"), re.MULTILINE)]
    away = () if find_spec("netket") else ("angd.compat.netket",)  # a rim to what is not installed
    found = {name: imported(name) for name in names if not name.startswith(away)}
    return {name: thing for name, thing in found.items() if not inspect.ismodule(thing)}


def imported(name: str) -> Any:
    """The module, or what is in one."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        module, _, last = name.rpartition(".")
        return getattr(importlib.import_module(module), last)


def is_documented(thing: Any) -> bool:
    """A docstring of its own, a bullet for every argument, and what a function returns; options say it themselves."""
    doc = (thing.__doc__ if inspect.isfunction(thing) else vars(thing).get("__doc__")) or ""
    recipe = inspect.isclass(thing) and issubclass(thing, Recipe)
    returns = not inspect.isfunction(thing) or section(doc, "Returns").strip()
    return bool(doc.strip() and returns and (recipe or not unexplained(thing)))


def test_nothing_in_the_reference_is_undocumented():
    things = reference()
    undocumented = [name for name, thing in things.items() if not is_documented(thing)]
    assert len(things) > 150
    assert len(undocumented) == 0, undocumented


def test_an_argument_without_a_bullet_is_noticed():
    def f(x, y):
        """**Arguments:**

        - `x`: told.

        **Returns:** `y`.
        """

    assert unexplained(f) == ["y"]
    assert section(f.__doc__ or "", "Returns").strip() == "`y`."
