"""Everything that can be run by name runs."""

import jax
import numpy as np
import pytest

from angd.experiments.pinn import METHODS, PROBLEMS, named
from angd.experiments.runner import Budget, train

FEW = {"interior": 30, "condition": 8}
QUICK = {("burgers", "energy"), ("euler", "angd-h1"), ("burgers-cos", "ssbroyden")}
CASES = [(p, m) for p in PROBLEMS for m in METHODS]


@pytest.mark.parametrize(
    ("problem", "method"), [pytest.param(*c, marks=[] if c in QUICK else pytest.mark.slow) for c in CASES]
)
def test_every_method_runs_on_every_problem(problem, method):
    experiment = PROBLEMS[problem]
    made = experiment.problem()
    phases, start = METHODS[method].build(made, **FEW), made.init(jax.random.key(0))
    budget = Budget(steps=3, look=1e-9)
    seen = list(train(made, phases, start, jax.random.key(1), budget, experiment.errors(made)))
    assert [record.step for record, _ in seen] == [1, 2, 3]
    assert all(np.isfinite(record.loss) and np.isfinite(record.error) for record, _ in seen)
    assert set(seen[0][0].errors) == ({"ρ", "u", "p"} if problem == "euler" else {"u"})


def test_the_paper_s_network_has_its_size():
    params = PROBLEMS["burgers"].problem("paper").init(jax.random.key(0))
    assert sum(leaf.size for leaf in jax.tree.leaves(params)) == 16761


def test_unknown_names_are_answered_with_the_nearest():
    with pytest.raises(ValueError, match="no method called 'angd-l1'; did you mean 'angd-l2'"):
        named(METHODS, "angd-l1", "method")
    with pytest.raises(ValueError, match="there are burgers, burgers-cos"):
        named(PROBLEMS, "zzz", "problem")
    with pytest.raises(ValueError, match="network must be"):
        PROBLEMS["burgers"].problem("large")
