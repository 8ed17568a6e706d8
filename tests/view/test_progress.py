"""What a person sees while a run goes on: what is done, how long the rest takes, and that somebody heard Ctrl-C."""

import io
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console

from angd.recipes.base import Phase
from angd.train.loop import Budget, TrainState, is_evaluated
from angd.train.pace import Pace, Plan, evaluations
from angd.train.progress import Lines, Silent, as_time
from angd.view.notebook import Notebook, curve, display_of
from angd.view.progress import Part, Watch, bar, fitted

PHASES = [
    Phase(None, None, 60, name="uniform points"),
    Phase(None, None, 300, name="adaptive points"),
    Phase(None, None),
]


class Clock:
    """Seconds that go by when somebody says so."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def info(loss=0.5, accepted=True):
    return SimpleNamespace(loss=loss, damping=1e-3, norm=0.1, accepted=accepted)


def simulated(budget, phases=PHASES, costs=(0.05, 0.4, 0.02), compiling=(20.0, 15.0, 0.0), looking=0.3, noise=0.3):
    """States of a run with the seconds on the wall after each, as `train` gives them, up to its end."""
    rng, clock, found, k, seconds = np.random.default_rng(0), 0.0, [], 0, 0.0
    for number, phase in enumerate(phases):
        began = k
        while k < began + phase.steps:
            spent = costs[number] * rng.uniform(1 - noise, 1 + noise) + (compiling[number] if k == began else 0.0)
            k, seconds, clock = k + 1, seconds + spent, clock + spent
            clock += looking if is_evaluated(k) else 0.0
            cpu = 1.7 * seconds
            found.append((TrainState(None, k=k, phase=number, began=began, seconds=seconds, cpu_seconds=cpu), clock))
            if budget.spent(found[-1][0]) >= 1:
                return found
    return found


BUDGETS = [Budget(steps=900), Budget(seconds=240), Budget(cpu_seconds=400), Budget(steps=250, seconds=3600)]


@pytest.mark.parametrize("budget", BUDGETS, ids=lambda b: f"{b.steps:g}-{b.seconds:g}-{b.cpu_seconds:g}")
@pytest.mark.parametrize("looking", [0.0, 0.3])
def test_the_time_left_is_right_within_a_factor_from_a_tenth_of_a_phase_on(budget, looking):
    """Truth is what the clock says later: until the run ends, or until the next phase begins to compile."""
    seen = simulated(budget, looking=looking)
    pace, ratios = Pace(Plan(budget, PHASES)), []
    lengths = {number: sum(state.phase == number for state, _ in seen) for number in range(3)}
    for state, now in seen:
        pace.saw(state, now)
        left = pace.left(state)
        if state.k - state.began < 0.1 * lengths[state.phase] or left is None:
            continue
        end = seen[-1][1] if left.phase is None else max(t for s, t in seen if s.phase < left.phase)
        if end - now > 2.0:
            ratios.append(left.seconds / (end - now))
    assert len(ratios) > 100
    assert min(ratios) > 1 / 1.5
    assert max(ratios) < 1.5


def test_a_phase_ends_or_the_run_does_whichever_is_known():
    seen = simulated(Budget(steps=50))
    pace, alone = Pace(Plan(Budget(steps=900), PHASES)), Pace(Plan(Budget(steps=100), [Phase(None, None)]))
    for state, now in seen:
        pace.saw(state, now)
        alone.saw(state, now)
    left = pace.left(seen[-1][0])
    assert left is not None
    assert left.phase == 1
    left = alone.left(seen[-1][0])
    assert left is not None
    assert left.phase is None


@pytest.mark.parametrize(("first", "last"), [(0, 1), (0, 49), (0, 50), (3, 51), (49, 300), (50, 51), (200, 5000)])
def test_evaluations_are_counted_as_the_loop_makes_them(first, last):
    assert evaluations(first, last) == sum(is_evaluated(k) for k in range(first + 1, last + 1))


def watched(width=79, **rest):
    """A watch on a terminal that nobody sees, and its clock."""
    clock = Clock()
    console = Console(file=io.StringIO(), width=width + 1, force_terminal=True)
    return Watch("burgers, energy", Plan(Budget(steps=600), PHASES), console, clock=clock, **rest), clock


def after(watch, clock, k, phase=0, began=0, **said):
    clock.now += 1.0
    watch(TrainState(None, k=k, phase=phase, began=began, seconds=clock.now, cpu_seconds=clock.now), info(**said), None)


def test_while_xla_compiles_the_line_says_so_and_counts():
    watch, clock = watched()
    lines = []
    for _ in range(3):
        lines.append(watch.line(79)[1:])
        clock.now += 2.0
    assert lines[0] == "  burgers, energy:  compiling phase 1/3 uniform points …"
    assert [line[-3:] for line in lines[1:]] == ["2 s", "4 s"]
    assert len({watch.line(79)[0] for clock.now in np.arange(0, 1, 0.15)}) > 3, "the spinner turns"


def test_the_next_phase_is_named_before_its_first_step():
    watch, clock = watched()
    for k in range(1, 61):
        after(watch, clock, k)
    clock.now += 12.0
    assert "compiling phase 2/3 adaptive points … 12 s" in watch.line(79)
    after(watch, clock, 61, 1, 60)
    assert "2/3 adaptive points" in watch.line(79)
    assert "compiling" not in watch.line(79)


@pytest.mark.parametrize("width", [20, 39, 79, 119, 200])
def test_the_line_fits_and_the_most_important_comes_first(width):
    watch, clock = watched(width)
    for k in range(1, 41):
        after(watch, clock, k)
    line = watch.line(width)
    assert len(line) <= width
    assert "7%" in line
    assert ("20 s to phase 2" in line) == (width > 20)
    assert ("2/3" in line or "1/3 uniform points" in line) == (width > 45)
    assert ("step 40" in line) == (width > 100)
    assert ("λ 1.0e-03" in line) == (width > 120)


def test_what_does_not_fit_gives_way_by_rank():
    parts = [Part("a" * 8, 1), Part("b" * 8, 3), Part("", 9), Part("c" * 8, 2)]
    assert fitted(parts, 40) == "a" * 8 + "  " + "b" * 8 + "  " + "c" * 8
    assert fitted(parts, 18) == "a" * 8 + "  " + "c" * 8
    assert fitted([Part("d" * 30, 0)], 10) == "d" * 9 + "…"
    assert [bar(done, 4) for done in (0.0, 0.5, 2.0)] == ["────", "━━──", "━━━━"]


def test_a_step_that_takes_long_says_for_how_long():
    watch, clock = watched()
    after(watch, clock, 1)
    clock.now += 30.0
    assert "30 s in this step" in watch.line(79)


def test_ctrl_c_is_answered_at_once_and_not_while_figures_are_drawn(capfd):
    watch, clock = watched()
    watch.live = True  # pyright: ignore[reportAttributeAccessIssue]
    after(watch, clock, 1)
    watch.stopping()
    assert "stopping after this step" in watch.line(79)
    watch.doing("drawing figures")
    clock.now += 1.0
    assert "stopping" not in watch.line(79)
    plain = Lines("heat", Plan(Budget(steps=2)), Clock())
    plain.stopping()
    Silent("heat", Plan(Budget(steps=2))).stopping()
    assert capfd.readouterr().err == "heat: stopping after this step\n"


def test_a_run_that_goes_on_in_a_later_phase_compiles_that_one():
    watch, _ = watched()
    watch.begins(TrainState(None, k=80, phase=1, began=60))
    assert "compiling phase 2/3" in watch.line(79)
    watch.begins(TrainState(None, k=360, phase=1, began=60))
    assert "compiling phase 3/3" in watch.line(79)


@pytest.mark.parametrize(("seconds", "text"), [(0.4, "0 s"), (99, "99 s"), (185, "3:05 min"), (7800, "2:10 h")])
def test_times_are_said_as_one_says_them(seconds, text):
    assert as_time(seconds) == text


def test_a_notebook_has_one_output_with_a_bar_and_a_curve():
    shown, clock = [], Clock()

    def display(page):
        shown.append(page)
        return shown.append

    with Notebook("<b>mine</b>", Plan(Budget(steps=10), PHASES), display, clock=clock) as watch:
        assert "compiling phase 1/3 uniform points …" in shown[0]
        for k in range(1, 11):
            after(watch, clock, k, loss=10.0**-k)
        watch.stopping()
        after(watch, clock, 11, loss=1e-11)
    assert "&lt;b&gt;mine&lt;/b&gt;" in shown[-1]
    assert "<b>mine</b></b>" not in shown[-1]
    assert 'value="1.0000"' in shown[-1]
    assert "<polyline" in shown[-1]
    assert "loss from 1.00e-01 to 1.00e-11" in shown[-1]
    assert any("stopping after this step" in page for page in shown)
    assert "angd-turn" not in shown[-1].split("</style>")[1]


def test_a_notebook_is_not_renewed_more_often_than_one_can_see():
    shown, clock = [], Clock()
    watch = Notebook("mine", Plan(Budget(steps=10**6)), lambda page: shown.append, clock=clock)
    watch.update = shown.append
    for k in range(1, 1001):
        clock.now += 0.01
        watch.doing("evaluating")
        watch(TrainState(None, k=k, seconds=clock.now, cpu_seconds=clock.now), info(), None)
    assert 15 < len(shown) < 25
    assert len(watch.losses) <= 320


def test_a_curve_needs_numbers_and_a_notebook_needs_one():
    assert curve([np.nan, 1.0]) == ""
    assert curve([-1.0, -2.0, 3.0]).count(",") == 3
    assert display_of() is None
