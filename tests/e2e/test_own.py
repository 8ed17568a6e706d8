"""A file of one's own: run, stopped, gone on with, compared, reported, as a person does it."""

import json
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import angd
from angd.program.main import main
from angd.train.folder import RunFolder

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
FEW = ["--interior", "60", "--condition", "12", "--warm-steps", "6", "--fresh", "6", "--keep", "2"]
PAUSE = """
import sys, time
from angd.train import loop
step = loop._Loop.step
def slowly(self, *now):
    time.sleep(0.1)
    return step(self, *now)
loop._Loop.step = slowly
from angd.program.main import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture
def front(tmp_path, monkeypatch):
    """The file of the example, in a folder of its own, which is where the person is."""
    shutil.copy(EXAMPLES / "front.py", tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def same(records):
    return [replace(record, seconds=0.0, cpu_seconds=0.0) for record in records]


def test_the_example_is_short_and_knows_no_solution():
    text = (EXAMPLES / "front.py").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 30
    assert "exact" not in text


def test_a_file_is_run_interrupted_and_resumed_to_the_same_bits(front):
    settings = ["run", "front.py", "energy", *FEW, "--steps", "14"]
    process = subprocess.Popen(
        [sys.executable, "-c", PAUSE, *settings, "--out", "parts"], stderr=subprocess.PIPE, text=True
    )
    metrics, deadline = front / "parts" / "metrics.jsonl", time.monotonic() + 120
    while time.monotonic() < deadline and not (metrics.exists() and metrics.read_bytes().count(b"\n") >= 5):
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "go on with: angd run --resume parts" in said
    assert 5 <= len(RunFolder(front / "parts").records()) < 14
    for arguments in (["run", "--resume", "parts"], [*settings, "--out", "whole"]):
        command = [sys.executable, "-m", "angd.program.main", *arguments]
        subprocess.run(command, check=True, capture_output=True)
    assert same(RunFolder(front / "parts").records()) == same(RunFolder(front / "whole").records())
    parts, whole = (RunFolder(front / name).read_arrays("solution.npz") for name in ("parts", "whole"))
    assert np.array_equal(parts["u found"], whole["u found"])


def test_a_file_is_compared_with_adam_and_reported_with_its_solution(front, capsys):
    compare = ["compare", "front.py", "energy-fast,adam", "--budget", "12 steps", "--seeds", "0,1", "--out", "all"]
    assert main([*compare, "--json"]) == 0
    said = capsys.readouterr().out
    table = json.loads(said.splitlines()[-1])["table"]
    assert [row["recipe"] for row in table] == ["energy-fast", "adam"]
    assert all(row["error"] is None and row["apart"] > 0 for row in table)
    assert "test loss" in said
    assert "apart" in said
    assert main(["report", "all"]) == 0
    page = (front / "all" / "report" / "report.html").read_text(encoding="utf-8")
    assert "No solution is known" in page
    assert "angd run front.py adam --seed 1 --steps 12" in page
    assert page.count("<img") == 6, "without scripts, the solution, and that of each method in light and dark"


def test_a_changed_file_is_told_and_a_missing_one_refused(front, capsys):
    run = ["run", "front.py", "adam", "--interior", "20", "--condition", "5"]
    assert main([*run, "--steps", "3", "--out", "run"]) == 0
    source = RunFolder(front / "run").config().source
    assert source is not None
    assert source["path"] == str(front / "front.py")
    with open("front.py", "a", encoding="utf-8") as file:
        file.write("\n# a remark\n")
    capsys.readouterr()
    assert main(["run", "--resume", "run", "--steps", "5"]) == 0
    assert "front.py has changed since 'run' was begun" in capsys.readouterr().err
    (front / "front.py").unlink()
    assert main(["run", "--resume", "run", "--steps", "7"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_run_of_a_file_can_be_loaded(front):
    assert (
        main(["run", "front.py", "adam", "--interior", "20", "--condition", "5", "--steps", "3", "--out", "run"]) == 0
    )
    fit = angd.load("run")
    assert fit(np.array([[0.5, 0.5], [0.5, 1.0]])).shape == (2,)
    assert fit.task.name == "front"


def test_a_run_of_a_file_is_looked_at_again_and_branched(front, capsys):
    few = ["--interior", "20", "--condition", "5"]
    assert main(["run", "front.py", "adam", *few, "--steps", "6", "--out", "run"]) == 0
    capsys.readouterr()
    assert main(["evaluate", "run", "--points", "500"]) == 0
    assert capsys.readouterr().out.startswith("front with adam, step 6: test loss ")
    assert main(["run", "--from", "run", "--rate", "1e-4", "--steps", "2", "--out", "same"]) == 0
    assert main(["run", "front.py", "sgd", *few, "--from", "run", "--steps", "2", "--out", "other"]) == 0
    same, other = RunFolder(front / "same"), RunFolder(front / "other")
    assert (same.config().recipe, other.config().recipe) == ("adam", "sgd")
    assert same.records()[0].loss == other.records()[0].loss  # both start where the run ended, with the same points
    (front / "front.py").unlink()
    capsys.readouterr()
    assert main(["evaluate", "run"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_dry_run_of_a_file_tells_its_phases(front, capsys):
    assert main(["run", "front.py", "energy", *FEW, "--steps", "9", "--dry-run"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "front with energy would run in runs/front-energy-0; nothing was written."
    assert said[1].startswith("memory that a step may take: ")
    assert said[2] == "parameters: 337"
    titles = ["phase 1, 6 steps at most:", "phase 2, 6 steps at most:", "phase 3, to the end:"]
    assert [line for line in said if line.startswith("phase")] == titles
    assert said.count("  samples: 60 interior, 12 start, 12 walls; 84 rows") == 3
    assert said[-1].startswith("all of it: about 9 steps in ")
    assert not (front / "runs").exists()


MISTAKES = {
    "nothing.py": ("x = 1\n", "has no task or problem; it defines x"),
    "syntax.py": ("def f(:\n", "cannot be imported: SyntaxError"),
    "raises.py": ("\n\nimport nowhere_at_all\n", "(line 3)"),
    "number.py": ("task = 3\n", "A int is not a problem"),
    "late.py": (
        "import jax.numpy as jnp, angd, equinox as eqx\n"
        "class P(eqx.Module):\n"
        "    def residual(self, params, x):\n"
        "        return params * undefined\n"
        "task = angd.Task(P(), params=jnp.ones(2), samples=jnp.ones(5))\n",
        "late.py, line 4: NameError: name 'undefined' is not defined",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_file_that_does_not_work_is_answered_in_a_sentence(tmp_path, monkeypatch, capsys, name):
    text, words = MISTAKES[name]
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text(text)
    assert main(["run", name, "--quiet", "--steps", "2", "--out", "run"]) in (1, 2)
    said = capsys.readouterr().err
    assert words in said
    assert "Traceback" not in said
    assert said.count("\n") == 1
