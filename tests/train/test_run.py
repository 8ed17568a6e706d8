"""Runs in their folders: begun, stopped in every way there is, gone on with, and never half-written."""

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

import angd
from angd.program.main import main
from angd.train import loop
from angd.train.config import Config
from angd.train.folder import Record, RunFolder
from angd.train.run import FAILED
from making import session, setup_of

FEW = {"interior": 30, "condition": 8}


def config(steps=12, optimiser="adam", **changes):
    return Config.of("heat", optimiser, FEW | changes, steps=steps)


def whole(path, settings):
    """All records of an undisturbed run."""
    return list(session(path, settings).records())


def same(records):
    """What must not depend on interruptions."""
    return [replace(record, seconds=0.0, cpu_seconds=0.0) for record in records]


def test_a_run_leaves_a_folder_that_says_everything(tmp_path):
    run = session(tmp_path / "run", config())
    records = list(run.records())
    folder = RunFolder(tmp_path / "run")
    assert [record.step for record in records] == list(range(1, 13))
    assert folder.records() == records
    assert folder.config().differences(run.config) == []
    assert (folder.read("environment.json") or {})["packages"]["jax"]
    solution = folder.read_arrays("solution.npz")
    error = np.linalg.norm(solution["u found"] - solution["u exact"]) / np.linalg.norm(solution["u exact"])
    assert error == pytest.approx(records[-1].errors["u"])
    summary = folder.read("summary.json")
    assert summary is not None
    assert (summary["steps"], summary["result"], summary["error"]) == (12, "finished", records[-1].errors["u"])
    assert same(whole(tmp_path / "again", folder.config())) == same(records)


@pytest.mark.parametrize("optimiser", ["adam", pytest.param("energy", marks=pytest.mark.slow)])
def test_a_run_goes_on_bit_by_bit_after_it_was_left(tmp_path, optimiser):
    settings = config(12, optimiser, **({"warm_steps": 3, "fresh": 4, "keep": 2} if optimiser == "energy" else {}))
    expected = same(whole(tmp_path / "whole", settings))
    for stop in (2, 6, 9):
        records = session(tmp_path / "parts", settings).records()
        while next(records).step < stop:
            pass
        records.close()
    assert same(session(tmp_path / "parts", settings).records()) == expected
    assert same(RunFolder(tmp_path / "parts").records()) == expected


def test_a_run_that_goes_on_forgets_its_solution_until_it_ends(tmp_path):
    path = tmp_path / "run"
    whole(path, config(3))
    assert RunFolder(path).read_arrays("solution.npz")
    records = session(path, config(9)).records()
    while next(records).step < 5:
        pass
    records.close()
    assert RunFolder(path).read_arrays("solution.npz") == {}
    (path / "solution.npz").write_bytes(b"PK half a file")
    with pytest.raises(ValueError, match="is damaged; delete it"):
        RunFolder(path).read_arrays("solution.npz")


def test_a_finished_run_can_be_given_more(tmp_path):
    whole(tmp_path / "run", config(7))
    assert same(session(tmp_path / "run", config(12)).records()) == same(whole(tmp_path / "other", config(12)))
    assert len(list(session(tmp_path / "run", config(12)).records())) == 12


def test_another_configuration_is_refused(tmp_path):
    whole(tmp_path / "run", config(3))
    with pytest.raises(ValueError, match="holds a run with another seed, rate"):
        list(session(tmp_path / "run", replace(config(3, rate=0.1), seed=5)).records())


def test_two_processes_do_not_share_a_folder(tmp_path):
    first = session(tmp_path / "run", config(3)).records()
    next(first)
    with pytest.raises(ValueError, match="Another process is running"):
        list(session(tmp_path / "run", config(3)).records())
    first.close()


def checkpoint_of(path):
    return max((path / "checkpoints").iterdir(), key=lambda entry: int(entry.stem))


@pytest.mark.filterwarnings("default:The checkpoint")
def test_a_damaged_checkpoint_is_named_and_the_run_goes_on_from_the_one_before_it(tmp_path, capsys):
    path = tmp_path / "run"
    records = session(path, config(12), save_seconds=0.0).records()
    for _ in range(8):
        next(records)
    records.close()
    damaged = checkpoint_of(path)
    damaged.write_bytes(damaged.read_bytes()[:-20])
    assert main(["run", "--resume", str(path)]) == 0
    said = capsys.readouterr().err
    assert f"{str(damaged)!r} is damaged" in said
    assert "goes on from the one before it" in said
    assert same(RunFolder(path).records()) == same(whole(tmp_path / "whole", config(12)))


