"""Bad input of every kind, drawn from a seed: no traceback, no hang, no silent success.

A command line must end with code 2 and one line on standard error, and leave nothing behind; a call of the library
must raise ValueError or TypeError with a sentence. Calls are made in another process, in which annotations are not
checked: a user has no checker.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import jax.numpy as jnp
import optax
import pytest
from misuse import PARAMS, SAMPLES, Density, Residual, garbage, optimiser

import angd
from angd.program.main import main
from angd.train.config import Config
from angd.train.folder import RunFolder
from making import session

pytestmark = pytest.mark.filterwarnings("always")  # the program shows warnings as sentences
QUICK, SLOW = 84, 1800  # and a third as many misuses of the library
PATIENCE = 20  # seconds that an answer may take


@contextmanager
def in_time(seconds=PATIENCE):
    """Fail where nothing is answered."""

    def late(*_):
        raise AssertionError(f"no answer in {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A finished run, to be damaged."""
    path = tmp_path_factory.mktemp("inputs") / "run"
    list(session(path, Config.of("heat", "adam", {"interior": 30, "condition": 8}, steps=3)).records())
    return path


LONG = "9" * 400
NUMBERS = ["", "-1", "nan", "-inf", "1e999", LONG, "0x10", "ten", "1,5", "true", "½", "--", "\x00", "1 2", "[]", "-0.5"]
WORDS = ["", " ", "\x00", "x" * 5000, "é∂ψ", "../..", "/dev/null/x", "a:b", "a.py:b", ":", "-", "--", "%s", "{}", "\n"]
WHOLE = ("--steps", "--seed", "--max-rejections", "--recover", "--charge", "--from-step")
REALS = ("--seconds", "--cpu-seconds", "--checkpoint-seconds")
PLACES = ("--config", "--resume", "--from")
OPTIONS = ("--rate", "--halving", "--momentum", "--interior", "--condition", "--second")
FORMULAS = [
    "t+" * 2000 + "t",
    "(" * 999 + "t",
    "-" * 2000 + "t",
    "1/0",
    "t.real",
    "f(t)",
    "t if t else 1",
    "1e999",
    "-t",
]


def a_command_line(rng):
    """A mistake that a person could make, or a monkey."""
    number, word = rng.choice(NUMBERS), rng.choice([*WORDS, garbage(rng)])
    kinds = [
        lambda: ["run", "heat", "adam", rng.choice(WHOLE), number],
        lambda: ["run", "heat", "adam", rng.choice(REALS), number],
        lambda: ["run", "heat", "adam", rng.choice(OPTIONS), number],
        lambda: ["run", f"no-{word}"],
        lambda: ["run", "heat", f"no-{word}"],
        lambda: ["run", "heat", "adam", "more", word],
        lambda: ["run", "heat", f"--no-{garbage(rng)}".replace("\x00", "")],
        lambda: ["run", rng.choice(PLACES), f"nowhere/{garbage(rng)}"],
        lambda: ["run", "heat", "--out", rng.choice(["", "/dev/null/x", "/proc/1/x"])],
        lambda: ["run", "heat", "--precision", f"f{number}"],
        lambda: ["run", "heat", "--resume", "nowhere", "--config", "nowhere"],
        lambda: ["compare", "heat", f"adam,no-{word}"],
        lambda: ["compare", "heat", "adam", "--seeds", f"-{number}"],
        lambda: ["compare", "heat", "adam", "--budget", f"{number} parsecs"],
        lambda: ["compare", f"no-{word}", "adam"],
        lambda: ["sweep", "heat", "adam", "--grid", "none", "--rate", f"0,{number}"],
        lambda: ["sweep", "heat", "adam", rng.choice(["--most", "--steps", "--rungs"]), rng.choice(["0", "-1", LONG])],
        lambda: ["sweep", "heat", "adam", "--rate", many(rng), "--halving", many(rng), "--interior", many(rng)],
        lambda: ["evaluate", f"nowhere/{garbage(rng)}"],
        lambda: ["report", f"nowhere/{garbage(rng)}"],
        lambda: ["reproduce", f"no-{word}"],
        lambda: ["flow", rng.choice(["--alpha", "--beta", "--gamma"]), rng.choice(FORMULAS)],
        lambda: ["flow", rng.choice(["--t0", "--t1"]), rng.choice(["-1", "nan", "inf", LONG, "x"])],
        lambda: [f"no-{word}"],
    ]
    return rng.choice(kinds)()


def many(rng):
    """So many values that their combinations are hopeless."""
    return ",".join(str(i + 1) for i in range(rng.randint(100, 400)))


