"""A report says what it knows and what it does not, and nothing that somebody typed can leave its place."""

import base64
import json
import re

import numpy as np
import pytest
from matplotlib.patches import Rectangle
from test_table import folder

from angd.problems.solution import together
from angd.train.folder import Record
from angd.view.curves import compilations, draw, draw_run, is_drawn
from angd.view.data import MOST, as_data, escaped, thinned
from angd.view.fields import colours_of, draw_errors, draw_solution
from angd.view.report import safe_name, write_report
from angd.view.strip import strips
from angd.view.theme import PAPER
from angd.view.verdict import gains, judged, unknowns

EVIL = '<img src=x onerror="alert(1)">&</script>'


def row(recipe, error=None, test_loss=1.0, seeds=1, bar=0.0, budget=None):
    named = {"recipe": recipe, "seeds": seeds, "steps": 9, "seconds": 1.0, "cpu_seconds": 2.0, "loss": 1.0}
    return named | {"error": error, "test_loss": test_loss, "standard_error": bar, "apart": None, "budget": budget}


def test_the_verdict_is_a_sentence():
    rows = [row("energy", 1e-4), row("angd-l2", 2e-3), row("adam", 0.1)]
    assert judged(rows) == (
        "energy reaches a relative L² error of 1.00e-04, 20 times less than angd-l2 and 1000 times less than adam."
    )
    assert judged(rows[:1]) == "energy reaches a relative L² error of 1.00e-04."
    assert judged([]) == "No run has ended yet."
    unknown = [row("sgd", None, 0.5) | {"apart": 2e-3}, row("adam", None, 1.0)]
    assert judged(unknown) == (
        "sgd reaches a test loss of 5.00e-01, 2 times less than adam. Its seeds are 2.0e-03 apart."
    )


def test_energies_have_their_bars_and_no_ratios():
    rows = [row("spring", 1e-3, bar=2e-4), row("minsr", 2e-3, bar=3e-4)]
    assert judged(rows) == "Distance from the reference energy, mHa: spring 1.00 ± 0.20, minsr 2.00 ± 0.30."
    assert judged([row("spring", None, -14.5, bar=1e-3)]) == "Energy, Ha: spring -14.50000 ± 1e-03."
    assert gains(rows) == []


def test_what_is_not_known_is_said(tmp_path):
    one = [folder(tmp_path / "a"), folder(tmp_path / "b", "sgd", 0.2)]
    assert unknowns([row("adam", 0.1), row("sgd", 0.2)], one, "fields") == [
        "One seed: no error bars.",
        "All recipes have their default options: none was tuned here.",
    ]
    said = unknowns([row("adam"), row("sgd", budget="9 steps")], one, None)
    assert "No solution is known: a smaller test loss need not be a smaller error." in said
    assert "The runs had different budgets: this is no comparison." in said
    (one[0].path / "summary.json").unlink()
    assert "One run has not ended, or was killed." in unknowns([row("adam", 0.1)], one, "fields")
    tuned = [folder(tmp_path / "c", rate=0.5), one[1]]
    assert unknowns([row("adam", 0.1), row("sgd", 0.2)], tuned, "fields") == ["One seed: no error bars."]


def test_ranges_of_seeds_that_overlap_are_no_difference(tmp_path):
    runs = [folder(tmp_path / f"a{s}", "adam", error, seed=s) for s, error in enumerate((0.1, 0.3))]
    runs += [folder(tmp_path / f"s{s}", "sgd", error, seed=s) for s, error in enumerate((0.25, 0.9))]
    said = unknowns([row("adam", 0.2, seeds=2), row("sgd", 0.5, seeds=2)], runs, "fields")
    assert said[0] == "Two seeds: those of adam range from 1.00e-01 to 3.00e-01."
    assert said[1] == "The ranges of adam and sgd overlap: that is no difference."


def test_the_metric_s_gain_and_the_acceleration_s_are_told_apart():
    rows = [row("energy", 1e-4), row("adam", 1e-2), row("angd-l2", 2e-2), row("ngd-l2", 0.1), row("sgd", 0.2)]
    assert gains(rows) == [
        "By the metric: relative L² error against adam, energy 100 times less, ngd-l2 10 times more.",
        "By acceleration: relative L² error against ngd-l2, angd-l2 5 times less.",
    ]