@pytest.mark.filterwarnings("default:The checkpoint")
def test_a_run_without_any_whole_checkpoint_says_so_and_keeps_its_metrics(tmp_path, capsys):
    path = tmp_path / "run"
    whole(path, config(6))
    before = RunFolder(path).metrics_file.read_bytes()
    for file in (path / "checkpoints").iterdir():
        file.write_bytes(b"half a file")
    assert main(["run", "--resume", str(path), "--steps", "9"]) == 2
    assert "No checkpoint in" in capsys.readouterr().err
    assert RunFolder(path).metrics_file.read_bytes() == before


@pytest.mark.parametrize("name", ["run[1]", "run\\x", "a b", "ünï", "100%", "{x}"])
def test_checkpoints_are_whole_whatever_the_folder_is_called(tmp_path, name):
    path = tmp_path / name
    records = session(path, config(12), save_seconds=0.0).records()
    for _ in range(5):
        next(records)
    records.close()
    assert same(session(path, config(12)).records()) == same(whole(tmp_path / "whole", config(12)))


def test_two_checkpoints_and_the_best_are_kept_across_resumes(tmp_path):
    path = tmp_path / "run"
    for stop in range(2, 13, 2):
        list(session(path, config(stop), save_seconds=0.0).records())
    kept = sorted(int(file.stem) for file in (path / "checkpoints").iterdir())
    assert kept[-2:] == [11, 12]
    assert len(kept) <= 3
    errors = {record.step: record.error for record in RunFolder(path).records()}
    assert min(kept, key=lambda k: errors[k]) == min(errors, key=lambda k: errors[k])


@pytest.mark.parametrize("edit", ["k", "config"])
def test_an_edited_step_counter_or_seed_is_noticed(tmp_path, edit):
    path = tmp_path / "run"
    whole(path, config(6))
    if edit == "config":
        written = json.loads((path / "config.json").read_text())
        (path / "config.json").write_text(json.dumps(written | {"seed": 7}))
        settings = replace(config(9), seed=7)
    else:
        settings, file = config(9), checkpoint_of(path)
        with np.load(file) as stored:
            arrays = dict(stored)
        head = json.loads(str(arrays["head"]))
        edited = arrays | {"head": np.array(json.dumps(head | {"k": 2}))}
        np.savez(file, allow_pickle=False, **edited)
    with (
        pytest.warns(UserWarning, match="is not what was saved"),
        pytest.raises(ValueError, match=r"No checkpoint in .* is whole"),
    ):
        list(session(path, settings).records())


def test_a_folder_in_which_a_run_died_at_once_can_be_used(tmp_path):
    path = tmp_path / "run"
    path.mkdir()
    (path / "environment.json").write_text("{}")
    (path / ".lock").touch()
    assert len(whole(path, config(3))) == 3


def test_a_lock_that_is_a_link_is_refused_and_its_target_left_alone(tmp_path):
    path, precious = tmp_path / "run", tmp_path / "thesis.txt"
    path.mkdir()
    precious.write_text("years of work")
    (path / ".lock").symlink_to(precious)
    with pytest.raises(ValueError, match="is a link to somewhere else"):
        whole(path, config(3))
    assert precious.read_text() == "years of work"


def test_files_have_the_permissions_that_the_user_wants(tmp_path):
    before = os.umask(0o027)
    try:
        whole(tmp_path / "run", config(3))
    finally:
        os.umask(before)
    assert {(tmp_path / "run" / name).stat().st_mode & 0o777 for name in ("config.json", "metrics.jsonl")} == {0o640}


def test_a_folder_that_is_removed_under_a_run_is_noticed(tmp_path):
    path = tmp_path / "run"
    records = session(path, config(9)).records()
    next(records)
    shutil.rmtree(path)
    with pytest.raises(OSError, match="The folder of the run was removed"):
        list(records)


