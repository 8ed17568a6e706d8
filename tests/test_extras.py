"""What works without the extras, and what says which one is missing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BLOCK = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Block())
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name.partition(".")[0] in {blocked!r} else found(name, *rest)
"""
VMC = ["blackjax", "folx", "pyscf"]
PROGRAM = ["filelock", "jinja2", "matplotlib", "rich", "tyro"]
FIT = """
import angd, jax.numpy as jnp
from angd.problems.pinn import Box, Condition, Network, Problem, d
import jax; jax.config.update("jax_enable_x64", True)
box = Box((0.0, 1.0))
start = Condition(box.face(0, "lower"), lambda u, z: u(z) - 1.0)
problem = Problem(Network((4,)), box, lambda u, z: d(u, 0)(z) + u(z), {"start": start})
fit = angd.fit(problem, angd.recipes.GaussNewton(interior=20, condition=2), steps=10)
assert fit.history["loss"][-1] < 1e-3, fit
print(fit._repr_html_())
"""


def run(code, blocked, cwd):
    block = BLOCK.format(blocked=blocked)
    return subprocess.run([sys.executable, "-c", block + code], capture_output=True, text=True, check=False, cwd=cwd)


def test_without_extras_angd_imports_and_fits(tmp_path):
    done = run(FIT, [*VMC, *PROGRAM, "orbax", "flax"], tmp_path)
    assert done.returncode == 0, done.stderr
    assert "problem, GaussNewton: compiling" in done.stderr
    assert done.stdout.startswith("<p>problem: 10 steps")


@pytest.mark.parametrize(
    ("code", "blocked", "words"),
    [
        ("import angd.problems.vmc", VMC, "pip install 'angd[vmc]'"),
        ("from angd.program import start; sys.exit(start())", PROGRAM, "pip install 'angd[program]'"),
        ("import angd; angd.compat.netket", ["netket"], "angd.compat.netket needs netket, which is not installed: pip"),
        (FIT + "fit.plot()", PROGRAM, "Fit.plot needs matplotlib, which is not installed: pip install 'angd[program]'"),
        (
            FIT.replace("steps=10", "steps=10, folder='run'"),
            PROGRAM,
            "a run in a folder needs filelock, which is not installed: pip install 'angd[program]'",
        ),
    ],
    ids=["vmc", "program", "netket", "plot", "folder"],
)
def test_a_missing_extra_is_a_sentence(code, blocked, words, tmp_path):
    done = run(code, blocked, tmp_path)
    assert done.returncode == 1
    assert words in done.stderr.splitlines()[-1]


def test_no_guest_is_loaded_before_it_is_named(tmp_path):
    code = """
import sys, angd
angd.ANGD, angd.fit, angd.compat
assert not [name for name in sys.modules if name.startswith("angd.compat.") or name == "netket"], sys.modules
angd.compat.optax, angd.compat.optimistix
assert "netket" not in sys.modules
"""
    done = run(code, [], tmp_path)
    assert done.returncode == 0, done.stderr


def test_pyscf_runs_no_code_of_the_working_folder(tmp_path):
    (tmp_path / ".pyscf_conf.py").write_text("open('executed', 'w').close()\n")
    code = "from angd.problems.vmc import MOLECULES, HartreeFock; HartreeFock.of(MOLECULES['H'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "executed").exists()


@pytest.mark.slow
def test_a_wheel_in_a_clean_environment_fits(tmp_path):
    """With nothing but its own dependencies, of which there are at most ten."""
    place = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", place], check=True)
    python = place / ("Scripts" if os.name == "nt" else "bin") / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", str(ROOT)], check=True, capture_output=True)
    code = "from importlib.metadata import requires; print(len([r for r in requires('angd') if 'extra' not in r]))"
    count = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    assert int(count.stdout) <= 10
    done = subprocess.run([python, "-c", FIT], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
