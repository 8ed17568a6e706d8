"""kill -9, and two signals at once, at any moment of any command: nothing is lost, and the end is the same to the bit.

60 kills, half of them while a checkpoint is written, and 20 pairs of signals; three of the kills are quick tests.
"""

import json
import random
import re
import shutil
import signal
import time

import pytest
from killing import (
    CHECKPOINT,
    WRITING,
    Moment,
    Program,
    assert_same,
    assert_saved,
    assert_whole,
    at_work,
    complete,
    early,
    kill,
    writing,
)

from angd.train.folder import RunFolder

FEW = ["--interior", "30", "--condition", "8"]
TWO_PHASES = ["--warm-steps", "8", "--fresh", "8", "--keep", "2"]
SWEEP = ["--grid", "none", "--rate", "1e-3,1e-2,3e-2,1e-1", "--steps", "18", "--rungs", "3"]
# By name: the command, its folder, and how one goes on with it, where that is not by saying it again.
COMMANDS = {
    "adam": ["run", "heat", "adam", *FEW, "--steps", "30"],
    "energy": ["run", "heat", "energy", *FEW, *TWO_PHASES, "--steps", "24"],
    "angd-l2": ["run", "heat", "angd-l2", *FEW, "--steps", "36"],
    "compare": ["compare", "heat", "adam,angd-l2", "--budget", "12 steps"],
    "sweep": ["sweep", "heat", "adam", *FEW, *SWEEP],
}
INT, TERM = signal.SIGINT, signal.SIGTERM


@pytest.fixture(scope="module", autouse=True)
def _compile_once(tmp_path_factory):
    """All processes share what one has compiled: most of their time would go there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path_factory.mktemp("compiled")))
        patch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
        patch.setenv("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")
        yield


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The folder of a command that nobody disturbed, made when it is first asked for."""
    made = {}

    def find(name):
        if name not in made:
            home = tmp_path_factory.mktemp(name)
            complete([*COMMANDS[name], "--out", "out", "--quiet"], home)
            made[name] = home / "out"
        return made[name]

    return find


def command(name, home):
    """The command, or how to go on with it."""
    if COMMANDS[name][0] == "run" and (home / "out" / "config.json").exists():
        return ["run", "--resume", "out"]
    return [*COMMANDS[name], "--out", "out"]


def kills_change_nothing(name, home, reference, moments):
    for moment in moments:
        kill(command(name, home), home, moment)
        assert_whole(home)
    complete(command(name, home), home)
    assert_same(home / "out", reference)


def test_three_kills_of_heat_change_nothing(tmp_path, undisturbed):
    rng = random.Random(0)
    moments = [at_work(rng), writing(rng, "half"), early(rng)]
    kills_change_nothing("adam", tmp_path, undisturbed("adam"), moments)


def series(seed, *kinds):
    """Moments from a seed: words are those of the writing of a checkpoint, pairs those of another file."""
    rng = random.Random(seed)
    other = {"early": early, "work": at_work}
    return [
        writing(rng, *kind) if isinstance(kind, tuple) else other[kind](rng) if kind in other else writing(rng, kind)
        for kind in kinds
    ]


SERIES = [
    ("adam", series(1, "opened", "work", "removed", "written", ("half", r"summary\.json"))),
    ("adam", series(2, ("opened", r"config\.json"), "half", "early", "moved", ("written", r"solution\.npz"))),
    ("energy", series(3, "half", "early", "removed", "moved")),
    ("energy", series(4, "work", "opened", "written", ("opened", r"history\.png"))),
    ("angd-l2", series(5, "written", "moved", "work", "half")),
    ("compare", series(6, "opened", "work", "moved", "early", "removed")),
    ("compare", series(7, "half", ("half", r"summary\.json"), "written", ("written", r"solution\.png"))),
    ("compare", series(8, "written", "half", "moved", ("opened", r"report\.html"), ("half", r"heat\.csv"))),
    ("sweep", series(9, "opened", "work", "moved", "early", "removed")),
    ("sweep", series(10, "half", "work", "written", ("half", r"best\.json"))),
    ("sweep", series(11, "removed", "opened", "half", ("opened", r"sweep\.json"), ("moved", r"best\.json"))),
]
LOOKS = [early(random.Random(seed), most=1.2) for seed in range(4)] + [
    Moment(moment=moment, file=r"evaluation\.json") for moment in WRITING[:-1]
]
BESIDE = [Moment(moment="half", file=CHECKPOINT, count=9), Moment(after=0.8)]  # a run, and a look at it


def test_there_are_sixty_kills_half_of_them_while_a_checkpoint_is_written():
    moments = [moment for _, found in SERIES for moment in found] + LOOKS + BESIDE
    assert len(moments) == 60
    assert sum(moment.file.startswith(CHECKPOINT) for moment in moments) == 30


