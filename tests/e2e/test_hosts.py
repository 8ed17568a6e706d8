"""Several processes on one run, on this machine's loopback: the same numbers as one, whoever is killed or frozen."""

import random
import shutil
import signal
import socket
import subprocess
import sys
import time

import jax
import numpy as np
import pytest
from killing import Moment, assert_same, assert_whole, at_work, complete, job, kill, writing

import angd
from angd.program.main import main
from angd.train.checkpoint import Checkpoints
from angd.train.folder import RunFolder
from angd.train.run import identity

GONE, SOON = 75, 60  # the exit code where a peer is gone, and the seconds within which that must be noticed
FEW = ["--interior", "32", "--condition", "8"]
HEAT = ["run", "heat", "adam", *FEW]
TWO = ["--devices", "2", "--heartbeat", "8"]
USUAL = [Moment(), Moment()]


def state_of(folder):
    """The arrays of the last checkpoint, and its step."""
    run = RunFolder(folder)
    kept = Checkpoints(run.checkpoints, identity(run.config()))
    return kept.read(kept.steps[-1])[0], kept.steps[-1]


def assert_equal_numbers(folder, reference, tolerance=1e-10):
    (found, step), (expected, last) = state_of(folder), state_of(reference)
    assert step == last
    assert found.keys() == expected.keys()
    for name in found:
        if name.startswith("['params']"):
            assert np.allclose(found[name], expected[name], rtol=tolerance, atol=tolerance), name


def completed(arguments, home):
    """Let all processes come to their end; what they said on both streams."""
    with job(arguments, home, USUAL) as processes:
        ends = [process.end() for process in processes]
    assert [code for code, _, _ in ends] == [0, 0], ends
    return [said for _, *said in ends]


def struck(arguments, home, victim, moment, number=signal.SIGKILL):
    """A signal to one process at its moment: how the other one ended, and after how many seconds."""
    moments = [moment if i == victim or moment.records else Moment() for i in range(2)]
    with job(arguments, home, moments) as processes:
        processes[victim].reach()
        processes[victim].process.send_signal(number)
        since = time.monotonic()
        code, _, error = processes[1 - victim].end()
        seconds = time.monotonic() - since
        if number == signal.SIGTERM:
            assert processes[victim].end()[0] == 128 + number
    return code, error, seconds


def assert_noticed(end, victim, sentence="process {} is gone or out of reach; go on with: angd run --resume out"):
    code, error, seconds = end
    assert code == GONE, error
    assert seconds < SOON
    last = error.strip().split("\n")[-1]
    assert last == f"angd: [{1 - victim}/2] " + sentence.format(victim)
    assert not any(word in error for word in ("Traceback", "absl", "Gloo", "coordination", "terminate"))


def test_a_killed_process_ends_the_other_and_one_goes_on_to_the_numbers_of_one(tmp_path, monkeypatch):
    end = struck([*HEAT, "--steps", "20", *TWO, "--out", "out"], tmp_path, 1, Moment(records=4))
    assert_noticed(end, 1)
    assert "[0/2] 2 cpu devices here, 4 cpu devices in all on 2 processes." in end[1]
    assert_whole(tmp_path)
    assert 1 <= state_of(tmp_path / "out")[1] < 20
    monkeypatch.chdir(tmp_path)
    assert main(["run", "--resume", "out", "--quiet"]) == 0
    assert main([*HEAT, "--steps", "20", "--out", "one", "--quiet"]) == 0
    assert_equal_numbers(tmp_path / "out", tmp_path / "one")


