"""Whoever adds a recipe names it, so that it runs on every task it is made for."""

import importlib
import pkgutil

import angd.recipes
from angd.recipes.base import Recipe
from angd.recipes.named import RECIPES

for module in pkgutil.walk_packages(angd.recipes.__path__, "angd.recipes."):
    importlib.import_module(module.name)


def below(cls: type) -> set[type]:
    """All classes under one; what begins with an underscore is nobody's recipe."""
    return set(cls.__subclasses__()).union(*map(below, cls.__subclasses__()))


def test_every_recipe_class_of_the_library_has_a_name():
    made = {cls for cls in below(Recipe) if cls.__module__.startswith("angd.")}
    missing = {cls.__name__ for cls in made if cls.__name__[0] != "_"} - {
        type(named.recipe).__name__ for named in RECIPES.values()
    }
    assert not missing, f"give {sorted(missing)} a name in src/angd/recipes/named.py"