def test_a_checkpoint_of_another_network_is_refused(tmp_path):
    whole(tmp_path / "small", config(3))
    paper = Config.of("heat", "adam", FEW, {"network": "paper"}, steps=3)
    whole(tmp_path / "paper", paper)
    stranger, place = checkpoint_of(tmp_path / "paper"), checkpoint_of(tmp_path / "small")
    stranger.replace(place)
    with (
        pytest.warns(UserWarning, match="is not what was saved"),
        pytest.raises(ValueError, match="No checkpoint"),
    ):
        list(session(tmp_path / "small", config(9)).records())


def test_metrics_of_something_else_are_refused(tmp_path):
    whole(tmp_path / "run", config(3))
    (tmp_path / "run" / "metrics.jsonl").write_text('{"step": 1}\n')
    with pytest.raises(ValueError, match="not a record of a run"):
        list(session(tmp_path / "run", config(9)).records())


def poisoned(settings, monkeypatch, after, spoil):
    """A setup whose sampler is spoilt after a step."""
    setup = setup_of(settings)
    phase = setup.phases[0]
    calls = []

    def sampler(key, problem, params):
        calls.append(None)
        samples = phase.sampler(key, problem, params)
        return spoil(samples) if len(calls) > after else samples

    compiled = loop._Loop._compiled

    def eager(self, function, *fixed):
        """The sampler counts its calls, so it must not be compiled."""
        return partial(function, self.problem, *fixed) if function is loop._draw else compiled(self, function, *fixed)

    monkeypatch.setattr(loop._Loop, "_compiled", eager)
    spoilt = replace(phase, sampler=sampler)
    return replace(setup, phases=[spoilt, spoilt])


def test_points_that_are_not_numbers_stop_the_run_with_code_3(tmp_path, monkeypatch):
    import jax

    settings = replace(config(30), max_rejections=5)
    setup = poisoned(settings, monkeypatch, 4, lambda s: jax.tree.map(lambda leaf: leaf.at[0].set(np.nan), s))
    run = session(tmp_path / "run", settings, 0.0, setup)
    records = list(run.records())
    assert run.code == FAILED
    assert records[-1].step == 9
    assert records[-1].loss is None
    assert "5 steps in a row were rejected" in run.result
    assert "check the data" in run.result
    assert checkpoint_of(tmp_path / "run").stem == "000000004"
    assert records[-1].test_loss == records[3].test_loss


def copies(samples):
    """Every point of a term in the same place."""
    import jax

    return jax.tree.map(lambda leaf: leaf if leaf.ndim < 2 else leaf.at[:].set(leaf[0]), samples)


def test_a_singular_kernel_is_rejected_and_stops_the_run_with_code_3(tmp_path):
    """Copies of one point from the fourth step on, and nothing that damps."""

    settings = replace(config(30, "ngd-l2"), max_rejections=4)
    setup = setup_of(settings)
    good = setup.phases[0]
    undamped = replace(good.optimiser, solver=angd.Normal(0.0))
    sampler = lambda key, problem, params: copies(good.sampler(key, problem, params))  # noqa: E731
    phases = [replace(good, steps=3), replace(good, optimiser=undamped, sampler=sampler)]
    run = session(tmp_path / "run", settings, 0.0, replace(setup, phases=phases))
    records = list(run.records())
    assert run.code == FAILED
    assert [record.accepted for record in records] == 3 * [True] + 4 * [False]
    assert "4 steps in a row were rejected: the linear system could not be solved" in run.result
    assert "raise damping" in run.result
    assert records[-1].test_loss == records[2].test_loss
    assert checkpoint_of(tmp_path / "run").stem == "000000003"


def test_a_local_energy_that_is_not_a_number_is_masked_and_counted():
    """One walker of sixteen, at every step: the run goes on, and every record says so."""
    import jax.numpy as jnp

    from angd.problems.vmc import GaussianStart, GroundState, Metropolis

    class Spoilt(GroundState):
        def local_energies(self, params, xs):
            return super().local_energies(params, xs).at[0].set(np.nan)

    problem = Spoilt(lambda params, x: (jnp.ones(()), -params[0] * jnp.sum(x**2) / 2), lambda x: jnp.sum(x**2) / 2)
    task = angd.Task(problem, energy=0.5, params=jnp.array([0.5]), samples=Metropolis(GaussianStart(1, 1), walkers=16))
    recipe = angd.recipes.Spring(rate=0.05, norm=1e6, decay=1e-3, measurements=4)
    records = angd.fit(task, recipe, steps=60, progress=False).records
    assert all(record.accepted and record.observables["masked"] == 1 for record in records)
    assert records[-1].error < 0.02 < records[0].error
    assert all(0 < (record.observables["acceptance"] or 0) < 1 for record in records)


