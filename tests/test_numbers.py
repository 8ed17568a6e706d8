"""The numbers that README and docs show are those of the committed results."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_marked_numbers_are_those_of_the_result_files():
    check = subprocess.run(
        [sys.executable, ROOT / "tools" / "fill_numbers.py"], capture_output=True, text=True, check=False
    )
    assert check.returncode == 0, check.stdout + check.stderr


def test_result_files_say_how_they_were_measured():
    files = list((ROOT / "results").glob("*.json"))
    assert files
    for file in files:
        assert {"command", "date", "environment", "seed", "values"} <= set(json.loads(file.read_text(encoding="utf-8")))
