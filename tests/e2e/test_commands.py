"""Comparing, sweeping, reporting and reproducing, as a person does it."""

import csv
import json
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

from angd.program.commands import reproduce as reproduce_command
from angd.program.main import main
from angd.train.folder import RunFolder
from angd.view.report import command
from angd.view.table import short

CHROMIUM = shutil.which("chromium")


class Outline(HTMLParser):
    """What a page loads and holds."""

    def __init__(self):
        super().__init__()
        self.tags, self.loads = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        links = [value or "" for name, value in attrs if name in ("src", "href")]
        self.loads += [link for link in links if not link.startswith(("#", "data:"))]


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """Two recipes, two seeds, 8 steps each."""
    folder = tmp_path_factory.mktemp("compare") / "out"
    arguments = ["compare", "heat", "adam,sgd", "--seeds", "0,1", "--budget", "8 steps"]
    assert main([*arguments, "--out", str(folder)]) == 0
    return folder, arguments


def test_compare_runs_all_from_the_same_start_and_ends_with_table_and_report(compared, capsys):
    folder, arguments = compared
    runs = {path.parent.name: RunFolder(path.parent) for path in folder.glob("*/config.json")}
    assert set(runs) == {"adam-0", "adam-1", "sgd-0", "sgd-1"}
    assert runs["adam-0"].records()[0].loss == runs["sgd-0"].records()[0].loss
    assert runs["adam-0"].records()[0].loss != runs["adam-1"].records()[0].loss
    before = {name: run.metrics_file.read_bytes() for name, run in runs.items()}
    assert main([*arguments, "--out", str(folder), "--json"]) == 0
    said = capsys.readouterr().out
    answer = json.loads(said.splitlines()[-1])
    assert [row["seeds"] for row in answer["table"]] == [2, 2]
    assert "times less than" in said
    assert before == {name: run.metrics_file.read_bytes() for name, run in runs.items()}


def test_a_report_stands_alone_and_says_how_to_repeat_every_run(compared):
    folder, _ = compared
    page = (folder / "report" / "report.html").read_text(encoding="utf-8")
    outline = Outline()
    outline.feed(page)
    assert outline.loads == []
    assert outline.tags.count("img") == 1 + 1 + 2 * 2, "without scripts, the solution, errors of two methods"
    assert "relative L² error, test loss, training loss against CPU seconds and steps" in page
    assert "prefers-color-scheme: dark" in page
    assert "∂ₜu = 0.1 ∂ₓₓu" in page
    assert "angd run heat sgd --seed 1 --steps 8" in page
    made = {path.name for path in (folder / "report").iterdir()}
    files = {f"heat{end}" for end in (".png", "-dark.png", ".pdf", ".svg", ".csv")}
    files |= {f"heat-solution{end}" for end in (".png", "-dark.png", ".pdf", ".svg")}
    assert made == files | {"report.html"}
    with open(folder / "report" / "heat.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 4 * 8
    assert float(rows[-1]["error u"]) == RunFolder(folder / "sgd-1").records()[-1].errors["u"]
    assert float(rows[0]["loss"]) == RunFolder(folder / "adam-0").records()[0].loss


def test_the_command_of_a_report_repeats_the_run(compared, tmp_path, capsys):
    folder, _ = compared
    run = RunFolder(folder / "sgd-1")
    assert main([*command(run.config()).split()[1:], "--out", str(tmp_path / "again"), "--json"]) == 0
    again = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert again["loss"] == run.records()[-1].loss


def test_report_finds_runs_below_a_folder_and_refuses_one_without(compared, tmp_path, capsys):
    folder, _ = compared
    assert main(["report", str(folder), "--out", str(tmp_path / "page")]) == 0
    assert "page/report.html" in capsys.readouterr().out
    (tmp_path / "empty").mkdir()
    assert main(["report", str(tmp_path / "empty")]) == 2
    assert "holds no run" in capsys.readouterr().err


def test_sweep_finds_the_better_rate_and_its_file_can_be_run(tmp_path, capsys):
    folder = tmp_path / "sweep"
    tuning = ["sweep", "heat", "adam", "--grid", "none", "--rate", "1e-7,1e-2", "--halving", "1000", "--steps", "30"]
    assert main([*tuning, "--rungs", "2", "--out", str(folder)]) == 0
    assert "does best with rate=0.01" in capsys.readouterr().out
    before = {path: path.read_bytes() for path in folder.rglob("metrics.jsonl")}
    assert main([*tuning, "--rungs", "2", "--out", str(folder), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert answer["best"]["options"]["rate"] == 0.01
    assert before == {path: path.read_bytes() for path in folder.rglob("metrics.jsonl")}
    best = ["run", "--config", str(folder / "best.json"), "--steps", "5", "--out", str(tmp_path / "run"), "--json"]
    assert main(best) == 0
    assert RunFolder(tmp_path / "run").config().options["rate"] == 0.01


@pytest.mark.slow
def test_reproduce_draws_the_paper_s_curves_for_all_methods(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(reproduce_command, "FIGURES", {"heat": (("sgd", "adam"), ("loss", "test_loss"))})
    assert main(["reproduce", "heat", "--budget", "9", "--out", str(tmp_path / "out")]) == 0
    assert "heat.png" in capsys.readouterr().out
    assert (tmp_path / "out" / "heat.pdf").read_bytes().startswith(b"%PDF")


def screenshot(page: Path, out: Path, width: int, dark: bool) -> str:
    """What Chromium says while it draws the page."""
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr", "--v=0"]
    quiet = ["--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
    theme = ["--blink-settings=preferredColorScheme=0"] if dark else ["--blink-settings=preferredColorScheme=1"]
    place = [f"--user-data-dir={out.parent / 'profile'}", f"--window-size={width},1600", f"--screenshot={out}"]
    command = [str(CHROMIUM), *flags, *quiet, *theme, *place, page.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stderr


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (Debian's package chromium)")
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [420, 1200])
def test_a_browser_shows_the_figures_in_light_and_dark_on_phone_and_desktop(compared, tmp_path, width, dark):
    """No error on the console; the page has the colours of its theme; the figure's curves are there."""
    from matplotlib import image

    from angd.view.theme import DARK, LIGHT, styles

    folder, _ = compared
    said = screenshot(folder / "report" / "report.html", tmp_path / "page.png", width, dark)
    assert "CONSOLE" not in said
    pixels = (image.imread(tmp_path / "page.png")[:, :, :3] * 255).round().astype(int)
    assert abs(int(pixels[5, 5].mean()) - (25 if dark else 255)) < 5
    colour = styles(["adam"], DARK if dark else LIGHT)["adam"].colour
    wanted = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    assert (abs(pixels - wanted).sum(2) < 12).sum() > 100


@pytest.mark.parametrize(("value", "text"), [(None, "–"), (-14.667355, "-14.66736"), (1.234e-5, "1.23e-05")])
def test_numbers_of_tables_are_short_and_energies_have_their_digits(value, text):
    assert short(value) == text
