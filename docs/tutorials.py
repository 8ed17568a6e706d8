"""Run the tutorials and write their pages and notebooks: `make tutorials`.

Each docs/notebooks/NAME.py (percent format, read by jupytext) becomes

- docs/tutorial-NAME.md, with what its cells print and the pictures that they draw;
- docs/notebooks/NAME.ipynb, without outputs, to be downloaded.

`python docs/tutorials.py NAME…` runs those; `--check` runs nothing, and says whether pages and notebooks hold the
code of the sources.
"""

import base64
import sys
import textwrap
from pathlib import Path
from typing import Any

import jupytext
import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).parent.parent
SOURCES = ROOT / "docs" / "notebooks"
FIGURES = ROOT / "docs" / "figures"
INLINE = "%matplotlib inline"
WIDTH = 84  # of what is printed
NOTE = "<!-- Written by docs/tutorials.py from docs/notebooks/{}.py: change that. -->\n"
LINK = "*Download it [as a notebook](notebooks/{0}.ipynb).*"


def read(name: str) -> Any:
    """The source as a notebook, with a first cell that shows figures."""
    notebook = jupytext.read(SOURCES / f"{name}.py")
    first = next(k for k, cell in enumerate(notebook.cells) if cell.cell_type == "code")
    notebook.cells.insert(first, nbformat.v4.new_code_cell(INLINE))
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    for k, cell in enumerate(notebook.cells):
        cell["id"] = f"{name}-{k}"
    return notebook


def run(name: str) -> Any:
    """The notebook with its outputs."""
    notebook = read(name)
    NotebookClient(notebook, timeout=1800, kernel_name="python3", resources={"metadata": {"path": str(ROOT)}}).execute()
    return notebook


def page(name: str, notebook: Any) -> str:
    """The notebook as Markdown, and its pictures beside it."""
    pictures = iter(range(1, 100))
    parts = [part for cell in notebook.cells if cell.source != INLINE for part in _markdown(name, cell, pictures)]
    title, _, rest = "\n\n".join(parts).partition("\n")
    return f"{title}\n\n{NOTE.format(name)}\n{LINK.format(name)}\n{rest}\n"


def _markdown(name: str, cell: Any, pictures: Any) -> list[str]:
    if cell.cell_type == "markdown":
        return [cell.source]
    shown = [_shown(name, output, cell, pictures) for output in cell.get("outputs", [])]
    return [f"```python\n{cell.source}\n```", *filter(None, shown)]


def _shown(name: str, output: Any, cell: Any, pictures: Any) -> str:
    """What a cell printed or drew; warnings and progress on standard error are left out."""
    if output.output_type == "stream":
        lines = [part for line in output.text.rstrip().splitlines() for part in textwrap.wrap(line, WIDTH) or [""]]
        return "\n".join(["```text", *lines, "```"]) if output.name == "stdout" else ""
    if output.output_type == "error":
        raise ValueError(f"{name}: {output.ename}: {output.evalue}")
    picture = output.get("data", {}).get("image/png")
    if picture is None:
        return ""
    path = FIGURES / f"tutorial-{name}-{next(pictures)}.png"
    path.write_bytes(base64.b64decode(picture))
    return f"![{cell.metadata['alt']}](figures/{path.name})"


def bare(name: str) -> str:
    """The notebook without outputs, as a file."""
    notebook = read(name)
    for cell in notebook.cells:
        cell.metadata = {}
    return nbformat.writes(notebook) + "\n"


def stale(name: str) -> list[str]:
    """What does not hold the code of the source."""
    text = (ROOT / "docs" / f"tutorial-{name}.md").read_text(encoding="utf-8")
    cells = [cell for cell in read(name).cells if cell.source != INLINE]
    missing = [cell for cell in cells if cell.source.partition("\n")[2].strip() not in text]
    found = [f"tutorial-{name}.md"] if missing else []
    same = (SOURCES / f"{name}.ipynb").read_text(encoding="utf-8") == bare(name)
    return found if same else [*found, f"notebooks/{name}.ipynb"]


def names() -> list[str]:
    """All tutorials."""
    return sorted(path.stem for path in SOURCES.glob("*.py"))


def write(name: str) -> None:
    (ROOT / "docs" / f"tutorial-{name}.md").write_text(page(name, run(name)), encoding="utf-8")
    (SOURCES / f"{name}.ipynb").write_text(bare(name), encoding="utf-8")


def main() -> int:
    if "--check" in sys.argv:
        found = [each for name in names() for each in stale(name)]
        print("out of date, run `make tutorials`: " + ", ".join(found) if found else "tutorials are up to date")
        return bool(found)
    for name in sys.argv[1:] or names():
        write(name)
        print(f"docs/tutorial-{name}.md", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
