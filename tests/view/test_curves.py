"""What is drawn, beyond lines of numbers."""

import numpy as np
import pytest

from angd.train.folder import Record, RunFolder
from angd.view.curves import course, draw, quantities
from angd.view.fields import draw_solution
from angd.view.theme import DARK


def record(step, energy):
    errors = {} if energy is None else {"energy": energy}
    return Record(step, 0.0, 0.0, {"loss": -1.0}, True, False, "", None, errors)


def test_energies_are_means_of_ten_records_and_pretraining_has_none():
    records = [record(1, None), *(record(k, (-1) ** k * 1.0) for k in range(2, 22)), record(22, 3.0)]
    found = course(records, "energy")
    assert [one.step for one, _ in found] == list(range(2, 23))
    assert [value for _, value in found][:3] == [1.0, 0.0, pytest.approx(1 / 3)]
    assert found[-1][1] == pytest.approx((3.0 - 1.0) / 10)


def test_what_is_drawn_depends_on_what_is_known(tmp_path):
    def folder(name, errors, one):
        made = RunFolder(tmp_path / name)
        made.path.mkdir()
        made.write("task.json", {"errors": errors})
        made.append(one)
        return made

    plain = Record(1, 0.0, 0.0, {"loss": 1.0}, True, False, "")
    known = Record(1, 0.0, 0.0, {"loss": 1.0}, True, False, "", 2.0, {"u": 0.1})
    assert quantities([folder("a", None, plain)]) == ("loss",)
    assert quantities([folder("b", "fields", known)]) == ("error", "test_loss", "loss")
    assert quantities([folder("c", "energy", record(1, 0.1))]) == ("energy",)


def test_a_run_that_ends_while_it_is_pretrained_has_a_figure_without_curves():
    assert not draw({"angd-fr": [[record(1, None)]]}, ("energy",), ("step",)).axes[0].get_legend()


def test_solutions_are_drawn_over_time_and_at_one_time():
    t, x = (part.ravel() for part in np.meshgrid([0.0, 0.5, 1.0], np.linspace(0, 1, 5), indexing="ij"))
    over_time = {"z": np.stack([t, x], 1), "u found": t + x, "u exact": t + x + 1e-3}
    titles = [panel.get_title() for panel in draw_solution(over_time).axes]
    assert titles[:3] == ["u(t, x)", "u (dots: exact)", "log₁₀ |error of u|"]
    last = {name: values[10:] for name, values in over_time.items()}
    (panel,) = draw_solution(last | {"p found": x[10:], "p exact": x[10:]}, DARK).axes[:1]
    assert panel.get_title() == "u at t = 1"
    assert np.allclose(panel.lines[0].get_ydata(), 1 + x[10:])
