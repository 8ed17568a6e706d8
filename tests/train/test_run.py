"""Runs in their folders: begun, stopped in every way there is, gone on with, and never half-written."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import angd
from angd.program.main import main
from angd.train import run as sessions
from angd.train.config import Config
from angd.train.folder import Row, RunFolder
from angd.train.run import FAILED, Session
from angd.train.setup import prepare

FEW = {"interior": 30, "condition": 8}


def config(steps=12, optimiser="adam", **changes):
    return Config.of("heat", optimiser, FEW | changes, max_steps=steps)


def whole(path, settings):
    """All looks of an undisturbed run."""
    return list(Session(path, settings).rows())


def same(rows):
    """What must not depend on interruptions."""
    return [replace(row, seconds=0.0, cpu_seconds=0.0) for row in rows]


def test_a_run_leaves_a_folder_that_says_everything(tmp_path):
    run = Session(tmp_path / "run", config())
    rows = list(run.rows())
    folder = RunFolder(tmp_path / "run")
    assert [row.step for row in rows] == list(range(1, 13))
    assert folder.rows() == rows
    assert folder.config() == run.config
    assert folder.read("environment.json")["packages"]["jax"]
    solution = folder.read_arrays("solution.npz")
    error = np.linalg.norm(solution["u found"] - solution["u exact"]) / np.linalg.norm(solution["u exact"])
    assert error == pytest.approx(rows[-1].errors["u"])
    summary = folder.read("summary.json")
    assert (summary["steps"], summary["result"], summary["error"]) == (12, "finished", rows[-1].errors["u"])
    assert same(whole(tmp_path / "again", folder.config())) == same(rows)


@pytest.mark.parametrize("optimiser", ["adam", pytest.param("energy", marks=pytest.mark.slow)])
def test_a_run_goes_on_bit_by_bit_after_it_was_left(tmp_path, optimiser):
    settings = config(12, optimiser, **({"warm_steps": 3, "fresh": 4, "keep": 2} if optimiser == "energy" else {}))
    expected = same(whole(tmp_path / "whole", settings))
    for stop in (2, 6, 9):
        rows = Session(tmp_path / "parts", settings).rows()
        while next(rows).step < stop:
            pass
        rows.close()
    assert same(Session(tmp_path / "parts", settings).rows()) == expected
    assert same(RunFolder(tmp_path / "parts").rows()) == expected


def test_a_run_that_goes_on_forgets_its_solution_until_it_ends(tmp_path):
    path = tmp_path / "run"
    whole(path, config(3))
    assert RunFolder(path).read_arrays("solution.npz")
    rows = Session(path, config(9)).rows()
    while next(rows).step < 5:
        pass
    rows.close()
    assert RunFolder(path).read_arrays("solution.npz") == {}
    (path / "solution.npz").write_bytes(b"PK half a file")
    with pytest.raises(ValueError, match="is damaged; delete it"):
        RunFolder(path).read_arrays("solution.npz")


def test_a_finished_run_can_be_given_more(tmp_path):
    whole(tmp_path / "run", config(7))
    assert same(Session(tmp_path / "run", config(12)).rows()) == same(whole(tmp_path / "other", config(12)))
    assert len(list(Session(tmp_path / "run", config(12)).rows())) == 12


def test_another_configuration_is_refused(tmp_path):
    whole(tmp_path / "run", config(3))
    with pytest.raises(ValueError, match="holds a run with another seed, rate"):
        list(Session(tmp_path / "run", replace(config(3, rate=0.1), seed=5)).rows())


def test_two_processes_do_not_share_a_folder(tmp_path):
    first = Session(tmp_path / "run", config(3)).rows()
    next(first)
    with pytest.raises(ValueError, match="Another process is running"):
        list(Session(tmp_path / "run", config(3)).rows())
    first.close()


def checkpoint_of(path):
    return max((path / "checkpoints").iterdir(), key=lambda entry: int(entry.name))


def test_a_truncated_checkpoint_is_named_and_nothing_is_lost(tmp_path, capsys):
    path = tmp_path / "run"
    rows = Session(path, config(12), save_seconds=0.0).rows()
    for _ in range(8):
        next(rows)
    rows.close()
    damaged = checkpoint_of(path)
    data = max((file for file in damaged.rglob("*") if file.is_file()), key=lambda file: file.stat().st_size)
    data.write_bytes(data.read_bytes()[:-20])
    before = RunFolder(path).metrics_file.read_bytes()
    assert main(["run", "--resume", str(path)]) == 2
    assert f"{str(damaged)!r} is damaged" in capsys.readouterr().err
    assert RunFolder(path).metrics_file.read_bytes() == before
    damaged.rename(tmp_path / "away")
    assert same(Session(path, config(12)).rows()) == same(whole(tmp_path / "whole", config(12)))


def test_a_checkpoint_of_another_network_is_refused(tmp_path):
    whole(tmp_path / "small", config(3))
    whole(tmp_path / "paper", replace(config(3), network="paper"))
    stranger = checkpoint_of(tmp_path / "paper")
    place = checkpoint_of(tmp_path / "small")
    place.rename(tmp_path / "away")
    stranger.rename(place)
    with pytest.raises(ValueError, match="belongs to another configuration"):
        list(Session(tmp_path / "small", config(9)).rows())


def test_metrics_of_something_else_are_refused(tmp_path):
    whole(tmp_path / "run", config(3))
    (tmp_path / "run" / "metrics.jsonl").write_text('{"step": 1}\n')
    with pytest.raises(ValueError, match="not a record of a run"):
        list(Session(tmp_path / "run", config(9)).rows())


def poisoned(monkeypatch, after, spoil):
    """Sessions whose sampler is spoilt after a step."""

    def broken(settings):
        setup = prepare(settings)
        phase = setup.phases[0]
        calls = []

        def sampler(key, problem, params):
            calls.append(None)
            samples = phase.sampler(key, problem, params)
            return spoil(samples) if len(calls) > after else samples

        return replace(setup, phases=[replace(phase, sampler=sampler)])

    monkeypatch.setattr(sessions, "prepare", broken)
    # The sampler counts its calls, so it must not be compiled.
    monkeypatch.setattr("angd.train.loop.eqx.filter_jit", lambda f: f)


def test_points_that_are_not_numbers_stop_the_run_with_code_3(tmp_path, monkeypatch):
    import jax

    poisoned(monkeypatch, 4, lambda samples: jax.tree.map(lambda leaf: leaf.at[0].set(np.nan), samples))
    run = Session(tmp_path / "run", replace(config(30), max_refusals=5), save_seconds=0.0)
    rows = list(run.rows())
    assert run.code == FAILED
    assert rows[-1].step == 9
    assert rows[-1].loss is None
    assert "5 steps in a row were refused" in run.result
    assert "check the data" in run.result
    assert checkpoint_of(tmp_path / "run").name == "4"
    assert rows[-1].test_loss == rows[3].test_loss


def copies(samples):
    """Every point of a term in the same place."""
    import jax

    return jax.tree.map(lambda leaf: leaf if leaf.ndim < 2 else leaf.at[:].set(leaf[0]), samples)


def test_a_singular_kernel_is_refused_and_stops_the_run_with_code_3(tmp_path, monkeypatch):
    """Copies of one point from the fourth step on, and nothing that damps."""

    def broken(settings):
        setup = prepare(settings)
        good = setup.phases[0]
        undamped = replace(good.optimiser, solver=angd.Normal(0.0))
        sampler = lambda key, problem, params: copies(good.sampler(key, problem, params))  # noqa: E731
        return replace(setup, phases=[replace(good, steps=3), replace(good, optimiser=undamped, sampler=sampler)])

    monkeypatch.setattr(sessions, "prepare", broken)
    run = Session(tmp_path / "run", replace(config(30, "ngd-l2"), max_refusals=4), save_seconds=0.0)
    rows = list(run.rows())
    assert run.code == FAILED
    assert [row.accepted for row in rows] == 3 * [True] + 4 * [False]
    assert "4 steps in a row were refused: the linear system could not be solved" in run.result
    assert "raise damping" in run.result
    assert rows[-1].test_loss == rows[2].test_loss
    assert checkpoint_of(tmp_path / "run").name == "3"


def test_a_local_energy_that_is_not_a_number_is_masked_and_counted(tmp_path, monkeypatch):
    """One walker of sixteen, at every step: the run goes on, and every look says so."""
    import jax
    import jax.numpy as jnp

    from angd.problems.evaluation import Evaluator
    from angd.problems.task import Task
    from angd.problems.vmc import MOLECULES, GaussianStart, GroundState, Metropolis
    from angd.recipes.base import Phase
    from angd.train.setup import Setup

    class Spoilt(GroundState):
        def local_energies(self, params, xs):
            return super().local_energies(params, xs).at[0].set(np.nan)

    def trap(settings):
        """A particle in a harmonic trap instead of the molecule."""
        problem = Spoilt(lambda params, x: (jnp.ones(()), -params[0] * jnp.sum(x**2) / 2), lambda x: jnp.sum(x**2) / 2)
        phases = [Phase(settings.preset().optimiser(MOLECULES["H"]), Metropolis(GaussianStart(1, 1), walkers=16))]
        evaluate = Evaluator(Task(problem, energy=0.5))

        def look(stand, loss):
            return evaluate(stand.params, stand.samples, loss)

        return Setup(problem, phases, jnp.array([0.5]), jax.random.key(0), look)

    monkeypatch.setattr(sessions, "prepare", trap)
    rows = list(Session(tmp_path / "run", Config.of("vmc-h", "spring", {"norm": 1e6}, max_steps=60)).rows())
    assert all(row.accepted and row.chain["masked"] == 1 for row in rows)
    assert rows[-1].error < 0.02 < rows[0].error
    assert all(0 < (row.chain["acceptance"] or 0) < 1 for row in rows)


@pytest.mark.parametrize("kind", [RuntimeError, ValueError])
def test_an_exception_in_the_data_source_is_told_and_the_last_state_kept(tmp_path, monkeypatch, kind):
    def fail(samples):
        raise kind("the file server is gone")

    poisoned(monkeypatch, 4, fail)
    run = Session(tmp_path / "run", config(30))
    rows = list(run.rows())
    assert run.code == 1
    assert f"step 5 failed: {kind.__name__}: the file server is gone" in run.result
    assert rows[-1].step == 4
    assert checkpoint_of(tmp_path / "run").name == "4"
    monkeypatch.undo()
    mended, undisturbed = list(Session(tmp_path / "run", config(9)).rows()), whole(tmp_path / "whole", config(9))
    assert np.allclose([row.error for row in mended], [row.error for row in undisturbed], rtol=1e-12)


def test_a_full_disk_leaves_whole_lines(tmp_path, monkeypatch, capsys):
    write, calls = os.write, []

    def full(handle, data):
        calls.append(data)
        return write(handle, data[: len(data) // 2]) if len(calls) == 4 else write(handle, data)

    monkeypatch.setattr(os, "write", full)
    path = tmp_path / "run"
    assert main(["run", "heat", "--optimizer", "adam", "--max-steps", "9", "--out", str(path)]) == 1
    assert "No space left on device" in capsys.readouterr().err
    assert [row.step for row in RunFolder(path).rows()] == [1, 2, 3]


def test_a_checkpoint_that_cannot_be_written_is_told(tmp_path, monkeypatch, capsys):
    def full(self, stand, error):
        raise RuntimeError("RESOURCE_EXHAUSTED")

    monkeypatch.setattr("angd.train.checkpoint.Checkpoints.save", full)
    assert main(["run", "heat", "--optimizer", "adam", "--max-steps", "3", "--out", str(tmp_path / "run")]) == 1
    assert "The checkpoint of step 3 could not be written (RuntimeError)" in capsys.readouterr().err
    assert len(RunFolder(tmp_path / "run").rows()) == 3


COMMAND = [sys.executable, "-m", "angd.program.main", "run"]
PAUSE = """
import time
from angd.train import loop as runner
import angd
from angd.program.main import main
step = runner._Loop.step
def slowly(self, stand):
    time.sleep(0.05)
    return step(self, stand)
