"""What a step would cost on machines that are not here: its flops, bytes and messages, and the seconds they take.

A step is a list of parts, each with its flops, the bytes that it moves through memory, and what it sends
(`angd.train.costs`). The numbers of a model are counted, not guessed: `Size.of` reads them off the same walk over the
function that chooses how the Jacobian is held. `benchmarks/growth.py` compares all this with measured steps.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
from jaxtyping import PyTree

from angd.method.jacobian.build import kernel_cost
from angd.method.jacobian.check import check
from angd.method.jacobian.leaves import hadamard_wins, pair_cost
from angd.method.jacobian.taps import taps
from angd.train.costs import Cost, Machine, factorisation, gathered, product, reduced, shared_factorisation
from angd.tree import count

SOLVERS = ("normal", "kernel", "kernel, distributed", "kfac", "iterative")
PRODUCTS = 200  # of O d and Oᵀ y that an iterative solver takes in a step
DERIVATIVE = 2  # values that the factors of a row cost: once forward, once back


@dataclass(frozen=True)
class Size:
    """What a step works on; `Size.of` counts it.

    **Arguments:**

    - `rows`: N of the Jacobian.
    - `parameters`: p.
    - `value`: flops of one row's value.
    - `paired`: multiply-adds of one entry of the kernel, of leaves whose factors are paired.
    - `whole`: the same, of leaves whose gradients are multiplied.
    - `factors`: bytes of one row's factors.
    - `layers`: (in, out) of each matrix of weights.
    - `uses`: how often a row uses a matrix.
    - `itemsize`: bytes of a number.
    - `sampling`: flops of one sample's moves and local energy.
    """

    rows: int
    parameters: int
    value: float
    paired: float
    whole: float
    factors: float
    layers: tuple[tuple[int, int], ...] = ()
    uses: float = 1.0
    itemsize: int = 8
    sampling: float = 0.0

    @classmethod
    def of(cls, f: Callable[..., Any], params: PyTree, xs: PyTree, samples: int | None = None) -> "Size":
        """Counted: of a per-sample function at samples, or at as many of their kind as `samples` says.

        **Arguments:**

        - `f`: per sample, as `jacobian` takes it.
        - `params`: a pytree of arrays.
        - `xs`: samples along the leading axis.
        - `samples`: how many, in place of those of `xs`.

        **Returns:** a `Size`; nothing is computed.
        """
        if samples is not None:
            xs = jax.tree.map(lambda x: jax.ShapeDtypeStruct((samples, *x.shape[1:]), x.dtype), xs)
        n, m = check(f, params, xs)
        leaves = jax.eval_shape(lambda xs: jax.vmap(partial(taps, f, params))(xs).leaves, xs)
        groups = [group for leaf in leaves for group in leaf.groups]
        factors = sum(x.size * x.dtype.itemsize for group in groups for x in (group.a, group.g)) / (n * m)
        paired = sum(pair_cost(g) for leaf in leaves if leaf.separate for g in leaf.groups if hadamard_wins(g))
        counted = jax.jit(jax.vmap(f, (None, 0))).lower(params, xs).cost_analysis() or {}
        return cls(
            rows=n * m,
            parameters=count(params),
            value=counted.get("flops", 0.0) / (n * m),
            paired=paired,
            whole=kernel_cost(leaves) - paired,
            factors=factors,
            layers=tuple(leaf.shape for leaf in leaves if len(leaf.shape) == 2),
            uses=max((group.a.shape[3] for group in groups), default=1),
            itemsize=max(leaf.dtype.itemsize for leaf in jax.tree.leaves(params)),
        )


@dataclass(frozen=True)
class Plan:
    """A step with one solver on so many devices.

    **Attributes:**

    - `solver`: one of `SOLVERS`.
    - `devices`: how many.
    - `parts`: the cost of each part, by name.
    - `memory`: bytes that each device needs.
    """

    solver: str
    devices: int
    parts: dict[str, Cost]
    memory: float

    def seconds(self, machine: Machine) -> float:
        """Of the whole step."""
        return sum(cost.seconds(machine, self.devices) for cost in self.parts.values())

    def longest(self, machine: Machine) -> str:
        """The part that takes longest."""
        return max(self.parts, key=lambda name: self.parts[name].seconds(machine, self.devices))


def best(size: Size, machine: Machine, devices: int = 1, solvers: tuple[str, ...] = SOLVERS[:3]) -> Plan | None:
    """The fastest exact solver that fits, or None.

    **Arguments:**

    - `size`: what the step works on.
    - `machine`: the kind of device.
    - `devices`: how many of it.
    - `solvers`: which may be taken, of `SOLVERS`.

    **Returns:** a `Plan`.
    """
    plans = [plan(size, machine, devices, solver) for solver in solvers]
    fitting = [each for each in plans if each.memory <= machine.memory]
    return min(fitting, key=lambda each: each.seconds(machine), default=None)


def plan(size: Size, machine: Machine, devices: int, solver: str) -> Plan:
    """What a step costs with a solver.

    **Arguments:**

    - `size`: what the step works on.
    - `machine`: the kind of device.
    - `devices`: how many of it.
    - `solver`: one of `SOLVERS`.

    **Returns:** a `Plan`, whether it fits or not.
    """
    form = {
        "normal": _normal,
        "kernel": _kernel,
        "kernel, distributed": partial(_kernel, distributed=True),
        "kfac": _kfac,
        "iterative": _iterative,
    }[solver]
    share = replace(size, rows=math.ceil(size.rows / devices))
    parts, memory = form(size, share, machine, devices)
    work = Cost(share.rows * size.sampling, fraction=machine.small)
    sampling = {"samples": work} if size.sampling else {}
    return Plan(solver, devices, sampling | parts, memory)


def _normal(size: Size, share: Size, machine: Machine, devices: int) -> tuple[dict[str, Cost], float]:
    """Rows stay where they are, partial Gram matrices are summed, every device factorises the sum."""
    p, square = size.parameters, size.parameters**2 * size.itemsize
    rows = share.rows * p * size.itemsize
    parts = {
        "rows": _rows(share, machine, share.rows * size.factors),
        "their assembly": Cost(bytes=rows / machine.assembly),
        "matrix": product(share.rows * p * p, rows, square, machine),
        "sum": reduced(square, devices),
        "factorisation": factorisation(p, size.itemsize, machine),
    }
    return parts, 2 * rows + 3 * square


def _kernel(
    size: Size, share: Size, machine: Machine, devices: int, distributed: bool = False
) -> tuple[dict[str, Cost], float]:
    """Every device gets the other rows' factors, or their entries if those are fewer, and forms its strip of the
    kernel; strips are gathered and factorised everywhere, or stay where they are for one factorisation by all."""
    n, square = size.rows, size.rows**2 * size.itemsize
    each = min(size.factors, size.parameters * size.itemsize)
    whole = n * each
    paired = Cost(share.rows * n * size.paired, fraction=machine.paired)
    parts = {
        "rows": _rows(share, machine, share.rows * each),
        "exchange of rows": gathered(whole, devices),
        "pairs": paired,
        "assembly of others": Cost(bytes=share.rows * size.whole * size.itemsize / machine.assembly),
        "matrix": product(share.rows * n * size.whole, whole, square / devices, machine),
    }
    if distributed:
        parts["factorisation"] = shared_factorisation(n, size.itemsize, devices, machine)
        return parts, whole + 3 * square / devices
    parts["gathering"] = gathered(square, devices)
    parts["factorisation"] = factorisation(n, size.itemsize, machine)
    return parts, whole + 2 * square


def _kfac(size: Size, share: Size, machine: Machine, devices: int) -> tuple[dict[str, Cost], float]:
    """Two small matrices for every layer, summed over devices, each decomposed by one of them."""
    squares = sum(i * i + o * o for i, o in size.layers)
    cubes = sum(i**3 + o**3 for i, o in size.layers)
    factors = share.rows * size.factors
    parts = {
        "rows": _rows(share, machine, factors),
        "factors' products": product(share.rows * size.uses * squares, factors, squares * size.itemsize, machine),
        "sum": reduced(squares * size.itemsize, devices),
        "decompositions": Cost(10 * cubes / devices, 10 * squares * size.itemsize, fraction=machine.factor),
        "gathering": gathered(squares * size.itemsize, devices),
        "gradient": reduced(size.parameters * size.itemsize, devices),
    }
    return parts, factors + 4 * squares * size.itemsize + 4 * size.parameters * size.itemsize


def _iterative(size: Size, share: Size, machine: Machine, devices: int) -> tuple[dict[str, Cost], float]:
    """Products with O and Oᵀ from the factors, one sum over devices for each pair."""
    factors = share.rows * size.factors
    vector = reduced(size.parameters * size.itemsize, devices)
    pairs = PRODUCTS // 2
    parts = {
        "rows": _rows(share, machine, factors),
        "products": Cost(PRODUCTS * share.rows * size.value, PRODUCTS * factors, fraction=machine.small),
        "sums": replace(vector, sent=pairs * vector.sent, messages=pairs * vector.messages),
    }
    return parts, factors + 6 * size.parameters * size.itemsize


def _rows(share: Size, machine: Machine, written: float) -> Cost:
    """Values, and derivatives as factors or whole rows."""
    return Cost(DERIVATIVE * share.rows * share.value, written, fraction=machine.small)
