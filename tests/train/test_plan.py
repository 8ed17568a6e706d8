"""What the plan counts, against what XLA counts, loops that do the work by hand, and steps that were measured."""

import json
import math
from importlib import import_module
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest

from angd.method.jacobian import Dense, Factored, jacobian
from angd.train.costs import Machine, factorisation, gathered, product, reduced
from angd.train.plan import SOLVERS, Size, best, plan

ROOT = Path(__file__).parents[2]
MACHINE = Machine("test", peak=1e12, bandwidth=1e11, memory=1e9, link=1e10, network=1e9, latency=1e-6)


def mlp(params, x):
    for w, b in params[:-1]:
        x = jnp.tanh(x @ w + b)
    w, b = params[-1]
    return (x @ w + b)[0]


def weights(*widths):
    keys = jax.random.split(jax.random.key(0), len(widths))
    return [(jax.random.normal(k, (i, o)), jnp.zeros(o)) for k, i, o in zip(keys, widths, widths[1:], strict=False)]


def sized(samples=None, widths=(3, 20, 30, 1)):
    return Size.of(mlp, weights(*widths), jnp.zeros((4, 3)), samples)


def counted(f, *arguments):
    jit: Any = eqx.filter_jit
    return jit(f).lower(*arguments).compile().compiled.cost_analysis()["flops"]


def test_a_value_costs_what_its_layers_do():
    products = 2 * (3 * 20 + 20 * 30 + 30)
    assert products < sized().value < 1.2 * products


def test_factors_are_as_large_as_the_ones_that_a_step_holds():
    xs = jnp.ones((7, 3))
    held = jacobian(mlp, weights(3, 20, 30, 1), xs, form=Factored)
    assert isinstance(held, Factored)
    groups = [group for leaf in held.leaves for group in leaf.groups]
    assert sum(x.nbytes for g in groups for x in (g.a, g.g)) / 7 == pytest.approx(sized().factors)


@pytest.mark.parametrize("matrix", ["kernel", "gram"])
def test_a_symmetric_product_does_half_of_a_full_one_and_part_of_its_diagonal_blocks(matrix):
    n, p = (896, 100) if matrix == "kernel" else (100, 896)
    O = jacobian(lambda theta, x: theta @ x, jnp.zeros(p), jnp.ones((n, p)), form=Dense)
    madds = n * n * p if matrix == "kernel" else n * p * p
    flops = counted(lambda O: getattr(O, matrix)(), O)
    assert 1.0 < flops / product(madds, 0, 0, MACHINE).flops < 1.3


@pytest.mark.parametrize("widths", [(3, 20, 30, 1), (3, 100, 100, 100, 1)])
def test_factors_of_rows_cost_two_values(widths):
    def factors(params, xs):
        return jax.tree.leaves(jacobian(mlp, params, xs, form=Factored))

    flops = counted(factors, weights(*widths), jnp.ones((64, 3)))
    assert plan(sized(64, widths), MACHINE, 1, "iterative").parts["rows"].flops == pytest.approx(flops, rel=0.05)


def test_cholesky_takes_a_third_of_the_cube():
    n = 200
    by_hand = sum(2 * j * (n - j) for j in range(n))  # column j: n − j inner products of length j
    assert factorisation(n, 8, MACHINE).flops == pytest.approx(by_hand, rel=0.02)


@pytest.mark.parametrize("devices", [2, 5, 8])
def test_a_ring_sends_a_sum_almost_twice(devices):
    """Each device passes one of as many pieces on, until all are summed, and again until all are everywhere."""
    pieces = [[{device} for _ in range(devices)] for device in range(devices)]
    sent = 0
    for step in range(2 * (devices - 1)):
        moved = [(device, (device - step) % devices) for device in range(devices)]
        parcels = [(device, piece, set(pieces[device][piece])) for device, piece in moved]
        for device, piece, parcel in parcels:
            pieces[(device + 1) % devices][piece] |= parcel
        sent += 1
    assert all(len(piece) == devices for device in pieces for piece in device)
    assert reduced(1.0, devices).sent == pytest.approx(sent / devices)
    assert gathered(1.0, devices).sent == pytest.approx((devices - 1) / devices)


@pytest.mark.parametrize("solver", SOLVERS)
def test_one_device_sends_nothing_and_more_do_less_work_each(solver):
    one, four = (plan(sized(4000), MACHINE, devices, solver) for devices in (1, 4))
    assert all(cost.sent == cost.messages == 0 for cost in one.parts.values())
    assert sum(cost.sent for cost in four.parts.values()) > 0
    assert four.parts["rows"].flops == one.parts["rows"].flops / 4


def test_a_part_takes_as_long_as_the_slower_of_its_flops_and_bytes_and_then_sends():
    bound = product(1e12, 1e3, 0, MACHINE)
    assert bound.seconds(MACHINE) == pytest.approx(1 / MACHINE.half)
    assert product(1e3, 1e11, 0, MACHINE).seconds(MACHINE) == pytest.approx(1.0)
    across = gathered(1e10, 2)
    assert across.seconds(MACHINE, 2) == pytest.approx(0.5 + 1e-6)
    assert across.seconds(MACHINE, 16) == pytest.approx(5 + 1e-6)  # sixteen devices are two hosts


def test_the_smaller_matrix_is_taken_and_what_does_not_fit_is_not():
    few, many = best(sized(100), MACHINE), best(sized(20_000), MACHINE)
    assert few is not None
    assert many is not None
    assert (few.solver, many.solver) == ("kernel", "normal")
    large = sized(30_000, (3, 300, 300, 1))
    assert best(large, MACHINE) is None
    shared = best(large, MACHINE, 64)
    assert shared is not None
    assert shared.solver == "kernel, distributed"


@pytest.mark.slow
def test_measured_steps_took_what_the_plan_says(monkeypatch):
    """From 1,000 rows on, three quarters within 30 %: the times of growth.json, on the machine of roofline.json."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    growth = import_module("growth")
    found = json.loads((ROOT / "results" / "growth.json").read_text(encoding="utf-8"))["values"]
    measured = {
        (name, size): (solver, arguments, found[growth.key(name)]["sizes"][str(size)]["spread"][0])
        for name, (solver, steps) in growth.residuals(quick=False).items()
        for size, (_, arguments) in steps.items()
        if len(arguments[1]) >= 1000
    }
    ratios = [growth.planned(solver, *arguments) / fastest for solver, arguments, fastest in measured.values()]
    assert len(ratios) >= 8
    assert sum(abs(ratio - 1) <= 0.3 for ratio in ratios) >= 0.75 * len(ratios), ratios
    assert math.isclose(1, math.prod(ratios) ** (1 / len(ratios)), rel_tol=0.2)
