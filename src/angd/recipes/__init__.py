"""Recipes: named ways to train, each with its options and phases."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, submodules=["published"])