runner._Loop.step = slowly
import sys
sys.exit(main(sys.argv[1:]))
"""


def start(arguments):
    """`angd run` in a process, a little slower than usual so that it can be caught."""
    command = [sys.executable, "-c", PAUSE, "run", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for(path, count, process):
    """Until so many looks are there."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        if path.exists() and path.read_bytes().count(b"\n") >= count:
            return
        time.sleep(0.01)
    assert process.poll() is None, process.communicate()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_stops_after_the_step_saves_and_says_how_to_go_on(tmp_path, number, code):
    path = tmp_path / "run"
    settings = ["heat", "--optimizer", "adam", "--set", "interior=30", "condition=8", "--max-steps", "400"]
    process = start([*settings, "--out", str(path), "--json"])
    wait_for(path / "metrics.jsonl", 5, process)
    process.send_signal(number)
    out, error = process.communicate(timeout=60)
    assert process.returncode == code
    assert f"go on with: angd run --resume {path}" in error
    summary = json.loads(out.splitlines()[-1])
    assert checkpoint_of(path).name == str(summary["steps"])
    assert "go on with" in summary["result"]


KILLS = [pytest.param("adam", 1), pytest.param("energy", 20, marks=pytest.mark.slow)]


@pytest.mark.parametrize(("optimiser", "kills"), KILLS)
def test_kills_at_any_moment_change_nothing(tmp_path, optimiser, kills):
    """kill -9, again and again: every file is readable each time, and the end is the same to the last bit."""
    path, rng = tmp_path / "run", random.Random(0)
    settings = ["heat", "--optimizer", optimiser, "--set", "interior=30", "condition=8", "--max-steps", "200"]
    arguments = [*settings, "--out", str(path), "--checkpoint-seconds", "0.2"]
    for _ in range(kills):
        known = len(RunFolder(path).rows())
        process = start(arguments)
        wait_for(path / "metrics.jsonl", min(known + 3, 95), process)
        time.sleep(rng.uniform(0, 0.6))
        process.kill()
        process.communicate()
        assert RunFolder(path).rows()
        arguments = ["--resume", str(path), "--checkpoint-seconds", "0.2"]
    done = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    undisturbed = [*COMMAND, *settings, "--out", str(tmp_path / "whole")]
    subprocess.run(undisturbed, capture_output=True, check=True)
    assert same(RunFolder(path).rows()) == same(RunFolder(tmp_path / "whole").rows())


def test_progress_says_what_happens_where_there_is_no_terminal():
    import io

    from rich.console import Console

    from angd.train.progress import Watch

    text = io.StringIO()
    with Watch("heat", lambda stand: stand.k / 10, Console(file=text)) as watch:
        for k in (1, 2):
            watch.due = 0.0
            stand = SimpleNamespace(k=k, refused=2)
            row = Row(k, 0, 0, 0.5, None, {"u": 0.25}, None, None, True, "", {"acceptance": 0.5, "masked": 1.0})
            watch(stand, SimpleNamespace(loss=0.5, damping=1e-3, norm=0.1, accepted=k == 1), row)
    first, second, third = text.getvalue().splitlines()
    assert first == "heat: compiling"
    assert "of compilation" in second
    assert (
        "step 2, loss 5.00e-01, error 2.50e-01, λ 1.0e-03, |d| 1.0e-01, refused (2), acceptance 50%, masked 1" in third
    )
    assert "20%" in third
