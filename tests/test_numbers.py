"""The numbers that README and docs show are those of the committed results."""

import json
import re
from pathlib import Path

import pytest
from jinja2 import UndefinedError

import fill_numbers

ROOT = Path(__file__).parent.parent
USED = re.compile(r'"((?:beryllium|comparison|flow|gap|momentum|pinn|rivals|speed_pinn|speed_vmc|vmc)\.[^"]+)"')


def test_shown_numbers_are_those_of_the_result_files():
    stale = [page for page in fill_numbers.pages() if fill_numbers.filled(text := page.read_text("utf-8")) != text]
    assert stale == [], "run `make numbers`"


def test_a_number_that_was_changed_by_hand_is_noticed():
    page = ROOT / "docs" / "results-gap.md"
    text = page.read_text(encoding="utf-8")
    shown = fill_numbers.look_up("gap.barrier_2.gap")
    assert shown in text
    assert fill_numbers.filled(text.replace(shown, "0.387")) == text


def test_a_single_number_may_stand_between_markers():
    assert fill_numbers.filled("<!--n:gap.barrier_2.gap-->1<!--/n-->") == "<!--n:gap.barrier_2.gap-->0.386<!--/n-->"


def test_every_template_is_on_a_page():
    text = "".join(page.read_text(encoding="utf-8") for page in fill_numbers.pages())
    templates = sorted(path.stem for path in fill_numbers.TEMPLATES.glob("*.md"))
    assert [name for name in templates if f"<!-- from: {name} -->" not in text] == []


def test_a_number_that_does_not_exist_is_an_error(tmp_path, monkeypatch):
    with pytest.raises(KeyError):
        fill_numbers.look_up("gap.barrier_2.nothing")
    with pytest.raises(UndefinedError):
        fill_numbers.environment().from_string("{{ nothing }}").render()


def test_a_number_that_a_template_writes_itself_is_none_of_a_result():
    """Templates quote results by their names: a result to three digits in the text of one is a copy."""
    known = {fill_numbers.look_up(key) for text in _templates() for key in USED.findall(text) if _is_float(key)}
    written = {number for text in _templates() for number in re.findall(r"(?<![\w.])\d+\.\d{2,}\b", _prose(text))}
    assert known
    assert written & known == set()


def _templates():
    return [path.read_text(encoding="utf-8") for path in fill_numbers.TEMPLATES.glob("results*.md")]


def _prose(text):
    return re.sub(r"\{[{%].*?[%}]\}", "", text, flags=re.DOTALL)


def _is_float(key):
    """Keys that a template puts together are not among them."""
    return not key.endswith((".", "-")) and isinstance(fill_numbers.value(key), float)


def test_result_files_say_how_they_were_measured():
    files = list((ROOT / "results").glob("*.json"))
    assert files
    for file in files:
        assert {"command", "date", "environment", "seed", "values"} <= set(json.loads(file.read_text(encoding="utf-8")))
