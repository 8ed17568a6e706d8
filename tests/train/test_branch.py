"""Branches: runs that start from the parameters of another one."""

import json
from dataclasses import replace

import jax
import numpy as np
import pytest

import angd
from angd.program.main import main
from angd.train.branch import branch, start_of
from angd.train.config import Config
from angd.train.folder import RunFolder
from angd.train.run import Run
from angd.train.setup import prepare
from angd.view.report import command
from making import completed, left_and_resumed

FEW = {"interior": 30, "condition": 8}
SMALL = ["--interior", "30", "--condition", "8"]


@pytest.fixture(scope="module")
def parent(tmp_path_factory):
    """A run of 12 steps, with checkpoints of the last two moments at which it was left."""
    path = tmp_path_factory.mktemp("parent") / "run"
    return left_and_resumed(path, Config.of("heat", "adam", FEW, steps=12), 5)


def branched(parent, path, recipe="adam", step=None, **changes):
    config, task, made = completed(Config.of("heat", recipe, FEW | changes, steps=4))
    config, params = branch(config, task, parent, step)
    return Run(prepare(task, made, config.seed, params), config, path)


def test_a_branch_starts_from_the_parameters_of_its_parent(parent, tmp_path):
    run = branched(parent, tmp_path / "run")
    jax.tree.map(np.testing.assert_array_equal, run.setup.params, angd.load(parent).params)
    records = list(run.records())
    assert [record.step for record in records] == [1, 2, 3, 4]
    assert RunFolder(tmp_path / "run").config().start == run.config.start
    assert run.config.start is not None
    assert run.config.start["step"] == 12


def test_an_earlier_checkpoint_and_another_recipe_will_do(parent, tmp_path):
    early = branched(parent, tmp_path / "early", "sgd", step=5)
    late = branched(parent, tmp_path / "late", "sgd")
    assert next(early.records()).loss != next(late.records()).loss
    with pytest.raises(ValueError, match="no checkpoint of step 7; there are those of 5, 12"):
        branched(parent, tmp_path / "none", step=7)


def test_a_branch_goes_on_without_its_parent_and_notices_another_start(parent, tmp_path):
    records = branched(parent, tmp_path / "run").records()
    next(records)
    records.close()
    folder = RunFolder(tmp_path / "run")
    config, task, _ = completed(replace(folder.config(), steps=9))
    start = start_of(folder, config, task)
    jax.tree.map(np.testing.assert_array_equal, start, angd.load(parent).params)
    arrays = folder.read_arrays("start.npz")
    folder.write_arrays("start.npz", {name: array + 1 for name, array in arrays.items()})
    with pytest.raises(ValueError, match="not what this branch began with"):
        start_of(folder, config, task)


def test_the_command_line_branches_resumes_and_repeats(parent, tmp_path, capsys):
    out = str(tmp_path / "out")
    assert main(["run", "--from", str(parent), "--rate", "1e-2", "--steps", "3", "--out", out, "--quiet"]) == 0
    config = RunFolder(tmp_path / "out").config()
    assert (config.options["rate"], config.options["interior"], config.recipe) == (1e-2, 30, "adam")
    assert main(["run", "--resume", out, "--steps", "5", "--quiet", "--json"]) == 0
    capsys.readouterr()
    again = str(tmp_path / "again")
    assert main(["run", "--config", f"{out}/config.json", "--steps", "5", "--out", again, "--quiet"]) == 0
    assert RunFolder(tmp_path / "again").records()[-1].loss == RunFolder(tmp_path / "out").records()[-1].loss
    typed = str(tmp_path / "typed")
    assert main([*command(config).split()[1:], "--out", typed, "--quiet"]) == 0
    assert json.loads((tmp_path / "typed" / "config.json").read_text()) == config.to_dict()


MISTAKES = [
    (["run", "--from", "/nowhere"], "no folder '/nowhere'"),
    (["run", "heat", "--from", "/nowhere"], "no folder '/nowhere'"),
    (["run", "--from", "PARENT", "--config", "PARENT/config.json"], "leave one of them out"),
    (["run", "heat", "--from-step", "3"], "give both"),
    (["run", "--resume", "PARENT", "--from", "PARENT"], "leave out from"),
    (["run", "--from", "PARENT", "--from-step", "3"], "no checkpoint of step 3"),
    (["run", "burgers", "--from", "PARENT", "--steps", "3"], "its arrays are not those"),
    (["run", "--from", "PARENT", "--rte", "3"], "did you mean --rate?"),
]


@pytest.mark.parametrize(("arguments", "words"), MISTAKES)
def test_mistakes_get_one_sentence(parent, arguments, words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main([word.replace("PARENT", str(parent)) for word in arguments]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1
    assert not list(tmp_path.iterdir())
