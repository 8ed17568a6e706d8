"""Pages of the reference begin with a table of what is on them; figures that were drawn for dark pages, too, are shown
there.

`<!-- summary -->` becomes a table of the `:::` entries that follow it, up to the next one: name, and the first sentence
of its docstring, which is read from the source without importing it. `<!-- every name -->` becomes a list of the
entries of all pages. Beside `figures/NAME.png` there may be `figures/NAME-dark.png`.
"""

import ast
import re
from functools import cache
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parent.parent.parent / "src"
FIGURES = Path(__file__).parent.parent / "figures"
SUMMARY = "<!-- summary -->"
EVERY = "<!-- every name -->"
FIGURE = re.compile(r"!\[([^\]]*)\]\(figures/([\w-]+)\.png\)(\{[^}]*\})?")
ENTRY = re.compile(r"^::: (\S+)$", re.MULTILINE)


def on_page_markdown(markdown: str, **kwargs: Any) -> str:
    """Put the tables in."""
    if EVERY in markdown:
        markdown = markdown.replace(EVERY, every_name())
    markdown = FIGURE.sub(for_light_and_dark, markdown)
    head, *parts = markdown.split(SUMMARY)
    return head + "".join(table(ENTRY.findall(part)) + part for part in parts)


def for_light_and_dark(match: re.Match[str]) -> str:
    """A figure as it is, or for each kind of page its own."""
    words, name, attributes = match[1], match[2], match[3] or ""
    if not (FIGURES / f"{name}-dark.png").exists():
        return match[0]
    kinds = {"": "light", "-dark": "dark"}
    return "\n".join(f"![{words}](figures/{name}{end}.png#only-{on}){attributes}" for end, on in kinds.items())


def every_name() -> str:
    """All entries in alphabetical order."""
    pages = sorted((SOURCE.parent / "docs").glob("reference-*.md"))
    names = [name for page in pages for name in ENTRY.findall(page.read_text(encoding="utf-8"))]
    links = [f"[`{short(name)}`][{name}]" for name in sorted(names, key=lambda name: short(name).lower())]
    return ", ".join(links)


def short(name: str) -> str:
    """`fit` of `angd.train.fit.fit`."""
    return name.rpartition(".")[2]


def table(names: list[str]) -> str:
    """Names with what they are, linked to their entries."""
    rows = [f"| [`{short(name)}`][{name}] | {first_sentence(name)} |" for name in names]
    return "\n".join(["| name | what it is |", "|---|---|", *rows, ""])


def first_sentence(name: str) -> str:
    """Of the docstring, fit for a cell."""
    text = " ".join((docstring(name) or "").split("\n\n")[0].split())
    return re.split(r"(?<=[.])\s+(?=[A-ZΑ-Ω`½∫])", text)[0].replace("|", r"\|")


def docstring(name: str) -> str | None:
    """Of a module, or of a class or function in one."""
    module, _, last = name.rpartition(".")
    if (path := file_of(name)) is not None:
        return ast.get_docstring(parsed(path))
    path = file_of(module)
    nodes = [] if path is None else parsed(path).body
    kinds = (ast.ClassDef, ast.FunctionDef)
    return next((ast.get_docstring(node) for node in nodes if isinstance(node, kinds) and node.name == last), None)


def file_of(module: str) -> Path | None:
    """The file of a module, None if there is no such module."""
    stem = SOURCE.joinpath(*module.split("."))
    return next((path for path in (stem.with_suffix(".py"), stem / "__init__.py") if path.is_file()), None)


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))