def is_right(arguments):
    """Some of these values are right in some places, and would be run."""
    option, value = ["", *arguments][-2:]
    fine = {"--recover": ("-0",), "--halving": ("1e999",), "--steps": (), "--seed": ()}
    return value in fine.get(option, ()) or (value == "1,5" and option == "--rate")


VALUES = [True, -1, "", "x", [], {}, [1], {"a": 1}, 10**400, float("nan"), -(10**18), "\x00", [[[]]]]


def a_configuration(rng, path):
    """A run's configuration with one thing wrong."""
    whole = Config.of("heat", "adam", {"rate": 1e-3}, steps=3).to_dict()
    needed = rng.choice(["task", "recipe", "format"])
    kinds = [
        lambda: whole | {needed: wrong(rng)},
        lambda: whole | {rng.choice(["seed", "steps", "max_rejections"]): rng.choice([True, -1, 1.5, "x", [], {}])},
        lambda: whole | {"options": {"rate": wrong(rng)}},
        lambda: whole | {"options": {garbage(rng): 1}},
        lambda: whole | {"arguments": {rng.choice(["network", "charge", garbage(rng)]): wrong(rng)}},
        lambda: whole | {rng.choice(["source", "start"]): rng.choice([[], "x", 3, {"path": 3}, {"sha256": []}])},
        lambda: whole | {"python": rng.choice([1, "yes", []])},
        lambda: whole | {garbage(rng): 1},
        lambda: {name: value for name, value in whole.items() if name != needed},
        lambda: rng.choice([[], 3, "text", None, [whole]]),
        lambda: "[" * 100_000 + "]" * 100_000,
        lambda: '{"a":' * 100_000,
        lambda: json.dumps(whole)[: rng.randint(0, 60)],
        lambda: garbage(rng) + "{",
        lambda: "fifo",
    ]
    made = rng.choice(kinds)()
    path.unlink(missing_ok=True)
    if made == "fifo":
        os.mkfifo(path)
    else:
        path.write_text(made if isinstance(made, str) else json.dumps(made), encoding="utf-8")
    return made


def wrong(rng):
    return rng.choice(VALUES)


def a_damaged_folder(rng, source, path):
    """A copy of a run with something lost, cut, changed or replaced, and what is asked of it."""
    shutil.copytree(source, path)
    kind = rng.choice(["config", "config", "checkpoint", "metrics", "fifo", "foreign"])
    checkpoint = next((path / "checkpoints").iterdir())
    if kind == "config":
        a_configuration(rng, path / "config.json")
        return rng.choice([["run", "--resume"], ["evaluate"], ["report"], ["run", "--from"]])
    if kind == "checkpoint":
        data = bytearray(checkpoint.read_bytes())
        place = rng.randrange(len(data))
        checkpoint.write_bytes(data[:place] if rng.random() < 0.5 else b"\x00" * place)
        return rng.choice([["run", "--resume"], ["evaluate"], ["run", "--from"]])
    if kind == "metrics":
        (path / "metrics.jsonl").write_text(rng.choice(["{", "[]\n", '{"step": 1}\n', "\x00\n", "3\n"]))
        return ["report"]
    if kind == "foreign":
        config = RunFolder(path).config()
        other = replace(config, seed=config.seed + 1)
        (path / "config.json").write_text(json.dumps(other.to_dict()))
        return rng.choice([["run", "--resume"], ["evaluate"], ["run", "--from"]])
    name = rng.choice(["config.json", "metrics.jsonl"])
    (path / name).unlink()
    os.mkfifo(path / name)
    return ["report"]


def check_line(arguments, capsys, place):
    """One sentence, code 2, nothing left behind."""
    before = sorted(place.rglob("*"))
    with in_time():
        code = main(arguments)
    said = capsys.readouterr()
    assert code == 2, (arguments, code, said)
    assert said.err.startswith("angd: "), (arguments, said.err)
    assert said.err.count("\n") == 1, (arguments, said.err)
    assert len(said.err) < 3000, (arguments, len(said.err))
    assert "Traceback" not in said.err
    assert sorted(place.rglob("*")) == before, arguments


def check_configuration(made, path, capsys, place):
    """The same of a file; `made` is shown where that fails."""
    check_line(["run", "--config", str(path), "--out", "out"], capsys, place)


