"""Schedules as a person types them: arithmetic in t, such as `3/t` or `1 + 0.4/t`. Imports nothing heavy."""

import ast
import math
import operator
from collections.abc import Callable
from typing import Any

_BINARY = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
_UNARY = {ast.UAdd: operator.pos, ast.USub: operator.neg}


def parse(text: str, name: str) -> Callable[[Any], Any]:
    """The function of t that `text` describes; numbers, `t`, + − * / ** and parentheses are understood."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        raise ValueError(f"{name}: {text!r} is not a formula; write for example 3/t or 1+0.4/t.") from None
    _check(tree, text, name)
    return lambda t: _evaluate(tree, t)


def check_range(text: str, name: str, times: tuple[float, ...]) -> None:
    """Refuse a formula that is negative or not finite at one of `times`."""
    function = parse(text, name)
    for t in times:
        try:
            value = function(t)
        except (ZeroDivisionError, OverflowError):
            value = math.inf
        if isinstance(value, complex) or not math.isfinite(value) or value < 0:
            raise ValueError(f"{name}: {text!r} is {value:g} at t = {t:g}; it must be finite and ≥ 0 on the time span.")


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
