"""Prose of Markdown is wrapped; whatever is laid out stays as it was."""

import pytest

from wrapping import WIDTH, wrapped

LONG = "word " * 40
LAID_OUT = {
    "indented": f"Rooms:\n\n    src/\n      flow/     {LONG}\n      method/   {LONG}\n\nAfter.",
    "fenced": f"```\nflow/     {LONG}\nmethod/   {LONG}\n```",
    "fenced in an item": f"- first\n\n    ```\n    a  {LONG}\n    b  {LONG}\n    ```",
    "formula": f"$$\na + {LONG}\nb\n$$",
    "table": f"| a | b |\n|---|---|\n| {LONG} | {LONG} |",
    "options of the reference": f"::: angd.ANGD\n    options:\n      members: [{LONG}]",
}


@pytest.mark.parametrize("text", LAID_OUT.values(), ids=LAID_OUT)
def test_a_layout_stays(text):
    assert wrapped(text) == text


@pytest.mark.parametrize(
    ("before", "first", "rest"),
    [("", "", ""), ("- ", "- ", "  "), ("> ", "> ", "> "), ("1. one\n    - ", "    - ", "      ")],
    ids=["paragraph", "item", "quotation", "nested item"],
)
def test_prose_is_wrapped_and_keeps_its_place(before, first, rest):
    lines = wrapped(before + LONG.strip()).split("\n")[before.count("\n") :]
    assert len(lines) > 1
    assert max(map(len, lines)) <= WIDTH
    assert lines[0].startswith(first + "word")
    assert all(line.startswith(rest + "word") for line in lines[1:])
    assert sum(line.count("word") for line in lines) == 40


def test_code_and_formulas_within_prose_are_not_broken():
    text = wrapped(" ".join(["`angd run burgers --steps 30`", "$a + b + c$"] * 12))
    assert max(map(len, text.split("\n"))) <= WIDTH
    assert text.count("`angd run burgers --steps 30`") == text.count("$a + b + c$") == 12