@pytest.mark.parametrize("kind", [RuntimeError, ValueError])
def test_an_exception_in_the_data_source_is_told_and_the_last_state_kept(tmp_path, monkeypatch, kind):
    def fail(samples):
        raise kind("the file server is gone")

    run = session(tmp_path / "run", config(30), setup=poisoned(config(30), monkeypatch, 4, fail))
    records = list(run.records())
    assert run.code == 1
    assert f"step 5 failed: {kind.__name__}: the file server is gone" in run.result
    assert records[-1].step == 4
    assert checkpoint_of(tmp_path / "run").stem == "000000004"
    monkeypatch.undo()
    mended, undisturbed = list(session(tmp_path / "run", config(9)).records()), whole(tmp_path / "whole", config(9))
    assert np.allclose([record.error for record in mended], [record.error for record in undisturbed], rtol=1e-12)


def test_a_full_disk_leaves_whole_lines(tmp_path, monkeypatch, capsys):
    write, calls = os.write, []

    def full(handle, data):
        calls.append(data)
        return write(handle, data[: len(data) // 2]) if len(calls) == 4 else write(handle, data)

    monkeypatch.setattr(os, "write", full)
    path = tmp_path / "run"
    assert main(["run", "heat", "adam", "--steps", "9", "--out", str(path)]) == 1
    assert "No space left on device" in capsys.readouterr().err
    assert [record.step for record in RunFolder(path).records()] == [1, 2, 3]


def test_a_checkpoint_that_cannot_be_written_is_told(tmp_path, monkeypatch, capsys):
    def full(self, state, error):
        raise RuntimeError("RESOURCE_EXHAUSTED")

    monkeypatch.setattr("angd.train.checkpoint.Checkpoints.save", full)
    assert main(["run", "heat", "adam", "--steps", "3", "--out", str(tmp_path / "run")]) == 1
    assert "The checkpoint of step 3 could not be written (RESOURCE_EXHAUSTED)" in capsys.readouterr().err
    assert len(RunFolder(tmp_path / "run").records()) == 3


COMMAND = [sys.executable, "-m", "angd.program.main", "run"]
PAUSE = """
import signal, sys, time
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the tests may run under nohup
from angd.program import start
from angd.train import loop as runner
import angd
step = runner._Loop.step
def slowly(self, *now):
    time.sleep(0.05)
    return step(self, *now)
runner._Loop.step = slowly
sys.exit(start())
"""


def start(arguments):
    """`angd run` in a process, a little slower than usual so that it can be caught."""
    command = [sys.executable, "-c", PAUSE, "run", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for(path, count, process):
    """Until so many records are there."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        if path.exists() and path.read_bytes().count(b"\n") >= count:
            return
        time.sleep(0.01)
    assert process.poll() is None, process.communicate()


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGTERM, 143), (signal.SIGINT, 130), pytest.param(signal.SIGHUP, 129, marks=pytest.mark.slow)],
)
def test_a_signal_stops_after_the_step_saves_and_says_how_to_go_on(tmp_path, number, code):
    path = tmp_path / "run"
    settings = ["heat", "adam", "--interior", "30", "--condition", "8", "--steps", "400"]
    process = start([*settings, "--out", str(path), "--json"])
    wait_for(path / "metrics.jsonl", 5, process)
    process.send_signal(number)
    out, error = process.communicate(timeout=60)
    assert process.returncode == code
    assert f"go on with: angd run --resume {path}" in error
    summary = json.loads(out.splitlines()[-1])
    assert int(checkpoint_of(path).stem) == summary["steps"]
    assert "go on with" in summary["result"]


@pytest.mark.parametrize("pause", [0.0, *(pytest.param(pause, marks=pytest.mark.slow) for pause in (0.02, 1.5))])
def test_two_signals_lose_nothing(tmp_path, pause):
    """Within a moment they are one; later the second does not wait for the step, and the last whole one is saved."""
    path = tmp_path / "run"
    process = start(["heat", "adam", "--interior", "30", "--condition", "8", "--steps", "400", "--out", str(path)])
    wait_for(path / "metrics.jsonl", 5, process)
    process.send_signal(signal.SIGINT)
    time.sleep(pause)
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode in (130, 143)
    assert int(checkpoint_of(path).stem) >= RunFolder(path).records()[-1].step


def test_a_sweep_stops_at_a_signal_and_goes_on(tmp_path):
    path = tmp_path / "sweep"
    few = ["--interior", "30", "--condition", "8", "--grid", "none", "--rate", "1e-3,1e-2", "--steps", "60"]
    arguments = ["sweep", "heat", "adam", *few, "--rungs", "2", "--out", str(path)]
    command = [sys.executable, "-c", PAUSE, *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for(path / "000" / "metrics.jsonl", 5, process)
    process.send_signal(signal.SIGTERM)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 143, error
    assert "the same command goes on" in error
    assert int(checkpoint_of(path / "000").stem) == RunFolder(path / "000").records()[-1].step
    assert main([*arguments, "--quiet"]) == 0


KILLS = [pytest.param("adam", 1), pytest.param("energy", 20, marks=pytest.mark.slow)]


@pytest.mark.slow
@pytest.mark.parametrize(("optimiser", "kills"), KILLS)
def test_kills_at_any_moment_change_nothing(tmp_path, optimiser, kills):
    """kill -9, again and again: every file is readable each time, and the end is the same to the last bit."""
    path, rng = tmp_path / "run", random.Random(0)
    settings = ["heat", optimiser, "--interior", "30", "--condition", "8", "--steps", "200"]
    arguments = [*settings, "--out", str(path), "--checkpoint-seconds", "0.2"]
    for _ in range(kills):
        known = len(RunFolder(path).records())
        process = start(arguments)
        wait_for(path / "metrics.jsonl", min(known + 3, 95), process)
        time.sleep(rng.uniform(0, 0.6))
        process.kill()
        process.communicate()
        assert RunFolder(path).records()
        arguments = ["--resume", str(path), "--checkpoint-seconds", "0.2"]
    done = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    undisturbed = [*COMMAND, *settings, "--out", str(tmp_path / "whole")]
    subprocess.run(undisturbed, capture_output=True, check=True)
    assert same(RunFolder(path).records()) == same(RunFolder(tmp_path / "whole").records())


def test_progress_says_what_happens_where_there_is_no_terminal():
    import io

    from rich.console import Console

    from angd.train.loop import Budget, TrainState
    from angd.train.pace import Plan
    from angd.view.progress import Watch

    text = io.StringIO()
    with Watch("heat", Plan(Budget(steps=10)), Console(file=text, width=300)) as watch:
        for k in (1, 2):
            watch.due = 0.0
            state = TrainState(None, k=k, rejected=2, seconds=0.5 * k, cpu_seconds=0.5 * k)
            record = Record(k, 0, 0, {}, True, False, "", None, {"u": 0.25}, {"acceptance": 0.5, "masked": 1.0})
            watch(state, SimpleNamespace(loss=0.5, damping=1e-3, norm=0.1, accepted=k == 1), record)
    first, second, third = text.getvalue().splitlines()
    assert first == "heat: compiling"
    assert "of compilation" in second
    assert "heat: 20%, step 2, loss 5.00e-01, error 2.50e-01, " in third
    assert "4 s left" in third
    assert "rejected (2), λ 1.0e-03, |d| 1.0e-01, acceptance 50%, masked 1" in third


def test_a_resume_with_other_versions_is_said_and_written_down(tmp_path):
    whole(tmp_path / "run", config(3))
    folder = RunFolder(tmp_path / "run")
    before = folder.read("environment.json") or {}
    old = before | {"packages": before["packages"] | {"jax": "0.1.2"}}
    folder.write("environment.json", old)
    with pytest.warns(UserWarning, match=r"goes on at step 3 with jax 0\.1\.2 → "):
        whole(tmp_path / "run", config(5))
    found = folder.read("environment.json") or {}
    assert found["packages"]["jax"] == "0.1.2"
    assert [(entry["step"], entry["packages"]) for entry in found["resumed"]] == [(3, before["packages"])]
    whole(tmp_path / "run", config(7))
    assert len((folder.read("environment.json") or {})["resumed"]) == 1
