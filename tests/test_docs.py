"""The documentation keeps its word: tests that it names exist, its examples run, its links lead somewhere."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [path for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))] if path.exists()]
NAMED_TEST = re.compile(r"(tests/[\w/]+\.py)::(\w+)")
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
ENTRY = re.compile(r"^::: (\S+)$", re.MULTILINE)


def name_of(page):
    return str(page.relative_to(ROOT))


def without_code(text):
    """Markdown outside fenced blocks and inline code, where brackets may be links."""
    return re.sub(r"`[^`\n]+`", "", FENCE.sub("", text))


def examples():
    """Every Python block, with its place and with its line numbers kept for tracebacks."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for block in FENCE.finditer(text):
            if block[1] == "python":
                line = text.count("\n", 0, block.start(2))
                yield pytest.param(page, "\n" * line + block[2], id=f"{name_of(page)}:{line + 1}")


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
    listed = ENTRY.findall((ROOT / "docs" / "api.md").read_text(encoding="utf-8"))
    assert sorted(public.difference(listed)) == []
    assert len(listed) == len(set(listed))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_relative_link_resolves(page):
    targets = [link.split("#")[0] for link in LINK.findall(without_code(page.read_text(encoding="utf-8")))]
    relative = [target for target in targets if target and "://" not in target and not target.startswith("mailto:")]
    assert [target for target in relative if not (page.parent / target).exists()] == []
