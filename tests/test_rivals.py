"""How `benchmarks/rivals_pinn.py` reads the clock, and how it sums up."""

from importlib import import_module
from pathlib import Path
from time import process_time

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def rivals(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    return import_module("rivals_pinn")


@pytest.fixture
def watch(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(BENCHMARKS / "peers")
    np.savez(tmp_path / "grid.npz", z=np.zeros((4, 2)), u=np.array([3.0, 0.0, 0.0, 4.0]))
    return lambda budget: import_module("watch").Watch(budget, str(tmp_path / "grid.npz"))


def burn(seconds):
    begun = process_time()
    while process_time() - begun < seconds:
        pass


def test_looking_does_not_count_and_training_does(watch):
    seen = watch(1e9)

    def slow(params, z):
        burn(0.3)
        return np.array([3.0, 0.0, 0.0, 4.0]) * (1 + params)

    seen.marks = [0.0]
    before = seen.spent
    assert seen(slow, 0.5, 1)
    assert seen.spent - before < 0.2
    burn(0.3)
    assert seen.spent - before > 0.29
    assert seen.records[0][1:] == [1, pytest.approx(0.5)]


def test_it_ends_with_the_budget_and_looks_a_last_time(watch):
    seen = watch(1e9)
    seen.budget = seen.spent
    seen.marks = [0.0]
    assert not seen(lambda params, z: np.zeros(4), None, 7)
    assert seen.found()["records"][-1][1:] == [7, 1.0]
    assert seen.found()["first_step"] > 0


def test_the_best_rival_is_the_one_with_the_smallest_error_at_the_same_seconds(rivals):
    def run(package, method, error, budget=120, seed=0):
        records = [[30.0, 1, 10 * error], [60.0, 2, 2 * error], [float(budget), 3, error]]
        head = {"package": package, "method": method, "seed": seed, "budget": budget}
        return head | {"records": records, "first_step": 5.0, "parameters": 9}

    ours, theirs = run("angd", "default", 1e-5), run("jinns", "ngd", 3e-5)
    late = run("scimba", "eng", 1e-9, budget=600)
    broken = {"package": "optax", "method": "adam", "seed": 0, "budget": 120, "failed": "no such package"}
    found = rivals.summary([ours, theirs, run("jinns", "ngd", 1.0, budget=60), late, broken])
    assert found["best"]["s120"] == {"name": "scimba_eng", "error": 2e-9, "ratio": 0.0002}
    assert found["best"]["s30"]["name"] == "scimba_eng"
    assert "s600" not in found["angd_default"]
    assert found["jinns_ngd"]["s120"] == 3e-5
    assert found["optax_adam"] == {"failed": "no such package"}
    alone = rivals.summary([ours, theirs])
    assert alone["best"]["s120"] == {"name": "jinns_ngd", "error": 3e-5, "ratio": 3.0}
