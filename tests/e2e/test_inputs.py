"""Bad input of every kind, drawn from a seed: no traceback, no hang, no silent success.

Cases run in this process. A command line must end with code 2 and one line on standard error, and leave nothing
behind; a call of the library must raise ValueError or TypeError with a sentence.
"""

import inspect
import json
import os
import random
import shutil
import signal
import string
from contextlib import contextmanager
from dataclasses import replace

import jax.numpy as jnp
import optax
import pytest

import angd
from angd.program.main import main
from angd.train.config import Config
from angd.train.folder import RunFolder
from making import session

pytestmark = pytest.mark.filterwarnings("always")  # the program shows warnings as sentences
QUICK, SLOW = 100, 2000
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


def garbage(rng):
    """A word of anything."""
    letters = string.printable + "äψ→\U0001f600"
    return "".join(rng.choice(letters) for _ in range(rng.randint(1, 30)))


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
    option, value = arguments[-2:]
    fine = {"--recover": ("-0",), "--halving": ("1e999",), "--steps": (), "--seed": ()}
    return value in fine.get(option, ()) or (value == "1,5" and option == "--rate")


VALUES = [None, True, -1, 1.5, "", "x", [], {}, [1], {"a": 1}, 10**400, float("nan"), -(10**18), "\x00", [[[]]]]


