"""Every file in examples/ runs, as its docstring says, and does what it should."""

import contextlib
import io
import re
import runpy
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import angd
import draw_examples
from angd.problems.vmc import GroundState
from angd.program.main import main
from angd.recipes import GaussNewton, Vmc
from angd.train.folder import RunFolder
from draw_examples import PICTURES, load

ROOT = Path(__file__).parent.parent
EXTEND = ROOT / "examples" / "extend"
H2 = "2\nhydrogen, Ångström\nH 0 0 -0.37\nH 0 0 0.37\n"
WALKERS = "--chain metropolis --walkers 64 --burn-in 20 --moves 5 --pretrain 0 --measurements 8".split()  # noqa: SIM905


def run(tmp_path, *words):
    """The records of a run, and its summary."""
    out = tmp_path / "run"
    assert main(["run", *map(str, words), "--out", str(out), "--quiet"]) == 0
    folder = RunFolder(out)
    summary = folder.read("summary.json")
    assert summary is not None
    return folder.records(), summary


def fell(records, times):
    return records[-1].test_loss < records[0].test_loss / times


EQUATIONS = [name for name, picture in PICTURES.items() if isinstance(picture.recipe, GaussNewton)]
STATES = [name for name, picture in PICTURES.items() if isinstance(picture.recipe, Vmc)]


def trained(name, recipe, steps):
    example = load(name)
    return angd.fit(getattr(example, "task", None) or example.problem, recipe, steps=steps, progress=False)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name == "poisson" else pytest.mark.slow) for name in EQUATIONS]
)
def test_an_equation_of_the_gallery_is_learnt(name):
    fit = trained(name, GaussNewton(interior=150, condition=40, warm=0), 30)
    losses = fit.history["loss"]
    assert losses[-1] < losses[0] / 10
    assert all(error < 1 for error in fit.errors.values() if error is not None)


@pytest.mark.slow
@pytest.mark.parametrize("name", STATES)
def test_a_ground_state_of_the_gallery_is_below_its_start(name):
    recipe = Vmc(mu=0.8, rate=0.05, eta=0, walkers=256, measurements=16)
    start, end = (trained(name, recipe, steps).evaluation for steps in (1, 60))
    assert start is not None
    assert end is not None
    assert end["energy"] < start["energy"]


def test_the_exact_energy_of_the_quantum_dot_is_that_of_its_task():
    """At ω = 1 the ground state is (1 + r) exp(−Σx²/2), whose local energy is 3 everywhere."""
    x = jnp.array([[0.3, -0.4], [-0.2, 0.7]])
    dot = load("quantum_dot")

    def log_psi(_, x):
        return jnp.ones(()), jnp.log1p(dot.distance(x)) - jnp.sum(x**2) / 2

    problem = GroundState(log_psi, dot.potential)
    assert float(problem.variation((), x)) == pytest.approx(3.0, abs=1e-9)


def test_the_exact_energy_of_the_double_well_is_that_of_finite_differences():
    well = load("double_well")
    x, h = np.linspace(-5, 5, 1001, retstep=True)
    hop = np.full(1000, -0.5 / h**2)
    H = np.diag((x**2 - 2) ** 2 / 2 + 1 / h**2) + np.diag(hop, 1) + np.diag(hop, -1)
    assert np.linalg.eigvalsh(H)[0] == pytest.approx(well.task.energy, abs=5e-5)
    assert float(well.potential(jnp.array([[1.0]]))) == pytest.approx(0.5)


def test_spirals_are_told_apart():
    spirals = load("spirals")
    fit = spirals.train(60)
    right = jnp.mean(fit(spirals.points) * spirals.labels > 0)
    assert right > 0.95


def test_the_entropy_falls_along_the_heat_flow_as_it_does_exactly():
    """For a small wave ε cos x the entropy is ε²/4 and falls as exp(−2t)."""
    solution = load("circle").solve(2.0)["gradient flow"]
    density = 1 + 0.5 * jnp.exp(-2.0) * jnp.cos(load("circle").x)
    assert jnp.abs(solution.rho[-1] - density).max() < 1e-6