def check_some(seed, count, run, tmp_path, capsys):
    """A third of each kind; all that go wrong are shown."""
    rng, failures = random.Random(seed), []
    place = tmp_path / "folders"
    place.mkdir()

    def attempt(check, *arguments):
        try:
            check(*arguments)
        except Exception as error:
            failures.append(f"{type(error).__name__}: {str(error)[:400]} {str(arguments[0])[:400]}")

    for i in range(count // 3):
        line = a_command_line(rng)
        if not is_right(line):
            attempt(check_line, line, capsys, tmp_path)
        made = a_configuration(rng, place / "config.json")
        attempt(check_configuration, made, place / "config.json", capsys, tmp_path)
        folder = place / str(i)
        line = a_damaged_folder(rng, run, folder)
        end = ["--out", "page"] if line == ["report"] else ["--quiet"] if line[0] == "run" else []
        attempt(check_line_of_folder, [*line, str(folder), *end], capsys)
        shutil.rmtree(folder)
    assert not failures, "\n".join(failures)


def check_line_of_folder(arguments, capsys):
    """One sentence, or a warning and one; a lock may stay."""
    with in_time():
        code = main(arguments)
    said = capsys.readouterr()
    assert code == 2, (arguments, code, said)
    assert 1 <= said.err.count("\n") <= 3, (arguments, said.err)
    assert all(line.startswith("angd: ") for line in said.err.splitlines()), said.err


def misused(seeds, count):
    """What was wrong with the answers to misuses of the library, made without this suite's checks of types."""
    words = [sys.executable, str(Path(__file__).with_name("misuse.py")), str(count), *map(str, seeds)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_misuses_of_the_library_get_their_sentences():
    assert misused([0], QUICK // 3) == ""


def test_a_hundred_mistakes_get_their_sentences(run, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check_some(0, QUICK, run, tmp_path, capsys)


NAMED = [
    ({"recipe": ["adam"]}, "recipe must not be"),
    ({"recipe": ""}, "There is no recipe called ''"),
    ({"task": {"a": 1}}, "task must not be"),
    ({"options": {"rate": 10**400}}, "rate must be a number from"),
    ({"options": {"interior": 10**400}}, "interior must be a number from"),
    ({"options": {"rate": True}}, "rate must be a number from"),
    ({"steps": 10**400}, "--steps must be a whole number from"),
    ({"python": True}, "was begun in Python"),
    ({"source": {"path": 3}}, "source must have a text 'path'"),
    ({"start": {"folder": "x"}}, "start must have a text 'sha256'"),
]


@pytest.mark.parametrize(("change", "words"), NAMED)
def test_a_configuration_with_one_thing_wrong_says_which(change, words, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    whole = Config.of("heat", "adam", {"rate": 1e-3}, steps=3).to_dict()
    (tmp_path / "config.json").write_text(json.dumps(whole | change))
    assert main(["run", "--config", "config.json"]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert len(said) < 500


LINES = [
    (["flow", "--alpha", "+".join(["t"] * 3000)], "a formula has at most 300 letters"),
    (["flow", "--alpha", "(" * 250 + "t"], "is not a formula"),
    (["run", "--config", "/dev/zero"], "is not a file"),
    (["run", "--config", "FIFO"], "is not a file"),
    (["run", "FIFO.py"], "There is no file"),
    (["run", "vmc-h", "spring", "--mu", "0.5", "--beta", "0.2"], "angd-fr has both, and beta"),
    (["sweep", "heat", "adam", "--out", ""], "--out must name a folder"),
    (["compare", "heat", "adam", "--out="], "--out must name a folder"),
    (["report", "x", "--out", ""], "--out must name a folder"),
    (["run", "--resume", ""], "--resume must name a folder"),
    (["run", "--config", ""], "--config must name a file"),
    (["run", "heat\0"], "zero character"),
    (["sweep", "heat", "adam", *(word for name in ("--rate", "--halving", "--interior", "--condition")
                                for word in (name, ",".join(map(str, range(1, 85)))))], "combinations"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "words"), LINES, ids=lambda v: str(v)[:40] if isinstance(v, str) else "")
def test_bad_lines_get_one_sentence_at_once(arguments, words, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("FIFO")
    os.mkfifo("FIFO.py")
    with in_time(5):
        assert main(arguments) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1


def test_another_number_of_walkers_is_refused():
    method = optimiser(angd.Wasserstein())
    state = method.init(Density(), PARAMS, SAMPLES)
    with pytest.raises(ValueError, match="give every step as many samples, or call init again"):
        method.step(Density(), PARAMS, angd.Samples(jnp.linspace(-1, 1, 9)), state)


def test_schedules_of_optax_simply_work():
    flow = angd.ARGFlow.momentum(0.5, optax.exponential_decay(0.1, 10, 0.5))
    method = angd.ANGD(flow, angd.Energy(), angd.Normal(1e-3))
    assert method.step(Residual(), PARAMS, SAMPLES, method.init(Residual(), PARAMS, SAMPLES))[3].ok


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 11))
def test_thousands_of_mistakes_get_their_sentences(run, seed, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check_some(seed, SLOW // 10, run, tmp_path, capsys)


@pytest.mark.slow
def test_hundreds_of_misuses_of_the_library_get_their_sentences():
    assert misused(range(1, 6), SLOW // 3 // 5) == ""
