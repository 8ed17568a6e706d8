"""The documentation keeps its word: what it names exists, examples run, commands can be read, links lead somewhere."""

import ast
import importlib
import re
import shlex
from functools import cache
from pathlib import Path

import pytest

import angd
from angd.program.arguments import parse
from angd.program.main import COMMANDS
from wrapping import wrapped

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
NAMED_TEST = re.compile(r"(tests/[\w/]+\.py)::(\w+)")
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?:\]\(|\bsrc(?:set)?=\")([^)\"\s]+)[)\"]")
ENTRY = re.compile(r"^::: (\S+)$", re.MULTILINE)
# Cells of a tutorial build on each other. All but the first tutorial run as notebooks among the slow tests.
QUICK = "tutorial-pde.md"


def name_of(page):
    return str(page.relative_to(ROOT))


def without_code(text):
    """Markdown outside fenced blocks and inline code, where brackets may be links."""
    return re.sub(r"`[^`\n]+`", "", FENCE.sub("", text))


def examples():
    """Every Python block, with its place and with its line numbers kept for tracebacks."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        blocks = [block for block in FENCE.finditer(text) if block[1] == "python"]
        codes = ["\n" * text.count("\n", 0, block.start(2)) + block[2] for block in blocks]
        if page.name.startswith("tutorial-"):
            marks = [] if page.name == QUICK else [pytest.mark.slow]
            yield pytest.param(page, joined(codes), id=name_of(page), marks=marks)
        else:
            for code in codes:
                line = len(code) - len(code.lstrip("\n")) + 1
                yield pytest.param(page, code, id=f"{name_of(page)}:{line}")


def joined(codes):
    """Blocks of one page as one module, every line in its place."""
    lines = [""] * max(code.count("\n") for code in codes)
    for code in codes:
        for k, line in enumerate(code.split("\n")):
            if line:
                lines[k] = line
    return "\n".join(lines)


@cache
def functions_of(path):
    if not path.exists():
        return frozenset()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_test_that_a_page_names_exists(page):
    named = NAMED_TEST.findall(page.read_text(encoding="utf-8"))
    assert [f"{path}::{test}" for path, test in named if test not in functions_of(ROOT / path)] == []


@pytest.mark.parametrize(("page", "code"), list(examples()))
def test_every_example_runs(page, code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(code, str(page), "exec"), {"__name__": "example"})


def test_every_public_name_is_in_the_api_reference():
    stub = ast.parse((ROOT / "src" / "angd" / "__init__.pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    public = {".".join(filter(None, ["angd", node.module, name.name])) for node in imports for name in node.names}
    listed = entries()
    assert sorted(public.difference(listed)) == []
    assert len(listed) == len(set(listed))


def entries():
    """Every `:::` of the reference."""
    pages = [ROOT / "docs" / "api.md", *sorted((ROOT / "docs").glob("reference-*.md"))]
    return [name for page in pages for name in ENTRY.findall(page.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CHANGELOG.md"], ids=name_of)
def test_code_and_prose_are_no_wider_than_a_page(page):
    text = page.read_text(encoding="utf-8")
    code = [line for block in FENCE.finditer(text) for line in block[2].splitlines()]
    assert [line for line in code if len(line) > 84] == []
    assert wrapped(text) == text


@pytest.mark.parametrize("page", [ROOT / "docs" / "index.md", *(ROOT / "docs").glob("results*.md")], ids=name_of)
def test_no_page_of_results_has_numbers_of_its_own(page):
    """They come from templates, and prose has no markers."""
    assert "<!--n:" not in page.read_text(encoding="utf-8")
    assert "<!-- from: " in page.read_text(encoding="utf-8")


def test_every_page_of_results_answers_first():
    pages = sorted((ROOT / "docs").glob("results-*.md"))
    assert len(pages) > 5
    for page in pages:
        title, block, answer, *_ = (line for line in page.read_text(encoding="utf-8").splitlines() if line)
        assert title.endswith("?")
        assert block.startswith("<!-- from: results-")
        assert answer.startswith("> **")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_relative_link_resolves(page):
    targets = [link.split("#")[0] for link in LINK.findall(without_code(page.read_text(encoding="utf-8")))]
    relative = [target for target in targets if target and "://" not in target and not target.startswith("mailto:")]
    assert [target for target in relative if not (page.parent / target).exists()] == []


COMMAND = re.compile(r"^(?:\$ )?angd (.*?)(?:\s{2,}#.*| …)?$", re.MULTILINE)
INLINE = re.compile(r"`angd ((?:run|compare|sweep|report|reproduce|flow) [^`]+)`")
MISTAKES = ("run burgres", "run heat energy --damping big")
MINE = """
from dataclasses import dataclass

from angd.recipes import Recipe, number


@dataclass(frozen=True)
class Damped(Recipe):
    grid = {"damping": (1e-3, 1e-2)}
    damping: float = number(1e-3, 0, 1, "λ")


MyRecipe, MyMetric, MySolver, MyController, LateTimes = Damped, None, None, None, None
"""


EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def commands():
    """Every line for the program that a page shows, with the page it is on."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        blocks = [block[2].replace("\\\n", " ") for block in FENCE.finditer(text) if block[1] in ("", "bash")]
        lines = [line for block in blocks for line in COMMAND.findall(block)] + INLINE.findall(without_blocks(text))
        for line in dict.fromkeys(lines):
            if not set("…[") & set(line) and not re.search(r"\b[A-Z]{3,}\b", line):
                yield pytest.param(line, id=f"{name_of(page)}: {line}")


def without_blocks(text):
    return FENCE.sub("", text)


@pytest.mark.parametrize("line", list(commands()))
def test_every_command_that_a_page_shows_can_be_read(line, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").mkdir()
    for name in ("front.py", "anharmonic.py", "mine.py", *(f"examples/{path.name}" for path in EXAMPLES)):
        (tmp_path / name).write_text(MINE, encoding="utf-8")
    for name in ("water.xyz", "ion.xyz", "examples/water.xyz"):
        (tmp_path / name).write_text("1\n\nHe 0 0 0\n", encoding="utf-8")
    words = shlex.split(line)
    if words[0] not in COMMANDS or {"--help", "--config"} & set(words) or line in MISTAKES:
        assert words[0] in {*COMMANDS, "--version"}
        return
    options = parse(words, {name: kind for name, (kind, _) in COMMANDS.items()})
    if words[0] in ("compare", "sweep", "flow", "reproduce"):
        options.check()
    elif words[0] == "run" and "--resume" not in words:
        options.plan()


def test_every_name_and_file_of_the_map_exists():
    text = (ROOT / "docs" / "map.md").read_text(encoding="utf-8")
    cells = [row.split("|")[2] for row in text.splitlines() if row.startswith("| ") and row.count("|") >= 3]
    names = [name.partition("(")[0] for cell in cells for name in re.findall(r"`([^`]+)`", cell)]
    assert len(names) > 60
    assert [name for name in names if not (exists(name) if "/" not in name else (ROOT / name).exists())] == []


def exists(name):
    """Is there such a name in angd, or such a field of a class?"""
    found = angd
    for part in name.split("."):
        if part in getattr(found, "__dataclass_fields__", ()):
            return True
        try:
            found = getattr(found, part)
        except AttributeError:
            try:
                found = importlib.import_module(f"{found.__name__}.{part}")
            except ImportError:
                return False
    return True
