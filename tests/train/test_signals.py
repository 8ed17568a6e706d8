"""Signals: the first asks, those within a moment are the same, a later one does not wait."""

import signal
import subprocess
import sys

import pytest

from angd.train import signals
from angd.train.signals import Stopped, Stopper, end_at_once


def send(number):
    signal.raise_signal(number)


def test_the_first_signal_asks_and_others_in_a_moment_are_the_same():
    asked = []
    with Stopper(lambda *first: asked.append(first)):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGTERM):
            send(number)
    assert asked == [("terminated", signal.SIGTERM)]


def test_a_later_signal_ends_with_the_code_of_the_first_but_never_while_something_is_saved(monkeypatch):
    monkeypatch.setattr(signals, "PATIENCE", -1.0)
    with Stopper(lambda *_: None) as stopper:
        send(signal.SIGTERM)
        stopper.uninterrupted(True)
        send(signal.SIGINT)
        stopper.uninterrupted(False)
        with pytest.raises(Stopped) as stop:
            send(signal.SIGINT)
    assert stop.value.code == 143


def test_a_signal_that_was_answered_inside_is_not_answered_again_outside():
    with Stopper(end_at_once):
        with Stopper(lambda *_: None):
            send(signal.SIGINT)
        send(signal.SIGINT)


def test_under_nohup_a_closed_terminal_changes_nothing():
    before, asked = signal.signal(signal.SIGHUP, signal.SIG_IGN), []
    try:
        with Stopper(lambda *first: asked.append(first)):
            send(signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
    assert asked == []


def test_the_program_ends_with_a_sentence_however_early_and_often_it_is_signalled():
    """A signal while the first command is imported, and others until the process is gone."""
    code = (
        "import sys, signal, atexit, angd.program as program\n"
        "class Finder:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'angd.program.main': signal.raise_signal(signal.SIGTERM)\n"
        "sys.meta_path.insert(0, Finder())\n"
        "atexit.register(signal.raise_signal, signal.SIGINT)\n"
        "sys.exit(program.start())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (143, "angd: terminated.\n")
