"""Accelerated natural gradient descent on parametric manifolds.

Every public name is listed in `__init__.pyi` and loaded when it is first used, so that `import angd` and the command
line answer at once, before JAX is there.
"""

import lazy_loader

from angd._requirements import check_requirements

check_requirements()

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