@pytest.mark.slow
@pytest.mark.parametrize(("name", "moments"), SERIES, ids=[f"{i}-{name}" for i, (name, _) in enumerate(SERIES)])
def test_kills_change_nothing(tmp_path, undisturbed, name, moments):
    kills_change_nothing(name, tmp_path, undisturbed(name), moments)


def files(folder):
    """The bytes of every file but of what an evaluation writes."""
    found = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return {path: data for path, data in found.items() if "evaluation.json" not in path.name}


@pytest.mark.slow
def test_kills_of_an_evaluation_leave_its_run_alone(tmp_path, undisturbed):
    shutil.copytree(undisturbed("adam"), tmp_path / "out")
    before, look = files(tmp_path / "out"), ["evaluate", "out", "--grid", "40,40", "--json"]
    expected = json.loads(complete(look, tmp_path))
    for moment in LOOKS:
        kill(look, tmp_path, moment)
        assert files(tmp_path / "out") == before
        assert_whole(tmp_path)
    assert json.loads(complete(look, tmp_path)) == expected
    assert RunFolder(tmp_path / "out").read("evaluation.json") == expected
    assert files(tmp_path / "out") == before
    assert [path.name for path in (tmp_path / "out").glob(".*")] == [".lock"]


@pytest.mark.slow
def test_a_run_and_a_look_at_it_are_killed_together(tmp_path, undisturbed):
    with Program(command("adam", tmp_path), tmp_path, BESIDE[0]) as run:
        run.reach()
        look = ["evaluate", "out", "--json"]
        before = files(tmp_path / "out")
        kill(look, tmp_path, BESIDE[1])
        assert json.loads(complete(look, tmp_path))["step"] == 8
        assert files(tmp_path / "out") == before
        run.process.kill()
        assert run.end()[0] == -signal.SIGKILL
    complete(command("adam", tmp_path), tmp_path)
    RunFolder(tmp_path / "out").forget("evaluation.json")
    assert_same(tmp_path / "out", undisturbed("adam"))


def pairs(name, seed, *moments):
    """Two signals at each moment, from a seed: which, and how far apart."""
    rng = random.Random(seed)
    held = [moment(rng) if callable(moment) else writing(rng, *moment, seconds=2.5) for moment in moments]
    return [
        (name, moment, [rng.choice((INT, TERM)), rng.choice((INT, TERM))], rng.choice((0.0, 0.05, 0.4, 1.3)))
        for moment in held
    ]


FIGURE = ("opened", r"history\.png")
PAIRS = [
    *pairs("adam", 1, early, at_work, ("half",), FIGURE),
    *pairs("energy", 2, early, at_work, ("written",)),
    *pairs("angd-l2", 3, at_work, ("moved",)),
    *pairs("compare", 4, early, at_work, ("half",), FIGURE, ("opened", r"report\.html")),
    *pairs("sweep", 5, early, at_work, ("half",), ("moved",), ("half", r"best\.json")),
]
assert len(PAIRS) + 1 == 20  # and one of `reproduce`


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "moment", "signals", "apart"), PAIRS, ids=[f"{i}-{name}" for i, (name, *_) in enumerate(PAIRS)]
)
def test_two_signals_end_in_a_sentence_and_change_nothing(tmp_path, undisturbed, name, moment, signals, apart):
    reference = undisturbed(name)
    code, error = signalled([*command(name, tmp_path)], tmp_path, moment, signals, apart)
    assert_sentence(COMMANDS[name][0], code, error, signals[0], finished=name == "adam" and moment.file == FIGURE[1])
    assert_whole(tmp_path)
    assert_saved(tmp_path)
    complete(command(name, tmp_path), tmp_path)
    assert_same(tmp_path / "out", reference)


@pytest.mark.slow
def test_two_signals_end_a_reproduction_in_a_sentence(tmp_path):
    """Its budget is in CPU seconds, so that no other run is the same."""
    arguments = ["reproduce", "burgers-sin", "--budget", "90", "--out", "out"]
    code, error = signalled(arguments, tmp_path, Moment(records=3), [TERM, INT], 0.1)
    assert_sentence("reproduce", code, error, TERM)
    assert_whole(tmp_path)
    assert_saved(tmp_path)


def signalled(arguments, home, moment, signals, apart):
    """The exit code and what was said after two signals."""
    with Program(arguments, home, moment) as program:
        program.reach()
        program.process.send_signal(signals[0])
        time.sleep(apart)
        program.process.send_signal(signals[1])
        code, _, error = program.end()
    return code, error


def assert_sentence(command, code, error, first, finished=False):
    """The exit code is that of the first signal, and one sentence says how to go on."""
    assert "Traceback" not in error, error
    assert code == (0 if finished else 128 + first), error
    sentences = re.findall("^angd: (?:interrupted|terminated|stopped).*$", error, re.MULTILINE)
    assert len(sentences) == (0 if finished else 1), error
    if not finished and command != "run":
        assert sentences == ["angd: stopped; the same command goes on."]
    elif not finished and "compil" in error:
        assert sentences[0].endswith("; go on with: angd run --resume out")
