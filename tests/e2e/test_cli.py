"""`angd` as a person uses it: verdicts, figures, and one sentence for every mistake."""

import json
import math
import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest

from angd.problems.flows import build
from angd.program import main as cli
from angd.program.commands.listing import ListOptions
from angd.program.flow_catalogue import FLOWS
from angd.program.main import main

MISTAKES = [
    (["--manifold", "fishr-rao"], "did you mean 'fisher-rao'?"),
    (["--manifold", "nowhere"], "there are"),
    (["--functional", "entropy"], "There is no functional on fisher-rao"),
    (["--alpha", "-1"], "must be finite and ≥ 0"),
    (["--alpha", "nan"], "may only contain numbers"),
    (["--beta", "1/0"], "must be finite"),
    (["--gamma", "gamma"], "may only contain numbers"),
    (["--t0", "5", "--t1", "5"], "0 ≤ t0 < t1"),
    (["--t0", "nan"], "0 ≤ t0 < t1"),
    (["--t0", "0", "--alpha", "3/t"], "at t = 0"),
    (["--t1", "1e9"], "1e6"),
    (["--s", "99"], "--s must lie"),
    (["--order", "1", "--beta", "0.1"], "--order 1 is ρ̇ = −γ grad L"),
    (["--out", "flow.txt"], "must end in .png"),
    (["--out", "/proc/1/flow.png"], "cannot be written"),
]

COMMANDS = [
    (["frobnicate"], "There is no command 'frobnicate'; there are run, compare"),
    (["rum"], "did you mean run?"),
    (["run"], "Say what to run"),
    (["run", "brgers"], "did you mean 'burgers'?"),
    (["run", "x" * 500], "there are burgers"),
    (["run", "burgers", "energy", "extra"], "'extra' is one word too many"),
    (["run", "burgers", "--step", "3"], "did you mean --steps?"),
    (["run", "burgers", "--steps", "abc"], "--steps takes INT, not 'abc'"),
    (["run", "burgers", "--steps", "0"], "--steps must be a whole number from 1"),
    (["run", "burgers", "--steps", "-3"], "--steps must be a whole number from 1"),
    (["run", "burgers", "--steps", "1e99"], "--steps takes INT"),
    (["run", "burgers", "--steps", "9" * 30], "from 1 to 1e+12"),
    (["run", "burgers", "--steps", "9" * 400], "from 1 to 1e+12"),
    (["run", "burgers", "--seconds", "nan"], "--seconds must be a number"),
    (["run", "burgers", "--seconds", "-1"], "--seconds must be a number"),
    (["run", "burgers", "--cpu-seconds", "inf"], "--cpu-seconds must be a number"),
    (["run", "burgers", "--seed", "-1"], "--seed must be a whole number from 0"),
    (["run", "burgers", "--seed", "1.5"], "--seed takes INT"),
    (["run", "burgers", "--seed"], "--seed takes a value"),
    (["run", "burgers", "--precision", "f16"], "--precision must be one of f64, f32"),
    (["run", "burgers", "--network", "huge"], "--network must be one of small, paper"),
    (["run", "burgers", "--charge", "1"], "--charge says nothing about burgers"),
    (["run", "vmc-he", "--network", "huge"], "--network must be one of small, medium, published, paper"),
    (["run", "dot-2d", "--network", "paper"], "--network must be one of small, got"),
    (["run", "vmc-h2o"], "any other molecule is a file with its nuclei in Ångström, angd run h2o.xyz"),
    (["run", "burgers", "--max-rejections", "0"], "--max-rejections must be"),
    (["run", "burgers", "--checkpoint-seconds", "nan"], "--checkpoint-seconds must be"),
    (["run", "burgers", "adm"], "did you mean 'adam'?"),
    (["run", "burgers", "spring"], "spring is not for burgers"),
    (["run", "burgers", "adam", "--metric", "l2"], "angd run has no option --metric"),
    (["run", "burgers", "angd-l2", "--metric", "h7"], "metric must be one of l2, h1, h2, or the address"),
    (["run", "burgers", "--solver", "magic"], "solver must be one of normal"),
    (["run", "burgers", "--dampin", "1"], "did you mean --damping?"),
    (["run", "burgers", "--damping"], "--damping takes a value"),
    (["run", "burgers", "--damping", "-1"], "damping must be a number from 1e-12"),
    (["run", "burgers", "--damping", "nan"], "damping must be a number"),
    (["run", "burgers", "--interior", "1.5"], "interior must be a whole number"),
    (["run", "burgers", "--interior", "0"], "interior must be a number from 1"),
    (["run", "burgers", "--interior", "9" * 400], "interior must be a number from 1"),
    (["run", "burgers", "--restart"], "set mu > 0 as well"),
    (["run", "burgers", "--out", ""], "--out must name a folder"),
    (["run", "burgers", "--out", "/proc/1/run"], "cannot be written"),
    (["run", "burgers", "--out", "/dev/null/run"], "is a file"),
    (["run", "nowhere.py"], "There is no file 'nowhere.py'"),
    (["run", "no_such_module:task"], "There is no module 'no_such_module'"),
    (["run", "water.xyz"], "There is no file 'water.xyz'"),
    (["run", "--damping", "3"], "options of a recipe follow its name"),
    (["run", "--resume", "/nowhere"], "no folder '/nowhere'"),
    (["run", "--resume", "/usr"], "not the folder of a run"),
    (["run", "burgers", "--resume", "/usr"], "leave out task"),
    (["run", "--config", "/nowhere.json"], "no file '/nowhere.json'"),
    (["run", "--config", "/etc/hostname"], "cannot be read as JSON"),
    (["compare", "burgers"], "angd compare needs A,B,C"),
    (["compare", "burgers", "adam,adam"], "each once"),
    (["compare", "burgers", "adam,agd"], "no recipe called 'agd'"),
    (["compare", "burgers", "adam", "--seeds", "0,x"], "--seeds takes whole numbers"),
    (["compare", "burgers", "adam", "--budget", "3 parsecs"], "--budget takes a number and a unit"),
    (["compare", "burgers", "adam", "--budget", "many steps"], "not a number of steps"),
    (["compare", "burgers", "adam", "--budget", "-5 steps"], "--steps must be"),
    (["sweep", "burgers", "energy"], "has no such grid"),
    (["sweep", "burgers", "adam", "--by", "luck"], "--by must be one of"),
    (["sweep", "burgers", "adam", "--most", "0"], "--most must be from 1"),
    (["sweep", "burgers", "adam", "--grid", "yours"], "--grid must be ours, paper or none"),
    (["sweep", "burgers", "adam", "--rate", "0"], "rate must be a number"),
    (["sweep", "burgers", "adam", "--rte", "0"], "did you mean --rate?"),
    (["sweep", "vmc-be", "spring", "--by", "loss"], "training energies lie"),
    (["report"], "Say which runs"),
    (["report", "/nowhere"], "no folder '/nowhere'"),
    (["reproduce", "figure-1"], "there are burgers-cos"),
    (["reproduce", "euler", "--budget", "1"], "--budget must be from 9"),
]