def test_every_example_has_its_picture_beside_its_code():
    gallery = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    assert len(PICTURES) >= 8
    for name in PICTURES:
        assert f"](figures/example-{name.replace('_', '-')}.png)" in gallery
        assert (ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8").rstrip() in gallery
        assert (draw_examples.FIGURES / f"example-{name.replace('_', '-')}.png").is_file()


@pytest.mark.parametrize("option", ["metric", "solver"])
def test_a_part_of_an_accelerated_step(tmp_path, option):
    name = {"metric": "Weighted", "solver": "Diagonal"}[option]
    points = ("--interior", 150, "--condition", 30)
    records, _ = run(tmp_path, "heat", "angd-l2", f"--{option}", f"{EXTEND / option}.py:{name}", *points, "--steps", 20)
    assert fell(records, 3)


def test_a_controller(tmp_path):
    controller, points = f"{EXTEND / 'controller.py'}:Threefold", ("--interior", 150, "--condition", 30)
    records, _ = run(tmp_path, "heat", "energy", "--controller", controller, *points, "--steps", 20)
    assert fell(records, 100)
    first, last = (record.info["damping"] or 0.0 for record in (records[0], records[-1]))
    assert 0 < last < first


def test_an_equation_with_its_solution(tmp_path):
    points = ("--interior", 300, "--condition", 50, "--warm", 0)
    records, summary = run(tmp_path, EXTEND / "equation.py", "energy", *points, "--steps", 25)
    assert summary["task"] == "equation"
    assert fell(records, 100)
    assert summary["error"] < 0.1 * records[0].error


@pytest.mark.slow
def test_a_molecule(tmp_path):
    records, summary = run(tmp_path, EXTEND / "molecule.py", "angd-fr", *WALKERS, "--steps", 20)
    assert summary["task"] == "heh-ion"
    assert summary["evaluation"]["energy"] < records[0].loss


def test_a_recipe(tmp_path):
    recipe = f"{EXTEND / 'recipe.py'}:Steady"
    records, summary = run(tmp_path, "heat", recipe, "--damping", 1e-4, "--interior", 150, "--steps", 15)
    assert summary["recipe"] == recipe
    assert fell(records, 100)


def test_the_front_whose_solution_nobody_knows(tmp_path):
    points = ("--interior", 200, "--condition", 50, "--warm", 0)
    records, summary = run(tmp_path, ROOT / "examples" / "front.py", "energy", *points, "--steps", 15)
    assert summary["error"] is None
    assert fell(records, 10)


def test_a_molecule_from_a_file(tmp_path):
    (tmp_path / "h2.xyz").write_text(H2, encoding="utf-8")
    records, summary = run(tmp_path, tmp_path / "h2.xyz", "angd-fr", *WALKERS, "--steps", 20)
    assert summary["error"] is None
    assert summary["evaluation"]["energy"] < records[0].loss


def guest(name):
    """What an example in other people's frameworks leaves, and what it prints."""
    with contextlib.redirect_stdout(io.StringIO()) as said, jax.numpy_rank_promotion("allow"):
        found = runpy.run_path(str(ROOT / "examples" / "guests" / f"{name}.py"), run_name="__main__")
    assert said.getvalue()
    return found


def test_a_chain_of_optax_fits_what_most_points_say():
    found = guest("optax_chain")
    assert found["values"][-1] < 0.6 * found["values"][0]  # the wrong points keep their half of it
    assert found["error"] < 0.02


def test_solvers_of_optimistix_agree():
    rates = [solution.value["log_rates"] for solution in guest("optimistix_fit")["solutions"].values()]
    for other in rates[1:]:
        assert abs(other - rates[0]).max() < 1e-6


def test_netket_and_the_same_steps_here():
    pytest.importorskip("netket")
    found = guest("netket_ising")
    assert found["difference"] < 1e-8
    assert max(found["errors"].values()) < 1e-4


@pytest.mark.parametrize("path", sorted(EXTEND.glob("*.py")), ids=lambda path: path.name)
def test_an_extension_is_short_and_says_how_it_is_used(path):
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 40
    assert re.search(rf"^    angd run .*examples/extend/{path.name}", text, re.MULTILINE)
