"""Training: the loop, runs in folders, checkpoints, sweeps, callbacks."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, submodules=["callbacks"])
