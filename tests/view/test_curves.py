"""What is drawn, beyond lines of numbers."""

import numpy as np
import pytest

from angd.train.folder import Row
from angd.view.curves import course, draw, quantities
from angd.view.fields import draw_solution
from angd.view.theme import DARK


def look(step, energy):
    errors = {} if energy is None else {"energy": energy}
    return Row(step, 0.0, 0.0, -1.0, None, errors, None, None, True, "")


def test_energies_are_means_of_ten_looks_and_pretraining_has_none():
    rows = [look(1, None), *(look(k, (-1) ** k * 1.0) for k in range(2, 22)), look(22, 3.0)]
    found = course(rows, "energy")
    assert [row.step for row, _ in found] == list(range(2, 23))
    assert [value for _, value in found][:3] == [1.0, 0.0, pytest.approx(1 / 3)]
    assert found[-1][1] == pytest.approx((3.0 - 1.0) / 10)


def test_what_is_drawn_depends_on_the_experiment():
    assert quantities("burgers") == ("error", "loss", "test_loss")
    assert quantities("vmc-be") == ("energy",)


def test_a_run_that_ends_while_it_is_pretrained_has_a_figure_without_curves():
    assert not draw({"angd-fr": [[look(1, None)]]}, ("energy",), ("step",)).axes[0].get_legend()


def test_solutions_are_drawn_over_time_and_at_one_time():
    t, x = (part.ravel() for part in np.meshgrid([0.0, 0.5, 1.0], np.linspace(0, 1, 5), indexing="ij"))
    over_time = {"z": np.stack([t, x], 1), "u found": t + x, "u exact": t + x + 1e-3}
    titles = [panel.get_title() for panel in draw_solution(over_time).axes]
    assert titles[:3] == ["u(t, x)", "u (dots: exact)", "log₁₀ of the error of u"]
    last = {name: values[10:] for name, values in over_time.items()}
    (panel,) = draw_solution(last | {"p found": x[10:], "p exact": x[10:]}, DARK).axes[:1]
    assert panel.get_title() == "u at t = 1"
    assert np.allclose(panel.lines[0].get_ydata(), 1 + x[10:])
