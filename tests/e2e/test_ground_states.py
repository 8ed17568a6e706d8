"""Ground states through the program: looked at again, branched, foreseen, and to their known energies."""

import json
import subprocess
import sys

import numpy as np
import pytest

from angd.program.main import main
from angd.train.folder import RunFolder

FEW = ["--walkers", "32", "--burn-in", "5", "--moves", "1", "--measurements", "4"]


@pytest.fixture(scope="module")
def helium(tmp_path_factory):
    """A run of two steps of pretraining and two others."""
    path = tmp_path_factory.mktemp("helium") / "run"
    assert main(["run", "vmc-he", "spring", *FEW, "--pretrain", "2", "--steps", "4", "--out", str(path)]) == 0
    return path


def test_a_ground_state_is_measured_again_on_more_walkers_and_the_run_left_alone(helium, capsys):
    before = {path: path.read_bytes() for path in helium.rglob("*") if path.is_file()}
    assert main(["evaluate", str(helium), "--walkers", "64", "--measurements", "8"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("vmc-he with spring, step 4: energy ")
    assert " Ha (" in said
    found = RunFolder(helium).read("evaluation.json") or {}
    assert (found["walkers"], found["measurements"], found["step"]) == (64, 8, 4)
    assert found["standard_error"] > 0
    assert {path: path.read_bytes() for path in before} == before
    assert main(["evaluate", str(helium), "--grid", "20,20"]) == 2
    assert "leave out grid: a ground state is judged by its walkers" in capsys.readouterr().err


def test_a_wave_function_says_more_than_its_energy(helium, capsys):
    names = "dipole,forces,density"
    assert main(["evaluate", str(helium), "--walkers", "64", "--measurements", "8", "--observables", names]) == 0
    _, *lines = capsys.readouterr().out.strip().splitlines()
    assert [line.partition(":")[0] for line in lines] == names.split(",")
    found = (RunFolder(helium).read("evaluation.json") or {})["observables"]
    shells = np.linspace(0, 6, 41)
    electrons = np.sum(np.array(found["density"]["value"]) * np.diff(4 / 3 * np.pi * shells**3))
    assert electrons == pytest.approx(2, abs=0.2), "not all of them are within 6 a₀"
    assert np.shape(found["forces"]["value"]) == (1, 3)
    assert (found["dipole"]["unit"], (helium / "figures" / "density.png").exists()) == ("e a₀", True)


@pytest.mark.slow
def test_an_ion_in_an_excited_spin_state_runs(tmp_path):
    """The triplet of Li⁺, 1s2s ³S at −5.1107 Ha, is far above its singlet, −7.2799."""
    (tmp_path / "li.xyz").write_text("1\n\nLi 0 0 0\n")
    given = ["--charge", "1", "--spin", "2", "--walkers", "128", "--measurements", "40", "--pretrain", "200"]
    given += ["--steps", "300", "--out", str(tmp_path / "run")]
    assert main(["run", str(tmp_path / "li.xyz"), "spring", *given, "--quiet"]) == 0
    found = (RunFolder(tmp_path / "run").read("summary.json") or {})["evaluation"]
    assert found["energy"] == pytest.approx(-5.1107, abs=0.05)


def test_a_branch_of_a_ground_state_needs_no_pretraining(helium, tmp_path):
    path = tmp_path / "branch"
    assert main(["run", "--from", str(helium), "--rate", "0.02", "--steps", "2", "--out", str(path)]) == 0
    first = RunFolder(path).records()[0]
    assert first.step == 1
    assert "acceptance" in first.observables
    assert first.errors  # pretraining has none
    assert not RunFolder(helium).records()[0].errors
    config = RunFolder(path).config()
    assert config.start is not None
    assert (config.start["step"], config.options["rate"], config.options["walkers"]) == (4, 0.02, 32)


def test_a_dry_run_of_a_ground_state_tells_pretraining_from_the_rest(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["run", "vmc-he", "spring", *FEW, "--pretrain", "2", "--steps", "9", "--dry-run"]) == 0
    said = capsys.readouterr().out.splitlines()
    first, second = said.index("phase 1, pretraining, 2 steps at most:"), said.index("phase 2, to the end:")
    assert said[first + 1] == "  samples: 32 walkers"
    assert said[second + 1] == "  samples: 32 walkers; 32 rows"
    assert said[-1].startswith("all of it: about 9 steps in ")
    choices = [line for line in said if line.startswith(("  Jacobian of ", "  the "))]
    assert choices  # those are folded on a terminal only
    assert max(map(len, set(said) - set(choices))) <= 80
    assert not list(tmp_path.iterdir())


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
