"""The program under a pseudo-terminal, as a person sees it: at several widths, with colours and without."""

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import time

import pytest

from angd.program.main import HELP as HELP_ALONE
from angd.program.main import main
from angd.program.terminal import folded, linked, tell

WIDTHS = (40, 80, 120)
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
SENTENCE = (
    "angd: There is no task called 'burgres'; did you mean 'burgers'? "
    "A task of your own is file.py or package.module:name."
)


def seen(arguments, width, folder, interrupted_at="", **environment):
    """What a process shows on a terminal of a width; once it has shown some words, it gets a Ctrl-C."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    known = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR", "FORCE_COLOR")}
    command = [sys.executable, "-m", "angd.program.main", *arguments]
    process = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=folder, env=known | {"TERM": "xterm"} | environment
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # the other side is closed
            break
        if not piece:
            break
        shown += piece
        if interrupted_at and interrupted_at.encode() in shown:
            interrupted_at = ""
            time.sleep(1.0)
            process.send_signal(signal.SIGINT)
    os.close(ours)
    process.wait()
    return shown.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("environment", [{}, {"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=["colour", "no colour", "dumb"])
def test_a_mistake_is_folded_between_words(width, environment, tmp_path):
    shown = seen(["run", "burgres"], width, tmp_path, **environment)
    assert ("\x1b[" in shown) == (not environment)
    lines = CONTROL.sub("", shown).rstrip("\n").split("\n")
    assert max(map(len, lines)) <= width
    assert " ".join(line.strip() for line in lines) == SENTENCE
    assert all(line.startswith("      ") for line in lines[1:])


@pytest.mark.parametrize("width", WIDTHS)
def test_the_program_alone_fits_and_keeps_words_whole(width, tmp_path):
    shown = CONTROL.sub("", seen([], width, tmp_path))
    assert max(map(len, shown.split("\n"))) <= width
    assert shown.split() == HELP_ALONE.split()


def test_redirected_a_mistake_is_one_line(capsys):
    assert main(["run", "burgres"]) == 2
    assert capsys.readouterr().err == SENTENCE + "\n"


HELP = [(["run", "heat", "--help"], 40), (["report", "-h"], 80), (["sweep", "heat", "adam", "-h"], 120)]


@pytest.mark.parametrize(("arguments", "width"), HELP)
def test_help_fits_and_keeps_words_whole(arguments, width, tmp_path):
    lines = CONTROL.sub("", seen(arguments, width, tmp_path)).rstrip().split("\n")
    text = lines[: lines.index("examples:")]
    assert max(map(len, text)) <= width
    assert len(lines) - len(text) == 4
    words = {word for line in text for word in line.strip("│ ").split()}
    assert not {"Writ", "fold", "recip"} & words


@pytest.mark.parametrize(
    "command", ["run", "compare", "sweep", "evaluate", "report", "reproduce", "flow", "list", "completion"]
)
def test_every_help_ends_with_three_examples_and_has_true_defaults(command, capsys):
    with pytest.raises(SystemExit):
        main([command, "--help"])
    shown = capsys.readouterr().out
    examples = shown[shown.index("examples:") :].strip().split("\n")[1:]
    assert len(examples) == 3
    assert all("angd " in line for line in examples)
    assert "None" not in shown
    assert "default: )" not in shown


def test_the_defaults_of_help_are_those_that_the_task_gives(capsys):
    with pytest.raises(SystemExit):
        main(["run", "heat", "energy", "--help"])
    shown = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "from 1 to 1e+07 (default: 200)" in shown
    assert "--seed INT Seed of the parameters and of all samples. (default: 0)" in shown


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("heat", ("20 s of CPU time", "usual recipe: energy", "angd-l2", "angd compare heat energy,")),
        ("vmc-be", ("20 min of CPU time", "usual recipe: angd-fr", "spring")),
        ("adam", ("--rate", "burgers", "angd sweep burgers adam")),
        ("simplex", ("square-distance",)),
    ],
)
def test_list_tells_more_of_a_name(name, words, capsys):
    assert main(["list", name]) == 0
    shown = capsys.readouterr().out
    assert all(word in shown for word in words)
    assert main(["list", "hea"]) == 2
    assert "did you mean 'heat'?" in capsys.readouterr().err


def test_bash_completes_commands_tasks_recipes_and_options(capsys):
    assert main(["completion", "bash"]) == 0
    script = capsys.readouterr().out

    def completed(*words):
        quoted = " ".join(f"'{word}'" for word in words)
        ask = f"COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _angd; echo ${{COMPREPLY[@]}}"
        done = subprocess.run(["bash", "-c", script + ask], capture_output=True, text=True, check=True)
        return done.stdout.split()

    assert completed("angd", "re") == ["report", "reproduce"]
    assert completed("angd", "run", "burgers-") == ["burgers-sin", "burgers-cos"]
    assert completed("angd", "run", "vmc-be", "sp") == ["spring", "spring-published"]
    assert completed("angd", "run", "burgers", "energy", "--dam") == ["--damping"]
    assert completed("angd", "list", "simp") == ["simplex"]
    assert main(["completion", "tcsh"]) == 2
    assert main(["completion", "zsh"]) == 0
    assert "bashcompinit" in capsys.readouterr().out


def test_a_report_of_several_runs_lies_beside_them(tmp_path, monkeypatch):
    from angd.program.commands.report import ReportOptions

    monkeypatch.chdir(tmp_path)
    for name in ("runs/a", "runs/b", "other/c"):
        (tmp_path / name).mkdir(parents=True)
    paths = [tmp_path.__class__(name) for name in ("runs/a", "runs/b", "other/c")]
    assert str(ReportOptions((paths[0],)).place) == "runs/a/report"
    assert str(ReportOptions((paths[0], paths[1])).place) == "runs/report"
    assert str(ReportOptions(tuple(paths)).place) == "report"


def test_words_stay_whole_however_narrow_it_is():
    path = "runs/" + 30 * "x"
    assert folded(f"go on with: angd run --resume {path}", 24, "  ").split("\n")[-1] == f"  {path}"


def test_what_is_no_terminal_gets_no_letters_that_control_one(tmp_path, capsys):
    tell("stopped.")
    assert capsys.readouterr().err == "angd: stopped.\n"
    assert linked(tmp_path) == str(tmp_path)
    assert main(["list"]) == 0
    assert "\x1b" not in capsys.readouterr().out


@pytest.mark.slow
def test_a_run_shows_one_line_that_fits_and_answers_ctrl_c_before_the_step_ends(tmp_path):
    shown = CONTROL.sub("", seen(["run", "heat", "--out", "run"], 80, tmp_path, "compiling phase 1/3"))
    frames = [line for line in re.split(r"[\r\n]+", shown) if line]
    assert max(map(len, frames)) <= 80
    assert any(re.search(r"building heat … \d+ s", frame) for frame in frames)
    assert any("compiling phase 1/3 uniform points … 1 s" in frame for frame in frames)
    asked = next(i for i, frame in enumerate(frames) if "stopping after this step" in frame)
    assert any("compiling" in frame for frame in frames[asked:]), "it answers while XLA compiles"
    assert "interrupted; go on with: angd run --resume run" in " ".join(frames)
    assert "look at it:  run/figures/solution.png" in frames