def test_devices_that_are_not_there_are_one_sentence(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(jax.config, "update", lambda name, value: None)  # the devices of this process are there already
    assert main([*HEAT, "--steps", "1", "--devices", "3", "--out", "out"]) == 2
    assert "angd: --devices 3: there are 2 cpu devices here." in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def kills(seed):
    """Ten moments of one of two processes, half of them while a checkpoint is written, which process 0 does."""
    rng = random.Random(seed)
    written = [(0, writing(rng, name)) for name in ("opened", "half", "written", "moved", "removed")]
    return [*written, *((i % 2, at_work(rng)) for i in range(5))]


@pytest.mark.slow
def test_ten_kills_of_one_of_two_end_the_other_and_lose_nothing(tmp_path):
    moments = kills(0)
    random.Random(1).shuffle(moments)
    for victim, moment in moments:
        begun = (tmp_path / "out" / "config.json").exists()
        command = ["run", "--resume", "out"] if begun else [*HEAT, "--out", "out"]
        assert_noticed(struck([*command, "--steps", "4000", *TWO], tmp_path, victim, moment), victim)
        assert_whole(tmp_path)
    last = state_of(tmp_path / "out")[1]
    limit = ["--steps", str(last + 10)]
    shutil.copytree(tmp_path / "out", tmp_path / "copy" / "out")
    complete(["run", "--resume", "out", *limit], tmp_path / "copy")
    kill(["run", "--resume", "out", *limit], tmp_path, Moment(records=1))
    complete(["run", "--resume", "out", *limit], tmp_path)
    assert_same(tmp_path / "out", tmp_path / "copy" / "out")


@pytest.mark.slow
@pytest.mark.parametrize("victim", [0, 1])
def test_a_frozen_process_is_noticed_by_the_heartbeat(tmp_path, victim):
    end = struck(
        [*HEAT, "--steps", "4000", *TWO, "--out", "out"], tmp_path, victim, at_work(random.Random(2)), signal.SIGSTOP
    )
    assert_noticed(end, victim)


@pytest.mark.slow
@pytest.mark.parametrize("victim", [0, 1])
def test_a_frozen_process_is_noticed_by_the_watchdog(tmp_path, victim):
    patient = ["--devices", "2", "--heartbeat", "600", "--watchdog", "10"]
    command = [*HEAT, "--steps", "4000", *patient, "--out", "out"]
    code, error, seconds = struck(command, tmp_path, victim, at_work(random.Random(3)), signal.SIGSTOP)
    assert code == GONE, error
    assert 9 < seconds < SOON
    last = error.strip().split("\n")[-1]
    assert last.startswith(f"angd: [{1 - victim}/2] no step was completed in 1")
    assert last.endswith("so this process or another one hangs; go on with: angd run --resume out")
    assert_whole(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("victim", [0, 1])
def test_sigterm_to_one_stops_both_with_everything_saved(tmp_path, victim):
    command = [*HEAT, "--steps", "4000", *TWO, "--checkpoint-seconds", "1e9", "--out", "out"]
    code, error, _ = struck(command, tmp_path, victim, at_work(random.Random(4)), signal.SIGTERM)
    assert code == 128 + signal.SIGTERM, error
    run = RunFolder(tmp_path / "out")
    assert state_of(run.path)[1] == run.records()[-1].step
    assert (run.read("summary.json") or {})["result"].startswith("terminated; go on with")


@pytest.mark.slow
def test_a_run_goes_on_on_any_number_of_devices_and_processes(tmp_path):
    resume = ["run", "--resume", "out", "--quiet", "--steps"]
    (other := tmp_path / "other").mkdir()  # process 1 sees nothing of the folder
    completed([*HEAT, "--out", "out", "--steps", "5", *TWO], [tmp_path, other])
    complete([*resume, "10"], tmp_path)
    complete([*resume, "15", "--devices", "2"], tmp_path)
    completed([*resume, "20", *TWO], [tmp_path, other])
    assert list(other.iterdir()) == []
    complete([*resume, "25", "--devices", "4"], tmp_path)
    complete([*HEAT, "--out", "one", "--steps", "25", "--quiet"], tmp_path)
    assert_equal_numbers(tmp_path / "out", tmp_path / "one")


# In double precision, which molecules are not.
WELL = """
import jax.numpy as jnp
import angd
from angd.problems.vmc import GaussianStart, GroundState, Metropolis

def log_psi(params, x):
    return jnp.ones(()), -params[0] * jnp.sum(x**2) / 2 - jnp.exp(params[1]) * jnp.sum(x**4)

problem = GroundState(log_psi, lambda x: jnp.sum(x**2) / 2 + jnp.sum(x**4) / 10)
chain = Metropolis(GaussianStart(1, 1), walkers=64, burn_in=10, moves=4)
task = angd.Task(problem, name="well", params=jnp.array([0.7, -4.0]), samples=chain)
"""
SAME = {
    "energy": ["run", "heat", "energy", *FEW, "--warm-steps", "6"],
    "angd-l2": ["run", "heat", "angd-l2", *FEW],
    "angd-fr": ["run", "well.py", "angd-fr", "--measurements", "4"],
    "angd-w2": ["run", "well.py", "angd-w2", "--measurements", "4"],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SAME)
def test_two_processes_with_two_devices_each_find_the_numbers_of_one(tmp_path, name):
    (tmp_path / "well.py").write_text(WELL)
    complete([*SAME[name], "--steps", "20", "--out", "one", "--quiet"], tmp_path)
    said = completed([*SAME[name], "--steps", "20", *TWO, "--out", "out"], tmp_path)
    assert_equal_numbers(tmp_path / "out", tmp_path / "one")
    assert said[1][0] == "", "only process 0 speaks of results"
    assert said[1][1].strip().split("\n") == ["angd: [1/2] 2 cpu devices here, 4 cpu devices in all on 2 processes."]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((["--seed", "0"], ["--seed", "1"]), "The processes were given different commands"),
        ((["--devices", "1"], ["--devices", "2"]), "The processes were given --devices 1 and 2"),
    ],
)
def test_processes_with_different_commands_are_refused(tmp_path, options, words):
    commands = [[*HEAT, "--steps", "5", "--out", "out", *own] for own in options]
    with job(commands, tmp_path, USUAL) as processes:
        ends = [process.end() for process in processes]
    assert [code for code, _, _ in ends] == [2, 2], ends
    assert all(words in error for _, _, error in ends)
    assert not (tmp_path / "out").exists()


