"""Second looks at runs, and forecasts of them."""

import json
from typing import Any

import jax
import pytest

import angd
from angd.problems.evaluation import Evaluator
from angd.program.main import main
from angd.train.config import Config
from angd.train.folder import RunFolder
from angd.train.forecast import _whole, forecast
from making import completed, left_and_resumed, setup_of, task_of

FEW = {"interior": 30, "condition": 8}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run that lost its way: the best checkpoint is not the last."""
    path = tmp_path_factory.mktemp("evaluate") / "run"
    return left_and_resumed(path, Config.of("heat", "adam", FEW, steps=12), 5)


def test_a_second_look_with_the_usual_grid_agrees_with_the_run(folder):
    found, last = angd.evaluate(folder), RunFolder(folder).records()[-1]
    assert (found["step"], found["task"], found["recipe"]) == (12, "heat", "adam")
    assert found["errors"]["u"] == pytest.approx(last.errors["u"], rel=1e-12)
    assert found["test_loss"] == pytest.approx(last.test_loss, rel=1e-12)
    assert json.loads((folder / "evaluation.json").read_text()) == found


def test_a_finer_grid_and_more_points_are_those_of_an_independent_evaluator(folder):
    found = angd.evaluate(folder, grid=(33, 47), points=3000)
    seen = Evaluator(task_of("heat"), counts=(33, 47), points=3000)(angd.load(folder).params, None, 0.0)
    assert found["errors"]["u"] == pytest.approx(seen.errors["u"], rel=1e-12)
    assert found["test_loss"] == pytest.approx(seen.test_loss, rel=1e-12)
    assert found["errors"] != angd.evaluate(folder)["errors"]
    assert (found["grid"], found["points"]) == ([33, 47], 3000)


def test_another_checkpoint_is_judged(folder):
    records = {record.step: record for record in RunFolder(folder).records()}
    assert angd.evaluate(folder, step=5)["errors"]["u"] == pytest.approx(records[5].errors["u"], rel=1e-12)
    best = angd.evaluate(folder, best=True)
    assert best["errors"]["u"] == pytest.approx(min(records[5].error, records[12].error), rel=1e-12)


MISTAKES = [
    (["/nowhere"], "no folder '/nowhere'"),
    (["/usr"], "not the folder of a run"),
    ([], "angd evaluate needs DIR"),
    (["DIR", "--step", "7"], "holds no checkpoint of step 7; there are those of 5, 12"),
    (["DIR", "--step", "5", "--best"], "leave one of them out"),
    (["DIR", "--grid", "0,3"], "--grid takes one or two numbers"),
    (["DIR", "--grid", "x"], "--grid takes whole numbers"),
    (["DIR", "--grid", "99999,99999"], "1e+07 points at most"),
    (["DIR", "--grid", "9"], "takes 2 numbers of points, got 1"),
    (["DIR", "--points", "0"], "--points must be a whole number from 1"),
    (["DIR", "--walkers", "100"], "adam has no walkers"),
]


@pytest.mark.parametrize(("arguments", "words"), MISTAKES)
def test_mistakes_get_one_sentence(folder, arguments, words, capsys):
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    assert main(["evaluate", *(word.replace("DIR", str(folder)) for word in arguments)]) == 2
    said = capsys.readouterr()
    assert words in said.err
    assert (said.err.count("\n"), said.out) == (1, "")
    assert before == {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


def test_the_program_says_the_same(folder, capsys):
    assert main(["evaluate", str(folder), "--grid", "33,47", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == angd.evaluate(folder, grid=(33, 47))
    assert main(["evaluate", str(folder)]) == 0
    assert "heat with adam, step 12: error u" in capsys.readouterr().out


def test_what_the_program_cannot_find_is_given_in_python(tmp_path):
    fitted = angd.fit(task_of("heat"), "adam", steps=3, params=task_of("heat").start(jax.random.key(3)), progress=False)
    fitted.save(tmp_path / "run")
    with pytest.raises(ValueError, match=r"angd.evaluate\(folder, problem\)"):
        angd.evaluate(tmp_path / "run")
    assert angd.evaluate(tmp_path / "run", task_of("heat"))["errors"] == pytest.approx(fitted.errors)


def foreseen(recipe, **limits):
    settings = Config.of("heat", recipe, FEW, **limits)
    return forecast(setup_of(settings), completed(settings)[0])


def test_a_forecast_knows_sizes_memory_and_time():
    found = foreseen("adam", steps=100)
    (phase,) = found["phases"]
    assert phase["samples"] == {"interior": 30, "initial": 8, "walls": 8}
    assert (phase["rows"], found["parameters"]) == (46, task_of("heat").size)
    assert phase["memory_bytes"] > 8 * task_of("heat").size
    assert (phase["steps"], found["steps"]) == (None, 100)
    assert found["seconds"] == pytest.approx(phase["seconds_to_compile"] + 100 * phase["seconds_per_step"], abs=2e-3)


def test_a_forecast_has_every_phase_and_shares_what_is_compiled_once():
    found = foreseen("energy", steps=160)
    warm, fresh, kept = found["phases"]
    assert [phase["steps"] for phase in found["phases"]] == [150, 20, None]
    assert warm["seconds_to_compile"] > 0
    assert fresh["seconds_to_compile"] == kept["seconds_to_compile"] == 0, "other numbers, the same step"
    assert kept["memory_bytes"] == fresh["memory_bytes"] == warm["memory_bytes"]
    spent = sum(phase["seconds_to_compile"] for phase in found["phases"])
    spent += 150 * warm["seconds_per_step"] + 10 * fresh["seconds_per_step"]
    assert (found["steps"], found["seconds"]) == (160, pytest.approx(spent, abs=2e-3))


def test_a_forecast_ends_in_the_phase_in_which_the_budget_does():
    phases = [
        {"steps": steps, "seconds_to_compile": 1.0, "seconds_per_step": 0.1, "cpu_seconds_per_step": 0.2}
        for steps in (10, None)
    ]
    limits: list[dict[str, Any]] = [{"steps": 4}, {"seconds": 3.55}, {"cpu_seconds": 6.5}]
    found = [_whole(Config.of("heat", "adam", **limit), phases) for limit in limits]
    assert [answer["steps"] for answer in found] == [4, 15, 22]
    assert [answer["seconds"] for answer in found] == pytest.approx([1.4, 3.5, 4.2])


def test_a_dry_run_writes_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["run", "heat", "adam", "--seconds", "30", "--memory-limit", "3GiB", "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "memory that a step may take: 3 GiB; --memory-limit sets another\n" in said
    assert "heat with adam would run in runs/heat-adam-0; nothing was written." in said
    assert "parameters: 105\nsamples: 250 initial, 1000 interior, 250 walls; 1500 rows\n" in said
    assert "phase" not in said
    assert main(["run", "heat", "adam", "--dry-run", "--json", "--out", "here"]) == 0
    assert json.loads(capsys.readouterr().out)["out"] == "here"
    assert not list(tmp_path.iterdir())
