"""Ground states through the program, to their known energies: minutes each."""

import json
import subprocess
import sys

import pytest


@pytest.mark.slow
@pytest.mark.parametrize("recipe", ["angd-fr", "spring"])
def test_helium_is_found_to_a_millihartree(tmp_path, recipe):
    command = [
        sys.executable,
        "-m",
        "angd.program.main",
        "run",
        "vmc-he",
        recipe,
        "--cpu-seconds",
        "150",
    ]
    done = subprocess.run(
        [*command, "--out", str(tmp_path / "run"), "--json"], capture_output=True, text=True, check=True
    )
    summary = json.loads(done.stdout.splitlines()[-1])
    assert abs(summary["error"]) < 1e-3
    assert summary["standard_error"] < 2.5e-4
    assert summary["evaluation"]["rhat"] < 1.05
