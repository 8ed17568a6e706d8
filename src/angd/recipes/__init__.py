"""Recipes: named ways to train, each with its options and phases.

    angd.fit(problem, angd.recipes.GaussNewton(interior=300))
    angd.fit(problem, "adam")                                  by name; `angd list` shows all

A recipe of your own is a dataclass: see `angd.recipes.base`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
