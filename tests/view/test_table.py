"""Runs beside each other: what belongs together, what is no comparison, and the command that repeats a run."""

import shlex
from dataclasses import fields

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from angd.program.arguments import parse
from angd.program.commands.run import RunOptions
from angd.recipes.base import INFINITE
from angd.recipes.named import named
from angd.train.config import Config
from angd.train.folder import Record, RunFolder
from angd.view.report import command
from angd.view.table import groups, table, times
from angd.view.verdict import judged
from making import completed


def folder(
    path, recipe="adam", error: float | None = 0.1, steps=9, seed=0, task="heat", test_loss=1.0, bar=0.0, **changes
):
    """A run that has ended."""
    made = RunFolder(path)
    config = completed(Config.of(task, recipe, changes, seed=seed, steps=steps))[0]
    made.create(config, {}, {"name": task, "errors": "fields"})
    errors: dict[str, float | None] = {} if error is None else {"u": error}
    made.append(Record(steps, 1.0, 1.0, {"loss": 1.0}, True, False, "", test_loss, errors))
    summary = {"steps": steps, "seconds": 1.0, "cpu_seconds": 1.0, "loss": 1.0, "test_loss": test_loss}
    made.write("summary.json", summary | {"largest_error": error, "standard_error": bar})
    return made


def test_different_options_are_no_seeds(tmp_path):
    runs = [folder(tmp_path / f"{i}", rate=rate, seed=i) for i, rate in enumerate((1e-3, 1e-2, 1e-2))]
    assert {group.label: group.seeds for group in groups(runs)} == {
        "adam (rate 0.001)": [0],
        "adam (rate 0.01)": [1, 2],
    }


def test_the_same_seed_twice_counts_once(tmp_path):
    (row,) = table([folder(tmp_path / "a"), folder(tmp_path / "b")])
    assert (row["recipe"], row["seeds"], row["budget"]) == ("adam", 1, None)


def test_unequal_budgets_are_flagged(tmp_path):
    rows = table([folder(tmp_path / "a", steps=400), folder(tmp_path / "b", "sgd", steps=60)])
    assert {row["recipe"]: row["budget"] for row in rows} == {"adam": "400 steps", "sgd": "60 steps"}


def test_without_a_solution_the_test_loss_decides(tmp_path):
    rows = table(
        [folder(tmp_path / "a", "sgd", None, test_loss=4.0), folder(tmp_path / "b", error=None, test_loss=2.0)]
    )
    assert judged(rows) == "adam reaches a test loss of 2.00e+00, 2 times less than sgd."


def test_ground_states_without_a_reference_are_ranked_by_their_energy_on_fresh_walkers(tmp_path):
    rows = table(
        [
            folder(tmp_path / "a", "spring", None, task="vmc-h", test_loss=-0.4, bar=1e-3),
            folder(tmp_path / "b", "minsr", None, task="vmc-h", test_loss=-0.5, bar=1e-3),
        ]
    )
    assert judged(rows) == "Energy, Ha: minsr -0.50000 ± 1e-03, spring -0.40000 ± 1e-03."


@pytest.mark.parametrize(("ratio", "text"), [(2.128, "2.13"), (41.23, "41.2"), (1414.0, "1410"), (10.0, "10")])
def test_ratios_are_said_as_one_says_them(ratio, text):
    assert times(ratio) == text


RECIPES = ("adam", "energy", "energy-accelerated", "angd-l2", "spring", "angd-w2")


def values_of(spec):
    about = spec.metadata
    if "choices" in about:
        return st.sampled_from(about["choices"])
    low, high = about["low"], min(about["high"], 1e15)
    if spec.type is int:
        return st.integers(int(low), int(high))
    numbers = st.floats(low, high, allow_nan=False, allow_subnormal=False)
    return st.one_of(numbers, st.just(INFINITE)) if about["high"] == INFINITE else numbers


@st.composite
def choices(draw):
    """A recipe, some of its options, a seed and a budget."""
    recipe = draw(st.sampled_from(RECIPES))
    chosen = draw(st.lists(st.sampled_from(fields(named(recipe).recipe)), max_size=3, unique_by=lambda s: s.name))
    changes = {spec.name: draw(values_of(spec)) for spec in chosen}
    budget = draw(st.sampled_from([{"steps": 7}, {"seconds": 1.5e6}, {"cpu_seconds": 1e-3, "steps": 10**12}, {}]))
    return recipe, changes, {"seed": draw(st.integers(0, 10**9))} | budget


@given(choices())
@settings(max_examples=100, deadline=None, derandomize=True)
def test_the_command_of_a_report_says_the_same_run(chosen):
    recipe, changes, rest = chosen
    task = "vmc-be" if recipe in ("spring", "angd-w2") else "burgers"
    try:
        config = completed(Config.of(task, recipe, changes, **rest))[0]
    except ValueError:  # options that contradict each other
        reject()
    options = parse(shlex.split(command(config))[1:], {"run": RunOptions})
    options.check()
    _, again = options.plan()
    assert completed(again)[0] == config


def test_options_of_a_report_survive_json(tmp_path):
    config = completed(Config.of("vmc-be", "angd-fr", {"limit": "inf"}, steps=3))[0]
    assert Config.from_dict(config.to_dict(), "x").options["limit"] == INFINITE
