"""A solver of your own: the diagonal of G in place of G, for networks that are too large for anything else.

    angd run heat angd-l2 --solver examples/extend/solver.py:Diagonal --steps 20

`prepare` does what no right-hand side changes, `solve` finds d from it for any damping λ and origin c. This inverse is
that of another matrix than G, so it says that it is approximate: momentum then stays outside the system.
"""

from typing import Any

import angd


class Diagonal(angd.AbstractSolver):
    """d = (v + λ c) / (diag G + λ)."""

    damping: Any = 1e-3

    @property
    def approximate(self):
        return True

    def prepare(self, system, state, damping, many=False):
        return system.diagonal(), state

    def solve(self, prepared, damping, system, c):
        layout = system.O.layout
        v = layout.ravel(system.right_side())
        return angd.Solution.of(layout.unravel((v + damping * layout.ravel(c)) / (prepared + damping)))
