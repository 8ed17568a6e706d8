"""Posteriors against long Markov chains, as tools/measure_inference.py measures them; and learning from data sets."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow


@pytest.fixture
def measured(monkeypatch):
    for folder in ("tools", "examples"):
        monkeypatch.syspath_prepend(str(ROOT / folder))
    import measure_inference

    yield measure_inference
    sys.modules.pop("measure_inference")


def test_a_flow_finds_the_posterior_of_a_logistic_regression(measured):
    """Within 2 % of a standard deviation of a NUTS run whose own noise is 0.7 % in every mean."""
    pytest.importorskip("sklearn")
    found = measured.logistic()
    assert found["nuts_rhat"] < 1.01
    assert max(found["flow"].values()) < 0.02


def test_a_flow_finds_the_funnel(measured):
    found = measured.funnel()
    assert max(found["flow"].values()) < 0.02
    assert found["effective"] > 0.99


def test_natural_gradients_learn_from_a_data_set(measured):
    pytest.importorskip("sklearn")
    found = measured.learning.race(measured.learning.diabetes, 5.0)
    assert found["ggn"]["best"] < 0.35
    assert set(found) == {"ggn", "l2", "adam", "lbfgs", "energy"}
