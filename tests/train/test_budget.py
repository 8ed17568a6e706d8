"""A budget of memory reaches a run, what follows from it is told, and what lacks memory ends in a sentence."""

from dataclasses import replace

import pytest

import angd
from angd.method import memory
from angd.problems.lookup import find_task
from angd.program.main import main
from angd.recipes.base import Phase
from angd.recipes.named import named
from angd.train.config import Config
from angd.train.setup import prepare, within

FEW = ("--interior", "40", "--steps", "2")


@pytest.mark.slow
def test_a_dry_run_tells_the_budget_and_what_follows_from_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["run", "heat", "energy", *FEW, "--memory-limit", "64 MiB", "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "memory that a step may take: 64 MiB; --memory-limit sets another" in said
    assert "as Dense" in said
    assert "stay below the 16 MiB that a Jacobian may hold" in said
    assert "matrix of the system" in said


def test_a_budget_that_is_none_is_refused_in_a_sentence(capsys):
    assert main(["run", "heat", "energy", "--memory-limit", "lots"]) == 2
    assert '--memory-limit must be a number of bytes, 1 at least, or a text such as "8 GiB"' in capsys.readouterr().err


def test_a_run_gives_its_budget_to_optimisers_without_one_and_is_the_same_run_with_another():
    opt = angd.ANGD(angd.ARGFlow.gradient(0.1), angd.Energy(), angd.Normal(1e-3))
    phases = [Phase(opt, None), Phase(opt, None), Phase(replace(opt, memory=7), None)]
    setup = replace(prepare(find_task("heat"), named("adam").recipe, 0), phases=phases)
    first, second, own = (phase.optimiser for phase in within(setup, 10**6).phases)
    assert first is second
    assert (first.memory, own.memory) == (10**6, 7)
    assert not Config("heat", memory=1).differences(Config("heat", memory=None))


def test_an_error_of_the_allocator_names_the_largest_array_and_the_knob():
    with memory.choices(), memory.limited("1 GiB"):
        memory.note("the 9 × 9 matrix", 648, "it is small")
        memory.note("the 20,000 × 20,000 matrix", 3.2e9, "it is large")
        said = memory.shortage(RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 3200000000 bytes."))
    assert said is not None
    assert "the largest array that is known of is the 20,000 × 20,000 matrix, 2.98 GiB" in said
    assert "lower memory= (--memory-limit)" in said
    assert memory.shortage(ValueError("another mistake")) is None


def test_a_run_without_memory_ends_in_that_sentence():
    def full(state, info):
        raise RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 3200000000 bytes.")

    with pytest.raises(MemoryError, match=r"no memory left on .*: lower memory="):
        angd.fit("heat", angd.recipes.GaussNewton(interior=20), steps=2, callback=full, progress=False, memory="1 GiB")