def test_a_gain_that_is_none_is_not_called_one(tmp_path):
    assert gains([row("angd-l2", 0.2), row("ngd-l2", 0.1)])[0].endswith("angd-l2 2 times more.")
    assert gains([row("angd-l2", 0.1), row("ngd-l2", 0.102)])[0].endswith("angd-l2 the same.")
    runs = [folder(tmp_path / f"a{s}", "angd-l2", error, seed=s) for s, error in enumerate((0.1, 0.3))]
    runs += [folder(tmp_path / f"n{s}", "ngd-l2", error, seed=s) for s, error in enumerate((0.25, 0.9))]
    rows = [row("angd-l2", 0.2, seeds=2), row("ngd-l2", 0.5, seeds=2)]
    assert gains(rows, runs)[0].endswith("angd-l2 2.5 times less, but their seeds overlap.")
    assert gains(rows, [*runs[:1], runs[3]])[0].endswith("angd-l2 2.5 times less.")
    assert gains([row("adam", 0.1), row("sgd", 0.2)]) == []


def course(phases=(0,), step=0.1, compiling=5.0, each=20):
    """Records of a run whose phases compile for so long."""
    found, seconds = [], 0.0
    for phase in phases:
        for i in range(each):
            seconds += step + (compiling if i == 0 else 0.0)
            k, loss = len(found) + 1, 1.0 / (len(found) + 1)
            errors: dict[str, float | None] = {"u": loss}
            found.append(
                Record(k, seconds, 2 * seconds, {"loss": loss}, k % 7 > 0, k == 9, "", loss, errors, {}, phase)
            )
    return found


def test_compilation_is_what_the_first_step_of_a_phase_took_beyond_the_usual():
    pauses = compilations(course((0, 1)))
    assert [i for i, pause in enumerate(pauses) if pause] == [0, 20]
    assert pauses[0] == pytest.approx(5.0)
    assert not any(compilations(course((0, 1), compiling=0.1))[1:])
    assert compilations([]) == []


def test_compilation_is_a_gap_in_a_figure_against_time_and_none_against_steps():
    figure = draw({"energy": [course((0, 1))]}, ("error",), ("cpu_seconds", "step"))
    time, step = ([np.size(line.get_xdata()) for line in panel.lines] for panel in figure.axes)
    assert [count for count in time if count > 2] == [20, 20]
    assert [count for count in step if count > 2] == [40]


def test_steps_are_logarithmic_where_methods_differ_by_decades():
    few, many = course(each=5), course(each=80)
    assert draw({"energy": [few], "adam": [many]}, ("error",), ("step",)).axes[0].get_xscale() == "log"
    assert draw({"energy": [many[:20]], "adam": [many]}, ("error",), ("step",)).axes[0].get_xscale() == "linear"


def test_energies_are_in_millihartree_with_their_bars_and_a_band():
    records = [Record(k, k, k, {"loss": -1.0}, True, False, "", None, {"energy": 2e-3}) for k in range(1, 20)]
    figure = draw({"spring": [records]}, ("energy",), ("step",), bars={"spring": [(1e-3, 2e-4)]})
    (panel,) = figure.axes
    assert panel.get_ylabel() == "|E − reference|, mHa"
    assert np.allclose(panel.lines[0].get_ydata(), 2.0)
    (bars,) = panel.containers
    (stem,) = bars[2][0].get_segments()
    assert np.allclose(stem[:, 1], (0.8, 1.2))
    band = panel.patches[0]
    assert isinstance(band, Rectangle)
    assert band.get_height() == pytest.approx(1.594)


@pytest.mark.parametrize(("name", "width", "columns"), [("narrow", 3.3, 1), ("wide", 6.9, 2)])
def test_figures_for_paper_have_its_width(name, width, columns):
    figure = draw({"energy": [course()]}, ("error", "loss"), ("cpu_seconds", "step"), page=PAPER[name])
    assert figure.get_figwidth() == width
    places = [panel.get_subplotspec() for panel in figure.axes]
    assert len({place.colspan.start for place in places if place is not None}) == columns


def solution(shift=0.1, sign=0.0):
    t, x = (part.ravel() for part in np.meshgrid(np.linspace(0, 1, 4), np.linspace(0, 1, 5), indexing="ij"))
    exact = t + x - sign
    return together(np.stack([t, x], 1), {"u": exact + shift * x}, {"u": exact}, ("t", "x"))


