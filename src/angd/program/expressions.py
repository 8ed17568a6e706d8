"""Schedules as a person types them: arithmetic in t, such as `3/t` or `1 + 0.4/t`. Imports nothing heavy."""

import ast
import itertools
import math
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

_BINARY = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
LONGEST = 300  # letters of a formula
_UNARY = {ast.UAdd: operator.pos, ast.USub: operator.neg}


def parse(text: str, name: str) -> Callable[[Any], Any]:
    """The function of t that `text` describes; numbers, `t`, + − * / ** and parentheses are understood."""
    if len(text) > LONGEST:
        raise ValueError(f"{name}: a formula has at most {LONGEST} letters, this one has {len(text)}.")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError(f"{name}: {text!r} is not a formula; write for example 3/t or 1+0.4/t.") from None
    _check(tree, text, name)
    return lambda t: _evaluate(tree, t)


def check_range(text: str, name: str, span: tuple[float, float]) -> None:
    """Refuse a formula that is negative or not finite anywhere between two times.

    It is looked at on a grid, at its minima between grid points, and at the zeros and minima of whatever it divides by
    or takes a root of.
    """
    parse(text, name)
    formula, times = ast.parse(text.strip(), mode="eval").body, _grid(*span)
    guards = _guards(formula)
    bad = next((t for t in (_zero(divisor, times) for divisor in guards.divisors) if t is not None), None)
    if bad is not None:
        _refuse(text, name, math.inf, bad)
    times = sorted({*times, *(t for guard in (*guards.divisors, *guards.bases) for t in _minima(guard, times))})
    for t in (*times, *_minima(formula, times)):
        value = _value(formula, t)
        if not math.isfinite(value) or value < -_rounding(formula, t):
            _refuse(text, name, value, t)


def _refuse(text: str, name: str, value: float, t: float) -> None:
    raise ValueError(f"{name}: {text!r} is {value:g} at t = {t:g}; it must be finite and ≥ 0 on the time span.")


_GRID = 600
_EPS = 1e-14
_GOLDEN = (5**0.5 - 1) / 2


class _Guards(NamedTuple):
    """What a formula divides by, and what it takes roots of."""

    divisors: list[Any]
    bases: list[Any]


def _guards(formula: Any) -> _Guards:
    pairs = [node for node in ast.walk(formula) if isinstance(node, ast.BinOp)]
    powers = [node for node in pairs if isinstance(node.op, ast.Pow)]
    inverse = [node.left for node in powers if _is_negative(node.right)]
    return _Guards([node.right for node in pairs if isinstance(node.op, ast.Div)] + inverse, [p.left for p in powers])


def _is_negative(node: Any) -> bool:
    """Is an exponent a number below zero?"""
    return not any(isinstance(part, ast.Name) for part in ast.walk(node)) and _value(node, 0.0) < 0


def _grid(t0: float, t1: float) -> list[float]:
    """Times of equal distance, and of equal ratio where the span does not start at 0."""
    even = [t0 + (t1 - t0) * i / _GRID for i in range(_GRID)]
    ratios = [t0 * (t1 / t0) ** (i / _GRID) for i in range(_GRID)] if t0 > 0 else []
    return sorted({*even, *ratios, t1})


def _value(formula: Any, t: float) -> float:
    """A formula at t: infinite where it divides by zero or overflows, not a number where it is complex."""
    try:
        value = _evaluate(formula, t)
    except (ZeroDivisionError, OverflowError):
        return math.inf
    return math.nan if isinstance(value, complex) else value


def _rounding(formula: Any, t: float) -> float:
    """What rounding may make of a zero."""
    try:
        return _EPS * _size(formula, t)
    except (ZeroDivisionError, OverflowError):
        return 0.0


def _size(node: Any, t: float) -> float:
    """The formula with all its differences as sums."""
    if isinstance(node, ast.UnaryOp):
        return _size(node.operand, t)
    if not isinstance(node, ast.BinOp):
        return abs(_evaluate(node, t))
    left, right = _size(node.left, t), _size(node.right, t)
    if isinstance(node.op, ast.Div):
        return left / abs(_evaluate(node.right, t))
    if isinstance(node.op, ast.Pow):
        exponent = _evaluate(node.right, t)
        return left**exponent if exponent >= 0 else abs(_evaluate(node.left, t)) ** exponent
    return left * right if isinstance(node.op, ast.Mult) else left + right


def _zero(formula: Any, times: list[float]) -> float | None:
    """Where a formula vanishes, crossing zero or touching it."""
    values = [_value(formula, t) for t in times]
    for (low, a), (high, b) in itertools.pairwise(zip(times, values, strict=True)):
        if a * b < 0:
            return _crossing(formula, low, high)
    square = ast.BinOp(formula, ast.Mult(), formula)
    touched = (t for t in (*times, *_minima(square, times)) if abs(_value(formula, t)) <= _rounding(formula, t))
    return next(touched, None)


def _crossing(formula: Any, low: float, high: float) -> float:
    """By bisection."""
    sign = _value(formula, low)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _value(formula, middle) * sign > 0 else (low, middle)
    return high


def _minima(formula: Any, times: list[float]) -> list[float]:
    """Where a formula has its minima, by golden sections between the neighbours of the least values."""
    values = [_value(formula, t) for t in times]
    inner = range(1, len(times) - 1)
    return [
        _least(formula, times[i - 1], times[i + 1])
        for i in inner
        if values[i - 1] >= values[i] <= values[i + 1] and not values[i - 1] == values[i] == values[i + 1]
    ]


def _least(formula: Any, low: float, high: float) -> float:
    for _ in range(60):
        a, b = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        low, high = (low, b) if _value(formula, a) <= _value(formula, b) else (a, high)
    return (low + high) / 2


def _check(node: ast.AST, text: str, name: str) -> None:
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        _check(node.left, text, name)
        _check(node.right, text, name)
    elif isinstance(node, ast.UnaryOp) and type(node.op) in _UNARY:
        _check(node.operand, text, name)
    elif not _is_number(node) and not (isinstance(node, ast.Name) and node.id == "t"):
        raise ValueError(f"{name}: {text!r} may only contain numbers, t, + - * / ** and parentheses.")


def _is_number(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def _evaluate(node: Any, t: Any) -> Any:
    if isinstance(node, ast.BinOp):
        return _BINARY[type(node.op)](_evaluate(node.left, t), _evaluate(node.right, t))
    if isinstance(node, ast.UnaryOp):
        return _UNARY[type(node.op)](_evaluate(node.operand, t))
    return t if isinstance(node, ast.Name) else float(node.value)
