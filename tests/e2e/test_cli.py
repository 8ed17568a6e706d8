"""`angd` as a person uses it: verdicts, figures, and one sentence for every mistake."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from angd.cli import main
from angd.experiments.flow_catalogue import FLOWS
from angd.experiments.flow_problems import build

MISTAKES = [
    (["--manifold", "fishr-rao"], "did you mean fisher-rao?"),
    (["--manifold", "nowhere"], "known are"),
    (["--functional", "entropy"], "unknown functional on fisher-rao"),
    (["--alpha", "-1"], "must be finite and ≥ 0"),
    (["--alpha", "nan"], "may only contain numbers"),
    (["--beta", "1/0"], "must be finite"),
    (["--gamma", "gamma"], "may only contain numbers"),
    (["--t0", "5", "--t1", "5"], "0 ≤ t0 < t1"),
    (["--t0", "nan"], "0 ≤ t0 < t1"),
    (["--t0", "0", "--alpha", "3/t"], "at t = 0"),
    (["--t1", "1e9"], "1e6"),
    (["--s", "99"], "--s must lie"),
    (["--out", "flow.txt"], "must end in .png"),
    (["--out", "/proc/1/flow.png"], "cannot be written"),
]


@pytest.mark.parametrize(("arguments", "words"), MISTAKES, ids=lambda v: " ".join(v) if isinstance(v, list) else "")
def test_mistakes_get_one_sentence_and_exit_code_2(arguments, words, capsys):
    assert main(["flow", *arguments]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1


def test_mistakes_are_answered_before_jax_is_imported(tmp_path):
    code = "import sys; from angd.cli import main; main(['flow', '--t1', '0']); sys.exit('jax' in sys.modules)"
    start = time.perf_counter()
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert "0 ≤ t0 < t1" in run.stderr
    assert time.perf_counter() - start < 3


def test_flow_draws_a_figure_and_gives_its_verdict_as_json(tmp_path, capsys):
    figure = tmp_path / "deep" / "flow.svg"
    options = [
        "--manifold",
        "simplex",
        "--beta",
        "0.5",
        "--gamma",
        "1+0.5/t",
        "--t1",
        "10",
        "--out",
        str(figure),
        "--json",
    ]
    assert main(["flow", *options]) == 0
    answer = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert answer["conditions_violated"] == []
    assert answer["loss"] < answer["loss_first"]
    assert answer["lyapunov_largest_increase"] < 1e-9
    assert figure.read_text(encoding="utf-8").startswith("<?xml")
    assert [path.name for path in figure.parent.iterdir()] == ["flow.svg"]


def test_flow_that_leaves_the_manifold_is_drawn_and_reported(tmp_path, capsys):
    figure = tmp_path / "flow.png"
    options = ["--functional", "linear-energy", "--t0", "0.5", "--t1", "4", "--out", str(figure)]
    assert main(["flow", *options]) == 0
    assert "reached the boundary of the manifold at t = 2.69" in capsys.readouterr().out
    assert figure.stat().st_size > 1000


def test_list_names_everything_that_can_be_run(capsys):
    assert main(["list"]) == 0
    shown = capsys.readouterr().out
    assert all(functional in shown for functionals in FLOWS.values() for functional in functionals)


@pytest.mark.matrix
@pytest.mark.parametrize(("manifold", "functional"), [(m, f) for m, fs in FLOWS.items() for f in fs])
def test_every_problem_of_the_catalogue_starts_on_its_manifold_and_knows_a_minimum(manifold, functional):
    problem = build(manifold, functional, 1)
    problem.manifold.check(problem.rho0, "rho0")
    if problem.minimiser is not None:
        problem.manifold.check(problem.minimiser, "minimiser")
        gradient = problem.manifold.gradient(problem.functional, problem.minimiser)
        assert problem.functional(problem.minimiser) < problem.functional(problem.rho0)
        assert problem.manifold.square_norm(problem.minimiser, gradient) < 1e-18


def test_a_missing_or_old_jax_is_named_in_a_sentence(monkeypatch):
    from angd import _requirements

    monkeypatch.setattr(_requirements, "version", lambda package: "0.4.30.dev1")
    with pytest.raises(ImportError, match=r"angd needs jax ≥ 0\.8\.0, found 0\.4\.30"):
        _requirements.check_requirements()


def test_the_package_says_that_it_is_typed():
    import angd

    assert (Path(angd.__file__).parent / "py.typed").exists()