def test_positive_fields_get_a_sequential_map_and_others_one_about_zero():
    assert colours_of(np.array([0.0, 2.0])) == ("viridis", (None, None))
    assert colours_of(np.array([-3.0, 0.0])) == ("viridis_r", (None, None))
    assert colours_of(np.array([-3.0, 1.0])) == ("RdBu_r", (-3.0, 3.0))
    assert colours_of(np.array([-0.01, 1.0]))[0] == "viridis", "a network errs a little below zero"


def test_errors_of_all_methods_have_one_scale():
    figures = draw_errors({"energy": solution(1e-3), "adam": solution(0.5)})
    ends = [figure.axes[0].collections[0].get_clim() for figure in figures.values()]
    assert ends[0] == ends[1]
    assert [figure.axes[0].get_title()[:8] for figure in figures.values()] == ["energy: ", "adam: u,"]


def test_a_run_leaves_its_solution_for_documents_with_letters_that_publishers_can_read(tmp_path):
    made = folder(tmp_path / "run")
    made.write_arrays("solution.npz", solution())
    draw_run(made)
    names = {path.name for path in made.figures.iterdir()}
    assert names == {"history.png", "solution.png", "solution.pdf", "solution.svg"}
    assert b"/Subtype /Type3" not in (made.figures / "solution.pdf").read_bytes()
    assert b"/FontFile2" in (made.figures / "solution.pdf").read_bytes()
    assert [panel.get_title() for panel in draw_solution(solution()).axes][:2] == ["u(t, x)", "u (dots: exact)"]


def test_figures_that_a_killed_process_left_out_are_missed(tmp_path, monkeypatch):
    made = folder(tmp_path / "run")
    made.write_arrays("solution.npz", solution())
    assert not is_drawn(made)
    draw_run(made)
    assert is_drawn(made)

    def killed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("angd.view.curves.save_all", killed)
    with pytest.raises(KeyboardInterrupt):
        draw_run(made)
    assert not is_drawn(made)


def test_data_for_the_script_is_short_and_holds_no_html():
    long = course(each=1000)
    found = json.loads(as_data({EVIL: [long], "adam": [course((0, 1))]}, ("error", "loss")))
    assert found["methods"][0]["name"] == EVIL
    assert len(found["methods"][0]["runs"][0]["error"]) <= MOST + 1
    assert found["methods"][0]["runs"][0]["step"][-1] == 1000
    assert found["methods"][1]["runs"][0]["gaps"] == [20]
    assert not set("<>&") & set(as_data({EVIL: [long]}, ("error",)))
    assert escaped("</script>") == "\\u003c/script\\u003e"
    assert thinned([]) == []


def test_a_strip_shows_phases_compilation_and_rejected_steps():
    (strip,) = strips([("energy, seed 0", course((0, 1)), ["uniform points", "adaptive points"])])
    assert [piece.phase for piece in strip.pieces] == [None, 0, None, 1]
    assert sum(piece.width for piece in strip.pieces) == pytest.approx(100)
    assert [piece.text for piece in strip.pieces][1::2] == ["phase 1: uniform points", "phase 2: adaptive points"]
    assert len(strip.rejected) == 5
    assert len(strip.restarted) == 1
    assert strip.text == "10 s of compilation, 14 s in all, 5 steps rejected"


def test_a_page_escapes_whatever_a_task_is_called(tmp_path):
    made = folder(tmp_path / "run")
    made.write("task.json", {"name": EVIL, "about": EVIL, "equation": EVIL, "errors": "fields", "phases": [EVIL]})
    made.write("summary.json", (made.read("summary.json") or {}) | {"result": EVIL})
    page = write_report([made.path], tmp_path / "report").read_text(encoding="utf-8")
    assert "<img src=x" not in page
    assert page.count("</script>") == 2, "that of the data and that of the script"
    assert {path.suffix for path in (tmp_path / "report").iterdir()} == {".html", ".png", ".pdf", ".svg", ".csv"}
    assert {path.parent for path in (tmp_path / "report").rglob("*")} == {tmp_path / "report"}
    data = re.findall(r'href="data:text/csv;base64,([^"]*)"', page)
    assert base64.b64decode(data[0]).startswith(b"task,recipe,seed")


@pytest.mark.parametrize(("name", "file"), [("heat", "heat"), ("../../etc", "etc"), ("a b/c", "a-b-c"), ("..", "task")])
def test_a_task_s_name_becomes_the_name_of_a_file(name, file):
    assert safe_name(name) == file
