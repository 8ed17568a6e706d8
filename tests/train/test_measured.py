"""Second looks at wave functions: what they say besides the energy, from Python and from the command line."""

import json

import jax.numpy as jnp
import numpy as np
import pytest

import angd
from angd.problems.vmc import GaussianStart, GroundState, Metropolis, Trap
from angd.program.main import main
from angd.train.checkpoint import Checkpoints
from angd.train.folder import RunFolder

OWN = """
import jax.numpy as jnp
import angd
from angd.problems.vmc import GaussianStart, GroundState, Metropolis, Trap

def bell(a, x):
    return jnp.ones(()), -a * jnp.sum(x**2) / 2

def square(x):
    return jnp.mean(x**2)

chain = Metropolis(GaussianStart(2, 2), walkers=64, burn_in=20, moves=5)
task = angd.Task(GroundState(bell, Trap()), params=jnp.asarray(1.8), samples=chain, energy=2.0)
"""
RATE = ["--rate", "0.05", "--norm", "10", "--measurements", "20"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two particles in a plane trap, not there yet; every step is saved."""
    place = tmp_path_factory.mktemp("observables")
    (place / "own.py").write_text(OWN)
    given = [str(place / "own.py"), "angd-fr", "--steps", "20", "--checkpoint-seconds", "0", "--quiet", *RATE]
    assert main(["run", *given, "--out", str(place / "run")]) == 0
    return place / "run"


def test_ground_states_keep_the_last_of_each_octave(folder):
    assert [int(file.stem) for file in sorted((folder / "checkpoints").glob("*.npz"))] == [1, 3, 7, 15, 19, 20]


@pytest.mark.slow
def test_the_program_measures_draws_and_says_a_line_each(folder, capsys):
    own = folder.parent / "own.py"
    names = f"density,pair,{own}:square,variance"
    assert main(["evaluate", str(folder), "--observables", names, "--walkers", "200"]) == 0
    head, *lines = capsys.readouterr().out.strip().splitlines()
    assert [line.partition(":")[0] for line in lines] == ["density", "pair", "square", "variance"]
    found = json.loads((folder / "evaluation.json").read_text())
    assert found["energy"] > 2.0
    assert f"energy {found['energy']:.5f}" in head
    for name in ("density", "pair"):
        assert (folder / "figures" / f"{name}.png").exists()
        assert len(found["observables"][name]["value"]) == 40
    a = float(angd.load(folder).params)
    square = found["observables"]["square"]
    assert abs(square["value"] - 1 / (2 * a)) < 4 * square["error"]
    assert main(["report", str(folder), "--out", str(folder.parent / "report")]) == 0
    page = (folder.parent / "report" / "report.html").read_text()
    assert "Measured on fresh walkers" in page
    assert 'alt="density: angd-fr, seed 0"' in page


def test_the_energy_at_variance_0_is_that_of_the_ground_state(folder):
    """E = a + 1/a and σ² = (1 − a²)²/(2a²) lead to 2 as a → 1; the last state itself is far above."""
    found = angd.evaluate(folder, observables="variance", walkers=200)
    end = found["extrapolation"]
    assert end["steps"] == [1, 3, 7, 15, 19, 20]
    assert abs(end["energy"] - 2) < 0.5 * found["error"]
    assert "observables" not in found


def test_python_takes_functions_by_name(folder):
    found = angd.evaluate(folder, observables={"r2": lambda x: jnp.sum(x**2), "a": lambda a, x: a})
    assert found["observables"]["a"] == {
        "value": pytest.approx(float(angd.load(folder).params)),
        "error": pytest.approx(0, abs=1e-12),
    }
    assert found["observables"]["r2"]["error"] > 0


MISTAKES = [
    ("dipol", "no observable called 'dipol'; there are dipole, density, pair, forces, variance"),
    ("", "no observable called ''"),
    ("dipole", "dipole is measured of molecules"),
    ("nowhere.py:f", "There is no file 'nowhere.py'"),
]


@pytest.mark.parametrize(("names", "words"), MISTAKES)
def test_bad_names_get_one_sentence(folder, names, words, capsys):
    assert main(["evaluate", str(folder), "--observables", names]) == 2
    said = capsys.readouterr()
    assert words in said.err
    assert (said.err.count("\n"), said.out) == (1, "")


def test_a_single_state_cannot_be_extrapolated(folder):
    with pytest.raises(ValueError, match="none before step 1: train longer"):
        angd.evaluate(folder, observables="variance", step=1)


def test_fields_have_no_walkers(tmp_path, capsys):
    assert main(["run", "heat", "adam", "--steps", "2", "--out", str(tmp_path / "r"), "--quiet"]) == 0
    capsys.readouterr()
    assert main(["evaluate", str(tmp_path / "r"), "--observables", "density"]) == 2
    assert "heat has no walkers: leave out --observables" in capsys.readouterr().err


@pytest.mark.slow
def test_exact_sums_have_observables_without_error(tmp_path):
    fitted = angd.fit("tfim", steps=2, folder=tmp_path / "r", progress=False)
    magnet = {"x0x1": lambda x: x[0] * x[1], "x3x4": lambda x: x[3] * x[4]}
    found = angd.evaluate(tmp_path / "r", "tfim", observables=magnet)
    first, second = (found["observables"][name] for name in magnet)
    assert first["error"] == second["error"] == 0
    assert np.isclose(first["value"], second["value"]), "a ring has no preferred bond"
    assert fitted.evaluation is not None
    assert fitted.evaluation["energy"] == pytest.approx(found["energy"])


def test_a_fit_is_saved_loaded_and_measured_later(tmp_path):
    def bell(a, x):
        return jnp.ones(()), -a * jnp.sum(x**2) / 2

    chain = Metropolis(GaussianStart(2, 1), walkers=32, burn_in=10, moves=3)
    task = angd.Task(GroundState(bell, Trap()), params=jnp.asarray(1.3), samples=chain)
    recipe = angd.recipes.Vmc(measurements=10)
    angd.fit(task, recipe, steps=3, progress=False).save(tmp_path / "kept")
    again = angd.load(tmp_path / "kept", task)
    assert again(jnp.ones((1, 2, 1))) == pytest.approx(-float(again.params))
    found = angd.evaluate(tmp_path / "kept", task, observables={"r2": lambda x: jnp.sum(x**2)}, measurements=40)
    r2 = found["observables"]["r2"]
    assert abs(r2["value"] - 1 / float(again.params)) < 4 * r2["error"]
    assert Checkpoints(RunFolder(tmp_path / "kept").checkpoints, {}).steps == [3]
