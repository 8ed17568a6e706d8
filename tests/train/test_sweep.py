"""Successive halving on runs whose course is known."""

import math

import pytest

from angd.program.arguments import parse
from angd.program.commands.sweep import SweepOptions, sweep
from angd.train.config import Config
from angd.train.folder import Record
from angd.train.run import Run
from angd.train.setup import prepare
from angd.train.sweep import configurations, halving
from making import completed

STARTED = []


def run(options):
    """Loss a/k + b, one record a step, 100 steps; 'diverges' gives NaN from the fifth step on."""
    STARTED.append(options)
    for k in range(1, 101):
        loss = math.nan if options.get("diverges") and k >= 5 else options["a"] / k + options["b"]
        yield Record(k, 0.0, 0.0, {"loss": loss}, True, False, "", loss, {"u": loss})


def test_the_best_goes_on_and_nobody_starts_twice():
    """The quick starter (small a) leads at the first rung; the one with the lower floor b wins in the end."""
    STARTED.clear()
    grid = [{"a": 1.0, "b": 0.5}, {"a": 3.0, "b": 0.0}, {"a": 50.0, "b": 0.0}, {"a": 1.0, "b": 9.0}]
    found = halving(run, grid, [4, 40, 80], by=lambda r: r.loss, keep=0.5, least=1)
    assert grid == STARTED
    assert [entry.options for entry in found[:2]] == [grid[1], grid[0]]
    assert [entry.records[-1].step for entry in found] == [80, 40, 4, 4]
    assert [entry.options for entry in found[2:]] == [grid[3], grid[2]]


def test_a_survivor_that_diverges_late_does_not_win():
    """It leads at the first rung, where nothing has happened to it yet."""
    late, steady = {"a": 0.0, "b": 0.0, "diverges": True}, {"a": 9.0, "b": 9.0}
    found = halving(run, [late, steady], [4, 20], by=lambda r: r.loss, keep=0.5, least=1)
    assert [entry.records[-1].step for entry in found] == [4, 20]
    assert found[0].options == steady


def test_what_diverged_is_the_worst_of_its_rung():
    found = halving(run, [{"a": 0, "b": 0, "diverges": True}, {"a": 9.0, "b": 9.0}], [10, 20], by=lambda r: r.loss)
    assert found[0].options["a"] == 9.0
    assert found[1].score(lambda r: r.loss) == math.inf


def test_runs_that_go_no_further_are_closed():
    """Their last words are heard before the sweep ends."""
    closed = []

    def watched(options):
        try:
            yield from run(options)
        finally:
            closed.append(options["a"])

    halving(watched, [{"a": 1.0, "b": 1.0}, {"a": 9.0, "b": 9.0}], [4, 20], by=lambda r: r.loss, keep=0.5, least=1)
    assert closed == [9.0, 1.0]


def test_all_runs_are_closed_when_one_is_stopped():
    closed = []

    def watched(options):
        try:
            yield from run(options)
            raise KeyboardInterrupt
        finally:
            closed.append(options["a"])

    with pytest.raises(KeyboardInterrupt) as stop:
        halving(watched, [{"a": 1.0, "b": 1.0}, {"a": 9.0, "b": 9.0}], [4, 200], by=lambda r: r.loss, least=2)
    assert closed == [1.0, 9.0], stop.value


def test_a_run_is_saved_where_it_is_judged(tmp_path):
    config, task, recipe = completed(Config.of("heat", "adam", {"interior": 30, "condition": 8}, steps=9))
    records = Run(prepare(task, recipe, 0), config, tmp_path / "run", judged=[3]).records()
    while next(records).step < 3:
        pass
    assert [path.stem for path in (tmp_path / "run" / "checkpoints").iterdir()] == ["000000003"]
    records.close()


def test_configurations_are_all_or_a_fair_sample():
    grid = {"rate": (1, 2, 3), "mu": (0.5, 0.9)}
    everything = configurations(grid)
    assert len(everything) == 6
    assert {"rate": 3, "mu": 0.5} in everything
    some = configurations(grid, most=4)
    assert len({tuple(c.items()) for c in some}) == 4
    assert some == configurations(grid, most=4)
    assert configurations({}) == [{}]


@pytest.mark.parametrize("bad", [{"candidates": []}, {"rungs": [5, 5]}, {"rungs": []}, {"keep": 0.0}])
def test_misuse_is_refused(bad):
    arguments = {"candidates": [{"a": 1, "b": 1}], "rungs": [5], "keep": 0.5} | bad
    with pytest.raises(ValueError, match="halving"):
        halving(run, by=lambda r: r.loss, **arguments)


@pytest.mark.slow
def test_ground_states_are_judged_on_fresh_walkers_after_their_pretraining(tmp_path):
    small = ["--walkers", "16", "--burn-in", "2", "--moves", "1", "--measurements", "4", "--pretrain", "3"]
    command = ["sweep", "vmc-h", "spring", "--grid", "none", "--rate", "0.01,0.05", *small, "--steps", "4"]
    options = parse([*command, "--rungs", "2", "--quiet", "--out", str(tmp_path / "sweep")], {"sweep": SweepOptions})
    options.check()
    stops = options.stops(3)
    assert stops == [4, 7]
    _, ranked, _ = sweep(options)
    last = []
    for _, records in ranked:
        judged = [(record.step, record.test_loss) for record in records if record.test_loss is not None]
        assert [step for step, _ in judged] == stops
        assert all(-5 < energy < 5 for _, energy in judged)
        last.append(judged[-1][1])
    assert len(last) == 2
    assert last == sorted(last)


def test_a_grid_that_nobody_could_finish_is_refused():
    with pytest.raises(ValueError, match="has 10000000000 combinations"):
        configurations(dict.fromkeys("abcde", range(100)), most=3)
