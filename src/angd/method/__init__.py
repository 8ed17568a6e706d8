"""Stage two: one step of the projected flow, from metric to parameters."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, submodules=["baselines", "parallel"])