@pytest.mark.parametrize(
    ("arguments", "words"), COMMANDS, ids=lambda v: " ".join(v)[:60] if isinstance(v, list) else ""
)
def test_every_command_answers_mistakes_in_one_sentence(arguments, words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    said = capsys.readouterr()
    assert words in said.err
    assert said.err.count("\n") == 1
    assert said.out == ""
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--spin", "1"], "10 electrons cannot have n↑ − n↓ = 1: it must be even, 10 at most"),
        (["--charge", "1", "--spin", "2"], "9 electrons cannot have n↑ − n↓ = 2: it must be odd"),
        (["--spin", "-12"], "it must be even, 10 at most"),
        (["--charge", "10"], "leaves 0 electrons"),
        (["--network", "large"], "--network must be one of small, medium, published, paper"),
    ],
)
def test_ions_and_spins_that_cannot_be_get_one_sentence(given, words, capsys, tmp_path):
    assert (
        main(["run", str(Path(__file__).parents[2] / "examples" / "water.xyz"), *given, "--out", str(tmp_path / "run")])
        == 2
    )
    said = capsys.readouterr()
    assert words in said.err
    assert said.err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_none_of_these_mistakes_imports_jax(tmp_path):
    """One process answers all of them without it, in a fraction of the three seconds that each may take."""
    code = f"import sys; from angd.program.main import main; [main(a) for a in {[a for a, _ in COMMANDS]!r}]; "
    code += "sys.exit(bool({'jax', 'numpy', 'matplotlib'} & set(sys.modules)))"
    start = time.perf_counter()
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert len(run.stderr.splitlines()) == len(COMMANDS)
    assert time.perf_counter() - start < 10


def test_a_bad_command_line_is_answered_at_once(tmp_path):
    start = time.perf_counter()
    command = [sys.executable, "-m", "angd.program.main", "run", "brgers"]
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert run.returncode == 2
    assert time.perf_counter() - start < 3


@pytest.mark.parametrize("command", ["run", "compare", "sweep", "evaluate", "report", "reproduce", "flow", "list"])
def test_every_command_has_help(command, capsys):
    with pytest.raises(SystemExit) as stop:
        main([command, "--help"])
    assert stop.value.code == 0
    assert "usage: angd" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [[], ["--help"], ["help"]])
def test_the_program_alone_says_what_it_can_do(arguments, capsys):
    assert main(arguments) == 0
    shown = capsys.readouterr().out
    assert all(f"angd {command}" in shown for command in cli.COMMANDS)


def test_the_program_knows_its_version(capsys):
    from importlib.metadata import version

    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"angd {version('angd')}\n"


