"""Files that are never half-written, and what a killed process leaves beside them."""

import os
import subprocess
import sys
import time
from platform import node

import pytest

from angd.train.files import write_atomically


def write(path):
    write_atomically(path, lambda temporary: temporary.write_text("whole"))


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def dead_process():
    """A number that no process has any more."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_what_a_killed_process_left_goes_away_with_the_next_write(tmp_path):
    (tmp_path / f".a.json.x1y2.{dead_process()}@{node()}.angd").write_text("ha")
    write(tmp_path / "b.json")
    assert names(tmp_path) == ["b.json"]


@pytest.mark.parametrize("owner", [f"{os.getpid()}@{node()}", "1@elsewhere"], ids=["living", "elsewhere"])
def test_what_a_living_process_or_another_machine_writes_is_left_alone(tmp_path, owner):
    temporary = tmp_path / f".a.json.x1y2.{owner}.angd"
    temporary.write_text("ha")
    write(tmp_path / "b.json")
    assert temporary.exists()


def test_what_another_machine_left_long_ago_goes_away(tmp_path):
    temporary = tmp_path / ".a.json.x1y2.1@elsewhere.angd"
    temporary.write_text("ha")
    os.utime(temporary, (0, time.time() - 7200))
    write(tmp_path / "b.json")
    assert names(tmp_path) == ["b.json"]


def test_hidden_files_of_the_user_are_left_alone(tmp_path):
    for name in (".netrc", ".me@home.angd", ".notes.angd"):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (0, 0))
    write(tmp_path / "b.json")
    assert len(names(tmp_path)) == 4