SCRIPT = """
import sys
import jax

jax.config.update("jax_num_cpu_devices", 2)
jax.config.update("jax_enable_x64", True)
jax.distributed.initialize(sys.argv[1], 2, int(sys.argv[2]), heartbeat_timeout_seconds=30)

import angd
from angd.problems.pinn import Box

recipe = angd.recipes.Adam(interior=32, condition=8)
mesh = angd.parallel.mesh()
fit = angd.fit("heat", recipe, steps=5, mesh=mesh, progress=False)
print(f"{fit(jax.numpy.array([[0.3, 0.4]])).item():.14f}", flush=True)
fit = angd.fit("heat", recipe, steps=10**6, mesh=mesh, progress=False, folder="out")
print(fit.result, flush=True)
"""


@pytest.mark.slow
def test_fit_works_in_a_script_on_two_processes_and_stops_at_a_signal_to_one(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{free.getsockname()[1]}"
    command = [sys.executable, "script.py", place]
    started = [subprocess.Popen([*command, str(i)], cwd=tmp_path, stdout=subprocess.PIPE, text=True) for i in range(2)]
    try:
        deadline, metrics = time.monotonic() + 180, tmp_path / "out" / "metrics.jsonl"
        while not (metrics.exists() and metrics.read_bytes().count(b"\n") > 3):
            assert time.monotonic() < deadline
            assert all(process.poll() is None for process in started)
            time.sleep(0.1)
        started[1].send_signal(signal.SIGTERM)
        said = [process.communicate(timeout=60)[0].strip().split("\n") for process in started]
    finally:
        for process in started:
            process.kill()
    one = angd.fit("heat", angd.recipes.Adam(interior=32, condition=8), steps=5, progress=False)
    value = one(jax.numpy.array([[0.3, 0.4]])).item()
    for lines in said:
        assert lines[-1] == "terminated"
        assert any(_is_near(line, value) for line in lines), (lines, value)
    assert state_of(tmp_path / "out")[1] == RunFolder(tmp_path / "out").records()[-1].step


def _is_near(line, value):
    """Is it the number? Gloo prints on standard output too."""
    try:
        return abs(float(line) - value) < 1e-10
    except ValueError:
        return False