def test_the_options_of_a_recipe_are_options_with_their_texts(capsys):
    with pytest.raises(SystemExit):
        main(["run", "burgers", "energy", "--help"])
    shown = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "--damping FLOAT λ at the start, from 1e-12 to 1e+06 (default: 0.01)" in shown
    assert "--restart, --no-restart" in shown


@pytest.mark.slow
def test_the_decays_of_the_flow_are_options_and_a_run_keeps_them(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["run", "burgers", "angd-l2", "--help"])
    shown = " ".join(capsys.readouterr().out.replace("│", " ").split())
    for text in ("--alpha FLOAT friction α of the flow", "--alpha-decay FLOAT α falls as 1/(1 + alpha_decay k)"):
        assert text in shown
    told = {"alpha": 0.5, "alpha_decay": 1e-3, "beta": 1.0, "beta_decay": 2e-3, "h_decay": 1e-4}
    words = [word for name, value in told.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    few = ["--interior", "30", "--condition", "8", "--steps", "2", "--quiet", "--out", str(tmp_path / "run")]
    assert main(["run", "heat", "angd-l2", *words, *few]) == 0
    kept = json.loads((tmp_path / "run" / "config.json").read_text())["options"]
    assert {name: kept[name] for name in told} == told


@pytest.mark.parametrize(("arguments", "words"), MISTAKES, ids=lambda v: " ".join(v) if isinstance(v, list) else "")
def test_mistakes_get_one_sentence_and_exit_code_2(arguments, words, capsys):
    assert main(["flow", *arguments]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1


def test_mistakes_are_answered_before_jax_is_imported(tmp_path):
    code = "import sys; from angd.program.main import main; main(['flow', '--t1', '0']); sys.exit('jax' in sys.modules)"
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


def test_flow_of_first_order_is_the_gradient_flow(tmp_path, capsys):
    """Linear in one mode: |mean u|^1.2 in L² has u′ = −1.2 u^0.2, so u^0.8 falls by 0.96 γ t; here γ = 1/t."""
    options = ["--manifold", "sobolev", "--functional", "power", "--order", "1", "--gamma", "1/t", "--t1", "2"]
    assert main(["flow", *options, "--out", str(tmp_path / "flow.png"), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert answer["order"] == 1
    assert answer["alpha"] is None
    assert answer["loss"] == pytest.approx((1 - 0.96 * math.log(2)) ** 1.5, rel=1e-8)


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


def test_a_warning_is_a_sentence_without_a_place_in_the_code(monkeypatch, capsys):
    def careless(_):
        warnings.simplefilter("always")
        warnings.warn("30 residuals cannot hold 62 parameters.", stacklevel=1)
        return 0

    monkeypatch.setitem(cli.COMMANDS, "list", (ListOptions, careless))
    shown = warnings.showwarning
    assert main(["list"]) == 0
    assert capsys.readouterr().err == "angd: 30 residuals cannot hold 62 parameters.\n"
    assert warnings.showwarning is shown


def test_a_missing_or_old_jax_is_named_in_a_sentence(monkeypatch):
    from angd import _requirements

    monkeypatch.setattr(_requirements, "version", lambda package: "0.4.30.dev1")
    with pytest.raises(ImportError, match=r"angd needs jax ≥ 0\.8\.0, found 0\.4\.30"):
        _requirements.check_requirements()


def test_the_package_says_that_it_is_typed():
    import angd

    assert (Path(angd.__file__).parent / "py.typed").exists()


def started(arguments, folder, **environment):
    """The program as a process of its own."""
    command = [sys.executable, "-m", "angd.program.main", *arguments]
    return subprocess.Popen(
        command, cwd=folder, env=os.environ | environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def test_devices_that_are_not_there_are_named(tmp_path):
    process = started(["run", "heat", "--steps", "2"], tmp_path, JAX_PLATFORMS="tpu")
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 2
    assert said == "angd: JAX finds no device: JAX_PLATFORMS=tpu asks for devices that are not here.\n"
    assert not list(tmp_path.iterdir())


def test_output_that_is_not_unicode_is_no_reason_to_fail(tmp_path):
    process = started(["list"], tmp_path, PYTHONIOENCODING="ascii")
    out, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (0, "")
    assert "burgers" in out


@pytest.mark.slow
def test_sigterm_during_compilation_ends_with_a_sentence(tmp_path):
    process = started(["run", "heat", "--out", "run"], tmp_path)
    assert process.stderr is not None
    while "compiling" not in process.stderr.readline():
        pass
    process.terminate()
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 143
    assert "terminated" in said
    assert "Traceback" not in said


def test_sigterm_before_a_run_has_begun_ends_with_a_sentence(monkeypatch, capsys):
    def patient(_):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(5)

    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setitem(cli.COMMANDS, "list", (ListOptions, patient))
    assert main(["list"]) == 143
    assert capsys.readouterr().err == "angd: terminated.\n"
    assert signal.getsignal(signal.SIGTERM) is before
