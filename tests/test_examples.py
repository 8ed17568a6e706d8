"""Every file in examples/ runs through the program, as its docstring says, and does what it should."""

import re
from pathlib import Path

import pytest

from angd.program.main import main
from angd.train.folder import RunFolder

ROOT = Path(__file__).parent.parent
EXTEND = ROOT / "examples" / "extend"
H2 = "2\nhydrogen, Ångström\nH 0 0 -0.37\nH 0 0 0.37\n"
WALKERS = "--chain metropolis --walkers 64 --burn-in 20 --moves 5 --pretrain 0 --measurements 8".split()  # noqa: SIM905


def run(tmp_path, *words):
    """The records of a run, and its summary."""
    out = tmp_path / "run"
    assert main(["run", *map(str, words), "--out", str(out), "--quiet"]) == 0
    folder = RunFolder(out)
    summary = folder.read("summary.json")
    assert summary is not None
    return folder.records(), summary


def fell(records, times):
    return records[-1].test_loss < records[0].test_loss / times


@pytest.mark.parametrize("option", ["metric", "solver"])
def test_a_part_of_an_accelerated_step(tmp_path, option):
    name = {"metric": "Weighted", "solver": "Diagonal"}[option]
    points = ("--interior", 150, "--condition", 30)
    records, _ = run(tmp_path, "heat", "angd-l2", f"--{option}", f"{EXTEND / option}.py:{name}", *points, "--steps", 20)
    assert fell(records, 3)


def test_a_controller(tmp_path):
    controller, points = f"{EXTEND / 'controller.py'}:Threefold", ("--interior", 150, "--condition", 30)
    records, _ = run(tmp_path, "heat", "energy", "--controller", controller, *points, "--steps", 20)
    assert fell(records, 100)
    first, last = (record.info["damping"] or 0.0 for record in (records[0], records[-1]))
    assert 0 < last < first


def test_an_equation_with_its_solution(tmp_path):
    points = ("--interior", 300, "--condition", 50, "--warm", 0)
    records, summary = run(tmp_path, EXTEND / "equation.py", "energy", *points, "--steps", 25)
    assert summary["task"] == "equation"
    assert fell(records, 100)
    assert summary["error"] < 0.1 * records[0].error


def test_a_molecule(tmp_path):
    records, summary = run(tmp_path, EXTEND / "molecule.py", "angd-fr", *WALKERS, "--steps", 20)
    assert summary["task"] == "heh-ion"
    assert summary["evaluation"]["energy"] < records[0].loss


def test_a_recipe(tmp_path):
    recipe = f"{EXTEND / 'recipe.py'}:Steady"
    records, summary = run(tmp_path, "heat", recipe, "--damping", 1e-4, "--interior", 150, "--steps", 15)
    assert summary["recipe"] == recipe
    assert fell(records, 100)


def test_the_front_whose_solution_nobody_knows(tmp_path):
    points = ("--interior", 200, "--condition", 50, "--warm", 0)
    records, summary = run(tmp_path, ROOT / "examples" / "front.py", "energy", *points, "--steps", 15)
    assert summary["error"] is None
    assert fell(records, 10)


def test_a_molecule_from_a_file(tmp_path):
    (tmp_path / "h2.xyz").write_text(H2, encoding="utf-8")
    records, summary = run(tmp_path, tmp_path / "h2.xyz", "angd-fr", *WALKERS, "--steps", 20)
    assert summary["error"] is None
    assert summary["evaluation"]["energy"] < records[0].loss


@pytest.mark.parametrize("path", sorted(EXTEND.glob("*.py")), ids=lambda path: path.name)
def test_an_extension_is_short_and_says_how_it_is_used(path):
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 40
    assert re.search(rf"^    angd run .*examples/extend/{path.name}", text, re.MULTILINE)
