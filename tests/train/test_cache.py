"""What is compiled is kept where the user's system keeps such things, or nowhere; JAX is left alone until asked."""

import os
import subprocess
import sys
from pathlib import Path

import jax
import pytest

from angd.train import cache


@pytest.fixture(autouse=True)
def _no_folder_that_jax_knows():
    """The tests' own, which conftest.py sets."""
    known = jax.config.jax_compilation_cache_dir  # pyright: ignore[reportAttributeAccessIssue]
    jax.config.update("jax_compilation_cache_dir", None)
    yield
    jax.config.update("jax_compilation_cache_dir", known)


def test_tests_have_no_cache():
    assert os.environ[cache.VARIABLE] == "off"
    assert cache.usual_folder() is None


@pytest.mark.parametrize(
    ("system", "environment", "folder"),
    [
        ("linux", {"XDG_CACHE_HOME": "/var/mine"}, "/var/mine/angd"),
        ("linux", {"XDG_CACHE_HOME": "relative"}, "/home/me/.cache/angd"),
        ("linux", {}, "/home/me/.cache/angd"),
        ("darwin", {}, "/home/me/Library/Caches/angd"),
        ("win32", {"LOCALAPPDATA": "/users/me/local"}, "/users/me/local/angd"),
        ("linux", {"ANGD_CACHE": "/fast/disk"}, "/fast/disk"),
    ],
)
def test_the_folder_is_that_of_the_platform(system, environment, folder, monkeypatch):
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA", "ANGD_CACHE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(Path, "home", lambda: Path("/home/me"))
    assert cache.usual_folder() == Path(folder) / "xla" / cache.kind_of_machine()


@pytest.mark.parametrize("word", ["off", "0", "", "NO"])
def test_a_word_switches_it_off(word, monkeypatch):
    monkeypatch.setenv(cache.VARIABLE, word)
    assert cache.usual_folder() is None


PROGRAM = """
import sys, jax, angd
from pathlib import Path
angd.fit
before = jax.config.jax_compilation_cache_dir
{code}
import jax.numpy as jnp
jax.jit(lambda x: jnp.sin(x) + 3)(1.0)
print(before, jax.config.jax_compilation_cache_dir, sep="|")
"""


def told(code, place):
    command = [sys.executable, "-c", PROGRAM.format(code=code), str(place)]
    known = os.environ | {cache.VARIABLE: str(place)}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=known)
    return done.stdout.strip().split("|")


def test_the_library_keeps_nothing_until_it_is_asked(tmp_path):
    found = told("assert not list(Path(sys.argv[1]).iterdir()); angd.keep_compiled()", tmp_path)
    assert found == ["None", str(tmp_path / "xla" / cache.kind_of_machine())]
    assert [path for path in Path(found[1]).iterdir() if "-cache" in path.name]


def test_a_folder_that_cannot_be_written_to_is_done_without(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "file"))
    assert cache.keep_compiled() is None


def test_what_was_not_used_for_longest_goes_first(tmp_path):
    for age in range(10):
        path = tmp_path / f"{age}-cache"
        path.write_bytes(bytes(100))
        os.utime(path, (1000.0 - age, 1000.0 - age))
    cache.prune(tmp_path, 1000)
    assert len(list(tmp_path.iterdir())) == 10
    cache.prune(tmp_path, 900)
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"{age}-cache" for age in range(4)]
