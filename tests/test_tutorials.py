"""Tutorials: pages and notebooks hold the code of their sources, and every notebook runs in a kernel of its own."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "docs" / "notebooks").glob("*.py"))
CELL = re.compile(r"^# %%(.*)\n", re.MULTILINE)


def code_cells(source):
    """The code between the lines `# %%`."""
    _, *parts = CELL.split(source.read_text(encoding="utf-8"))
    return [code.strip() for kind, code in zip(parts[::2], parts[1::2], strict=True) if "[markdown]" not in kind]


def test_there_are_the_six_tutorials():
    assert [path.stem for path in SOURCES] == ["devices", "hamiltonian", "inverse", "metric", "molecule", "pde"]


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_page_and_notebook_hold_the_code_of_the_source(source):
    page = (ROOT / "docs" / f"tutorial-{source.stem}.md").read_text(encoding="utf-8")
    notebook = json.loads(source.with_suffix(".ipynb").read_text(encoding="utf-8"))
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert cells == ["%matplotlib inline", *code_cells(source)], "run `make tutorials`"
    assert [code for code in code_cells(source) if code not in page] == [], "run `make tutorials`"


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_a_page_shows_what_its_cells_printed_and_drew(source):
    page = (ROOT / "docs" / f"tutorial-{source.stem}.md").read_text(encoding="utf-8")
    printing = [code for code in code_cells(source) if re.search(r"^\s*print\(", code, re.MULTILINE)]
    drawing = [code for code in code_cells(source) if code.splitlines()[-1].endswith(".plot()")]
    assert drawing
    assert page.count("```text") >= len(printing)
    pictures = re.findall(r"\]\((figures/tutorial-[\w-]+\.png)\)", page)
    assert len(pictures) == len(drawing)
    assert all((ROOT / "docs" / picture).is_file() for picture in pictures)


@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_a_notebook_runs(source):
    """Its own assertions are the test. In a process of its own, whose warnings are not ours."""
    pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    code = (
        "import nbformat, sys; from nbclient import NotebookClient;"
        "NotebookClient(nbformat.read(sys.argv[1], 4), timeout=1800, kernel_name='python3').execute()"
    )
    command = [sys.executable, "-c", code, str(source.with_suffix(".ipynb"))]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-2000:]