def a_configuration(rng, path):
    """A run's configuration with one thing wrong."""
    whole = Config.of("heat", "adam", {"rate": 1e-3}, steps=3).to_dict()
    kinds = [
        lambda: whole | {rng.choice(["task", "recipe", "format"]): wrong(rng, whole["task"])},
        lambda: whole | {rng.choice(["seed", "steps", "max_rejections"]): rng.choice([True, -1, 1.5, "x", [], {}])},
        lambda: whole | {"options": {rng.choice(list(whole["options"])): wrong(rng, None)}},
        lambda: whole | {"options": {garbage(rng): 1}},
        lambda: whole | {"arguments": {rng.choice(["network", "charge", garbage(rng)]): wrong(rng, None)}},
        lambda: whole | {rng.choice(["source", "start"]): rng.choice([[], "x", 3, {"path": 3}, {"sha256": []}])},
        lambda: whole | {"python": rng.choice([True, 1, "yes", []])},
        lambda: whole | {garbage(rng): 1},
        lambda: {name: value for name, value in whole.items() if name != rng.choice(["task", "recipe", "format"])},
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


def wrong(rng, right):
    return rng.choice([value for value in VALUES if value != right and value is not None])


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


class Density:
    def log_density(self, params, x):
        return -params["a"] * x**2

    def variation(self, params, x):
        return x**2


class Residual:
    def residual(self, params, x):
        return params["a"] * x - 1


PARAMS, X = {"a": jnp.array(1.0)}, jnp.linspace(-1, 1, 8)
SAMPLES = angd.Samples(X)
STRANGE = [None, 3, "text", [1, 2], {"a": 3}, object(), 1j, float("nan"), X, PARAMS, SAMPLES, len, angd]


def optimiser(metric):
    return angd.ANGD(angd.ARGFlow.momentum(0.5, 0.1), metric, angd.Normal(1e-3))


def a_misuse(rng):
    """A call of the library with something wrong in it."""
    strange = rng.choice(STRANGE)
    no_text = rng.choice([s for s in STRANGE if not isinstance(s, str)])
    stranger = rng.choice([s for s in STRANGE if s is not None and s is not SAMPLES and not callable(s)])
    number = rng.choice([-1, -0.5, float("nan"), float("inf"), "1", True, [1.0], {}])
    whole = rng.choice([-1, 1.5, "3", True, float("nan"), 10**400, [3]])
    solver, energy = angd.Normal(1e-3), angd.Energy()
    flow = angd.ARGFlow.momentum(0.5, 0.1)
    state = optimiser(energy).init(Residual(), PARAMS, SAMPLES) if rng.random() < 0.5 else strange
    adam = optax.adam(1e-2).init(PARAMS)
    wrong_state = adam if state is not strange else strange
    kinds = [
        lambda: optimiser(energy).init(Residual(), PARAMS, stranger),
        lambda: optimiser(angd.FisherRao()).init(Density(), PARAMS, {"a": SAMPLES}),
        lambda: optimiser(energy).step(Residual(), PARAMS, SAMPLES, wrong_state),
        lambda: optimiser(energy).init(strange, PARAMS, SAMPLES),
        lambda: optimiser(energy).init(Residual(), rng.choice([None, {}, 3, "x", {"a": 1}, [1j]]), SAMPLES),
        lambda: angd.ANGD(strange, energy, solver),
        lambda: angd.ANGD(flow, strange, solver),
        lambda: angd.ANGD(flow, energy, strange),
        lambda: angd.ANGD(flow, energy, solver, strange),
        lambda: angd.Normal(number),
        lambda: angd.Kernel(number),
        lambda: angd.Iterative(1e-3, rtol=rng.choice([0, -1.0, float("nan")])),
        lambda: angd.in_turn(rng.choice([[], [3], [None], ["x"]])),
        lambda: angd.fit("heat", steps=whole, progress=False),
        lambda: angd.fit("heat", steps=1, key=whole, progress=False),
        lambda: angd.fit("heat", steps=1, recover=whole, progress=False),
        lambda: angd.fit("heat", rng.choice([3, [1], {"a": 3}, object(), angd.ANGD, X]), steps=1, progress=False),
        lambda: angd.fit("heat", f"no-{garbage(rng)}", steps=1, progress=False),
        lambda: angd.fit(rng.choice([3, [1], X, object(), f"no-{garbage(rng)}"]), steps=1, progress=False),
        lambda: angd.fit("heat", "adam", steps=1, callback=rng.choice([3, "x", [1]]), progress=False),
        lambda: angd.fit("heat", "adam", steps=1, mesh=rng.choice([3, "x", [1]]), progress=False),
        lambda: angd.fit("heat", "adam", steps=1, folder=rng.choice(["", ".", 3, []]), progress=False),
        lambda: angd.load(f"nowhere/{garbage(rng)}".replace("\x00", "")),
        lambda: angd.evaluate(rng.choice(["nowhere", 3, None, []])),
        lambda: angd.evaluate("nowhere", grid=rng.choice([3, (0, 3), "x", (1.5, 2)])),
        lambda: angd.Task(angd.Task(Residual())),
        lambda: angd.Task.of(no_text),
        lambda: angd.recipes.GaussNewton(damping=number),
        lambda: angd.recipes.GaussNewton(interior=rng.choice([0, -1, 1.5, "3", True, [3]])),
        lambda: angd.Samples(X, -jnp.ones(8)),
        lambda: angd.published.spring(rng.choice([-1.0, 0.0, float("nan")])),
    ]
    return rng.choice(kinds)


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


def check_call(call):
    """A sentence of our own kind of error."""
    with in_time(), pytest.raises((ValueError, TypeError)) as caught:
        call()
    assert len(str(caught.value)) > 10


def check_some(seed, count, run, tmp_path, capsys):
    """A quarter of each kind; all that go wrong are shown."""
    rng, failures = random.Random(seed), []
    place = tmp_path / "folders"
    place.mkdir()

    def attempt(check, *arguments):
        try:
            check(*arguments)
        except Exception as error:
            failures.append(f"{type(error).__name__}: {str(error)[:400]} {str(arguments[0])[:200]}")
        except pytest.fail.Exception as error:
            failures.append(f"{error} {inspect.getsource(arguments[0])}")

    for i in range(count // 4):
        line = a_command_line(rng)
        if not is_right(line):
            attempt(check_line, line, capsys, tmp_path)
        a_configuration(rng, place / "config.json")
        attempt(check_line, ["run", "--config", str(place / "config.json"), "--out", "out"], capsys, tmp_path)
        folder = place / str(i)
        line = a_damaged_folder(rng, run, folder)
        end = ["--out", "page"] if line == ["report"] else ["--quiet"] if line[0] == "run" else []
        attempt(check_line_of_folder, [*line, str(folder), *end], capsys)
        shutil.rmtree(folder)
        attempt(check_call, a_misuse(rng))
    assert not failures, "\n".join(failures)


def check_line_of_folder(arguments, capsys):
    """One sentence, or a warning and one; a lock may stay."""
    with in_time():
        code = main(arguments)
    said = capsys.readouterr()
    assert code == 2, (arguments, code, said)
    assert 1 <= said.err.count("\n") <= 3, (arguments, said.err)
    assert all(line.startswith("angd: ") for line in said.err.splitlines()), said.err


def test_a_hundred_mistakes_get_their_sentences(run, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check_some(0, QUICK, run, tmp_path, capsys)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 11))
def test_thousands_of_mistakes_get_their_sentences(run, seed, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check_some(seed, SLOW // 10, run, tmp_path, capsys)
